// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/listed/layer_graph.h"

#include <fmt/core.h>

#include <algorithm>

#include "sim/config/schema.h"
#include "workloads/base/real.h"
#include "workloads/ops/fusion.h"
#include "workloads/ops/kernels.h"

namespace orrery {

const config::Schema<Extent>& Extent::schema() {
  constexpr double kMost = 1e6;
  static const auto schema =
      config::Schema<Extent>("input", "a tensor of one sample")
          .optional("channels", &Extent::channels, "values at each position",
                    config::between(1, kMost))
          .optional("rows", &Extent::rows, "rows of positions, or tokens",
                    config::between(1, kMost))
          .optional("columns", &Extent::columns, "positions of a row", config::between(1, kMost));
  return schema;
}

std::string to_string(const Extent& extent) {
  return fmt::format("{} x {} x {}", extent.channels, extent.rows, extent.columns);
}

Bytes PassContext::bytes(std::int64_t elements) const {
  return Bytes(real(samples) * real(elements) * element());
}

Kernel stream(const PassContext& pass, const std::string& name, KernelClass kind,
              const Extent& extent, ElementCost cost) {
  return stream(name, kind, pass.rows(extent), extent.channels,
                {cost.read * pass.element(), cost.written * pass.element(), cost.flops});
}

std::int64_t LayerGraph::parameters() const {
  std::int64_t sum = 0;
  for (const ListedOp& op : ops_) sum += op.parameters;
  return sum;
}

std::int64_t LayerGraph::multiply_adds() const {
  std::int64_t sum = 0;
  for (const ListedOp& op : ops_) sum += op.multiply_adds;
  return sum;
}

std::size_t LayerGraphBuilder::input(Extent extent) {
  graph_.tensors_.push_back({.extent = extent, .storage = graph_.tensors_.size()});
  return graph_.tensors_.size() - 1;
}

std::size_t LayerGraphBuilder::add(ListedOp op) {
  const std::size_t id = graph_.ops_.size();
  op.layer = layer_;
  op.name = layer_ + " " + op.name;
  for (Kernel& kernel : op.forward) kernel.name = op.name;
  for (Kernel& kernel : op.gradient) kernel.name = op.name + ": " + kernel.name;
  op.output = input(op.result);
  op.runs_in = id;
  ListedTensor& made = graph_.tensors_.back();
  made.maker = id;
  made.trained = op.parameters > 0;
  for (const std::size_t read : op.inputs) {
    graph_.tensors_[read].readers.push_back(id);
    made.trained = made.trained || graph_.tensors_[read].trained;
  }
  graph_.ops_.push_back(std::move(op));
  return graph_.ops_.back().output;
}

void LayerGraphBuilder::held(const LayerInputs& inputs) {
  for (const std::size_t tensor : inputs) graph_.tensors_[tensor].held = graph_.ops_.size() - 1;
}

bool LayerGraphBuilder::fold(std::size_t id) {
  ListedOp& op = graph_.ops_[id];
  if (!op.epilogue) return false;
  const std::size_t latest = *std::ranges::max_element(
      op.inputs,
      [this](std::size_t a, std::size_t b) { return tensor(a).maker < tensor(b).maker; });
  const ListedTensor& between = tensor(latest);
  if (!between.maker || between.readers.size() != 1 || between.extent != op.result) return false;
  const std::size_t root = graph_.ops_[*between.maker].runs_in;
  std::vector<Kernel>& product = graph_.ops_[root].forward;
  if (product.empty() || !takes_epilogues(product.back().kind)) return false;
  for (const std::size_t other : op.inputs)
    if (other != latest && tensor(other).maker > root) return false;
  for (const Kernel& kernel : op.forward) {
    product.back().vector_flops += kernel.vector_flops;
    product.back().read += std::max(Bytes(), kernel.read - pass().bytes(op.result.elements()));
  }
  op.forward.clear();
  op.runs_in = root;
  graph_.tensors_[op.output].storage = between.storage;
  return true;
}

void LayerGraphBuilder::share_memory(const ListedOp& op) {
  const ListedTensor& input = tensor(op.inputs.front());
  const bool writes_over = op.epilogue && !op.keeps_inputs && input.maker &&
                           input.readers.size() == 1 &&
                           !(pass().training && graph_.ops_[*input.maker].keeps_result);
  if (writes_over || op.forward.empty()) graph_.tensors_[op.output].storage = input.storage;
}

LayerGraph LayerGraphBuilder::finish() {
  const bool folds = pass().fuses && !pass().training;
  for (std::size_t id = 0; id < graph_.ops_.size(); ++id)
    if (!folds || !fold(id)) share_memory(graph_.ops_[id]);
  return std::move(graph_);
}

}  // namespace orrery
