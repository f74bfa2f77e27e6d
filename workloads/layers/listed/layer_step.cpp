// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/listed/layer_step.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "workloads/base/real.h"
#include "workloads/layers/listed/layer_folding.h"
#include "workloads/layers/listed/layer_memory.h"
#include "workloads/ops/kernels.h"
#include "workloads/plan/program_builder.h"
#include "workloads/steps/training/optimizer_step.h"

namespace orrery {
namespace {

/// Does in the kernels of a product what an operator behind it would do: its FLOPs, and the bytes
/// of its inputs that the product does not make.
void add_epilogue(const LayerGraph& graph, const PassContext& pass, const LayerNode& node,
                  Kernel& product) {
  const Bytes made = pass.bytes(graph.tensors()[node.output].elements());
  for (const Kernel& kernel : node.op->forward(pass)) {
    product.vector_flops += kernel.vector_flops;
    product.read += std::max(Bytes(), kernel.read - made);
  }
}

class LayerProgramBuilder {
 public:
  LayerProgramBuilder(const LayerGraph& graph, const LayerStepConfig& config)
      : graph_(graph), config_(config), program_(replicas(config.dp)), block_(program_, 0) {}

  Program build() {
    for (const Kernel& kernel : forward_kernels(graph_, config_.pass))
      block_.kernel(kernel, Category::kCompute);
    if (config_.pass.training) {
      train();
    }
    const BlockId step = block_.finish("step");
    return program_.finish({{step}});
  }

 private:
  static ParallelConfig replicas(int dp) {
    ParallelConfig parallel;
    parallel.dp = dp;
    return parallel;
  }

  void train() {
    const Extent& result = graph_.tensors()[graph_.nodes().back().output];
    block_.kernel(
        stream(config_.pass, "loss", KernelClass::kSoftmax, result, {1, 1, vector_cost::kSoftmax}),
        Category::kCompute);
    const FoldedGraph folded = fold(graph_, config_.pass);
    const std::vector<bool> needed = needed_gradients();
    for (std::size_t i = graph_.nodes().size(); i-- > 0;) backward(i, folded, needed);
    reduce();
    for (const OperatorId reduction : reductions_) block_.need(reduction);
    update();
  }

  /// Tensors that weights lie before: others have no gradients.
  std::vector<bool> needed_gradients() const {
    std::vector<bool> needed(graph_.tensors().size(), false);
    for (const LayerNode& node : graph_.nodes()) {
      bool some = node.op->parameters() > 0;
      for (const std::size_t input : node.inputs) some = some || needed[input];
      needed[node.output] = some;
    }
    return needed;
  }

  void backward(std::size_t i, const FoldedGraph& folded, const std::vector<bool>& needed) {
    const LayerNode& node = graph_.nodes()[i];
    // Each reader of a tensor has a gradient of it; they are added up.
    const std::size_t readers = folded.readers[node.output].size();
    if (readers > 1)
      block_.kernel(stream(config_.pass, node.name + ": gradient sum", KernelClass::kElementwise,
                           graph_.tensors()[node.output],
                           {real(static_cast<std::int64_t>(readers)), 1,
                            real(static_cast<std::int64_t>(readers - 1))}),
                    Category::kCompute);
    const bool to_inputs = std::any_of(node.inputs.begin(), node.inputs.end(),
                                       [&](std::size_t input) { return needed[input]; });
    for (Kernel& kernel : node.op->backward(config_.pass, to_inputs)) {
      kernel.name = node.name + ": " + kernel.name;
      block_.kernel(kernel, Category::kCompute);
    }
    waiting_ += node.op->parameters();
    if (Bytes(real(waiting_) * kWeightGradientBytes) >= config_.bucket) reduce();
  }

  void reduce() {
    const std::int64_t gradients = std::exchange(waiting_, 0);
    if (config_.dp == 1 || gradients == 0) return;
    Transfer transfer;
    transfer.name = "gradients " + std::to_string(reductions_.size());
    transfer.kind = TransferKind::kAllReduce;
    transfer.purpose = "dp";
    transfer.bytes = Bytes(real(gradients) * kWeightGradientBytes);
    transfer.groups = program_.mesh().groups({"dp"}, 0);
    reductions_.push_back(block_.beside(std::move(transfer), kDataStream));
  }

  /// Reads gradients, master weights and states, and writes the latter two, and weights where they
  /// are narrower.
  void update() {
    const double states = optimizer_bytes(config_.optimizer, config_.pass.precision);
    const double weight = training_bytes(config_.pass.precision);
    const bool master = weight < element_bytes(Precision::kFp32);
    const double wide = master ? 0 : weight;
    block_.kernel(stream("optimizer", KernelClass::kOptimizer, graph_.parameters(), 1,
                         {kWeightGradientBytes + states + wide, states + weight,
                          config_.optimizer == OptimizerKind::kAdam ? 12.0 : 4.0}),
                  Category::kOptimizer);
  }

  const LayerGraph& graph_;
  const LayerStepConfig& config_;
  ProgramBuilder program_;
  BlockBuilder block_;
  std::int64_t waiting_ = 0;  ///< parameters whose gradients are there and not sent
  std::vector<OperatorId> reductions_;
};

}  // namespace

std::vector<Kernel> forward_kernels(const LayerGraph& graph, const PassContext& pass) {
  const FoldedGraph folded = fold(graph, pass);
  std::vector<std::vector<Kernel>> by_node(graph.nodes().size());
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const LayerNode& node = graph.nodes()[i];
    std::vector<Kernel>& kernels = by_node[folded.root[i]];
    if (folded.root[i] != i) {
      add_epilogue(graph, pass, node, kernels.back());
      continue;
    }
    kernels = node.op->forward(pass);
    for (Kernel& kernel : kernels) kernel.name = node.name;
  }
  std::vector<Kernel> all;
  for (std::vector<Kernel>& kernels : by_node)
    std::move(kernels.begin(), kernels.end(), std::back_inserter(all));
  return all;
}

Program layer_program(const LayerGraph& graph, const LayerStepConfig& config) {
  return LayerProgramBuilder(graph, config).build();
}

Flops layer_flops(const LayerGraph& graph, const LayerStepConfig& config) {
  const double passes = config.pass.training ? 3 : 1;
  return Flops(2 * passes * real(graph.multiply_adds()) * real(config.pass.samples) * config.dp);
}

MemoryUse layer_step_memory(const LayerGraph& graph, const LayerStepConfig& config) {
  const double parameters = real(graph.parameters());
  MemoryUse use;
  const TensorMemory tensors = tensor_memory(graph, config.pass);
  use.activations = tensors.kept;
  use.working = tensors.working;
  use.weights = Bytes(parameters * config.pass.element());
  if (!config.pass.training) return use;
  use.weights = Bytes(parameters * training_bytes(config.pass.precision));
  use.gradients = Bytes(parameters * kWeightGradientBytes);
  use.optimizer = Bytes(parameters * optimizer_bytes(config.optimizer, config.pass.precision));
  return use;
}

}  // namespace orrery
