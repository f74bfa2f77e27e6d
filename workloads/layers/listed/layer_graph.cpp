// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/listed/layer_graph.h"

#include <utility>

#include "workloads/base/real.h"
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
  return std::to_string(extent.channels) + " x " + std::to_string(extent.rows) + " x " +
         std::to_string(extent.columns);
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
  for (const LayerNode& node : nodes_) sum += node.op->parameters();
  return sum;
}

std::int64_t LayerGraph::multiply_adds() const {
  std::int64_t sum = 0;
  for (const LayerNode& node : nodes_) sum += node.op->multiply_adds();
  return sum;
}

std::size_t LayerGraphBuilder::input(Extent extent) {
  graph_.tensors_.push_back(extent);
  graph_.inputs_.push_back(graph_.tensors_.size() - 1);
  return graph_.tensors_.size() - 1;
}

std::size_t LayerGraphBuilder::add(const std::string& name, std::vector<std::size_t> inputs,
                                   Extent output, std::shared_ptr<const LayerOperator> op) {
  graph_.tensors_.push_back(output);
  const std::size_t tensor = graph_.tensors_.size() - 1;
  graph_.nodes_.push_back({layer_, layer_ + " " + name, std::move(inputs), tensor, std::move(op)});
  return tensor;
}

void LayerGraphBuilder::begin_call(std::vector<std::size_t> inputs) {
  graph_.calls_.push_back({graph_.nodes_.size(), graph_.nodes_.size(), std::move(inputs)});
}

void LayerGraphBuilder::end_call() { graph_.calls_.back().last = graph_.nodes_.size() - 1; }

}  // namespace orrery
