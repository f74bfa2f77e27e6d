// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/listed/layer_step.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/plan/program_builder.h"
#include "workloads/steps/training/optimizer/update_kernels.h"

namespace orrery {
namespace {

class LayerProgramBuilder {
 public:
  LayerProgramBuilder(const LayerGraph& graph, const LayerStepConfig& config)
      : graph_(graph), config_(config), program_(replicas(config.dp)), block_(program_, 0) {}

  Program build() {
    for (const ListedOp& op : graph_.ops()) compute(op.forward);
    if (graph_.pass().training) train();
    const BlockId step = block_.finish("step");
    return program_.finish({{step}});
  }

 private:
  static ParallelConfig replicas(int dp) {
    ParallelConfig parallel;
    parallel.dp = dp;
    return parallel;
  }

  void compute(const std::vector<Kernel>& kernels) {
    for (const Kernel& kernel : kernels) block_.kernel(kernel, Category::kCompute);
  }

  void train() {
    compute({stream(graph_.pass(), "loss", KernelClass::kSoftmax,
                    graph_.tensors()[graph_.result()].extent, {1, 1, vector_cost::kSoftmax})});
    std::for_each(graph_.ops().rbegin(), graph_.ops().rend(),
                  [this](const ListedOp& op) { backward(op); });
    reduce();
    for (const OperatorId reduction : reductions_) block_.need(reduction);
    update();
  }

  void backward(const ListedOp& op) {
    const ListedTensor& made = graph_.tensors()[op.output];
    if (!made.trained) return;
    // Each reader of a tensor has a gradient of it; they are added up.
    const double readers = static_cast<double>(made.readers.size());
    if (readers > 1)
      compute({stream(graph_.pass(), op.name + ": gradient sum", KernelClass::kElementwise,
                      made.extent, {readers, 1, readers - 1})});
    compute(op.gradient);
    waiting_ += op.parameters;
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
    const double states = optimizer_bytes(config_.optimizer, graph_.pass().precision);
    const double weight = training_bytes(graph_.pass().precision);
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

/// Follows the tensors of a pass. Those that share memory are one.
class TensorLives {
 public:
  explicit TensorLives(const LayerGraph& graph)
      : graph_(graph),
        last_use_(graph.tensors().size(), 0),
        first_keeper_(graph.tensors().size(), graph.ops().size()) {
    for (std::size_t tensor = 0; tensor < last_use_.size(); ++tensor) {
      const ListedTensor& listed = graph.tensors()[tensor];
      std::size_t& last = last_use_[listed.storage];
      last = std::max(last, listed.held);
      for (const std::size_t reader : listed.readers)
        last = std::max(last, graph.ops()[reader].runs_in);
    }
    last_use_[store(graph.result())] = graph.ops().size();  // it is never freed
    if (graph.pass().training) note_keepers();
  }

  MemoryProfile follow() {
    for (std::size_t tensor = 0; tensor < last_use_.size(); ++tensor)
      if (!graph_.tensors()[tensor].maker) make(tensor);
    for (std::size_t op = 0; op < graph_.ops().size(); ++op) forward(op);
    if (!graph_.pass().training) return profile_;
    make_gradient(graph_.result());
    for (std::size_t op = graph_.ops().size(); op-- > 0;) backward(op);
    return profile_;
  }

 private:
  std::size_t store(std::size_t tensor) const { return graph_.tensors()[tensor].storage; }
  Bytes bytes(std::size_t stored) const {
    return graph_.pass().bytes(graph_.tensors()[stored].extent.elements());
  }
  bool is_kept(std::size_t stored) const { return first_keeper_[stored] < graph_.ops().size(); }
  TensorRole role(std::size_t stored) const {
    return is_kept(stored) ? TensorRole::kActivation : TensorRole::kWorking;
  }

  void note_keepers() {
    const auto keep = [this](std::size_t tensor, std::size_t op) {
      first_keeper_[store(tensor)] = std::min(first_keeper_[store(tensor)], op);
    };
    for (std::size_t id = 0; id < graph_.ops().size(); ++id) {
      const ListedOp& op = graph_.ops()[id];
      if (!graph_.tensors()[op.output].trained) continue;
      if (op.keeps_result) keep(op.output, id);
      if (!op.keeps_inputs) continue;
      for (const std::size_t input : op.inputs) keep(input, id);
    }
  }

  void make(std::size_t tensor) {
    if (there_.insert(store(tensor)).second)
      profile_.makes(role(store(tensor)), bytes(store(tensor)));
  }
  void make_gradient(std::size_t tensor) {
    if (gradients_.insert(store(tensor)).second)
      profile_.makes(TensorRole::kWorking, bytes(store(tensor)));
  }
  /// @param done says of a tensor by its storage whether nobody needs it any more
  template <class Done>
  void free_where(Done done) {
    std::erase_if(there_, [&](std::size_t stored) {
      if (done(stored)) profile_.frees(role(stored), bytes(stored));
      return done(stored);
    });
  }

  void forward(std::size_t id) {
    const ListedOp& op = graph_.ops()[id];
    if (op.runs_in == id) make(op.output);
    free_where([&](std::size_t stored) { return last_use_[stored] == id && !is_kept(stored); });
  }

  void backward(std::size_t id) {
    const ListedOp& op = graph_.ops()[id];
    for (const std::size_t input : op.inputs)
      if (graph_.tensors()[input].trained) make_gradient(input);
    const std::size_t made = store(op.output);
    if (store(op.inputs.front()) != made && gradients_.erase(made) > 0)
      profile_.frees(TensorRole::kWorking, bytes(made));
    free_where([&](std::size_t stored) { return first_keeper_[stored] == id; });
  }

  const LayerGraph& graph_;
  std::vector<std::size_t> last_use_;        ///< the last operation of the forward pass by storage
  std::vector<std::size_t> first_keeper_;    ///< the last operation of the backward pass by storage
  std::set<std::size_t> there_, gradients_;  ///< tensors and their gradients, by storage
  MemoryProfile profile_;
};

}  // namespace

Program layer_program(const LayerGraph& graph, const LayerStepConfig& config) {
  return LayerProgramBuilder(graph, config).build();
}

std::vector<Kernel> forward_kernels(const LayerGraph& graph) {
  std::vector<Kernel> all;
  for (const ListedOp& op : graph.ops())
    all.insert(all.end(), op.forward.begin(), op.forward.end());
  return all;
}

Flops layer_flops(const LayerGraph& graph, const LayerStepConfig& config) {
  const PassContext& pass = graph.pass();
  return Flops(2 * (pass.training ? 3.0 : 1.0) * real(graph.multiply_adds()) * real(pass.samples) *
               config.dp);
}

MemoryProfile tensor_profile(const LayerGraph& graph) { return TensorLives(graph).follow(); }

MemoryUse layer_step_memory(const LayerGraph& graph, const LayerStepConfig& config) {
  const double parameters = real(graph.parameters());
  const MemoryProfile tensors = tensor_profile(graph);
  MemoryUse use;
  use.activations = tensors.at_peak(TensorRole::kActivation);
  use.working = tensors.at_peak(TensorRole::kWorking);
  use.weights = Bytes(parameters * graph.pass().element());
  if (!graph.pass().training) return use;
  use.weights = Bytes(parameters * training_bytes(graph.pass().precision));
  use.gradients = Bytes(parameters * kWeightGradientBytes);
  use.optimizer = Bytes(parameters * optimizer_bytes(config.optimizer, graph.pass().precision));
  return use;
}

}  // namespace orrery
