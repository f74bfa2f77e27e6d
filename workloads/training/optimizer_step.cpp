// SPDX-License-Identifier: Apache-2.0
#include "workloads/training/optimizer_step.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "workloads/llm/kernels.h"
#include "workloads/parallelism/stages.h"
#include "workloads/training/replica_sync.h"
#include "workloads/training/sharded_weights.h"

namespace orrery {
namespace {

Kernel optimizer_kernel(std::string name, double elements, StreamCost per_element) {
  return stream(std::move(name), KernelClass::kOptimizer,
                static_cast<std::int64_t>(std::ceil(elements)), 1, per_element);
}

/// Under sequence parallelism every tensor parallel rank saw other tokens through the norms,
/// routers and shared experts that it holds whole.
void reduce_whole(BlockBuilder& block, const Mesh& mesh, const RankParameters& parameters,
                  double gradient, int stage) {
  if (!mesh.parallel().sp) return;
  block.collective(
      optimizer_transfer("whole gradients all_reduce stage " + std::to_string(stage), "tp",
                         TransferKind::kAllReduce, static_cast<double>(parameters.whole) * gradient,
                         mesh.groups({"tp"}, stage)),
      kTensorStream);
}

/// Stages that hold copies of the embedding table: that of the first slice, of the last where the
/// table is the head too, and of modules of multi-token prediction.
std::vector<int> table_stages(const LlmConfig& model, const TrainingConfig& config) {
  const Placement placement = placement_of(config);
  std::set<int> stages = {placement.place(0).rank};
  const auto add = [&](int slice) {
    const int stage = placement.place(slice).rank;
    if (!placement.holds(stage, 0)) stages.insert(stage);
  };
  if (model.tied_embeddings) add(placement.slices() - 1);
  if (config.mtp > 0) add(module_slice(config.parallel, placement));
  return {stages.begin(), stages.end()};
}

/// They add up its gradients.
void reduce_tables(BlockBuilder& block, const Mesh& mesh, const LlmConfig& model,
                   const TrainingConfig& config, int stage) {
  if (config.lora) return;  // frozen
  const std::vector<int> stages = table_stages(model, config);
  if (stages.size() == 1 || std::find(stages.begin(), stages.end(), stage) == stages.end()) return;
  const double table = static_cast<double>(embedding_parameters(model, mesh.parallel().tp).split);
  const double kept = has_fresh_gradients(config) ? 1.0 / config.parallel.shards() : 1;
  Transfer transfer = optimizer_transfer(
      "tied embedding all_reduce", "embedding", TransferKind::kAllReduce,
      table * kept * config.software->gradient_bytes(config.precision), mesh.across(stages));
  transfer.participants = static_cast<int>(stages.size());
  block.collective(std::move(transfer), kDataStream);
}

}  // namespace

std::vector<Kernel> optimizer_kernels(double elements, Precision precision,
                                      const TrainingSoftware& software) {
  const bool scaled = precision == Precision::kFp16;
  const double gradient = software.gradient_bytes(precision);
  StreamCost prepare = scaled ? StreamCost{12, 8, 6} : StreamCost{8, 4, 4};
  if (gradient < element_bytes(Precision::kFp32)) {
    prepare.read += kGradientBytes;
    prepare.written += 4;
  }
  return {optimizer_kernel("gradient preparation", elements, prepare),
          optimizer_kernel("adam", elements, {16, 12, 12}),
          optimizer_kernel("weight cast", elements, {4, kWeightBytes + gradient, 0})};
}

OptimizerShard optimizer_shard(const LlmConfig& model, const TrainingConfig& config, int stage) {
  const ParallelConfig& parallel = config.parallel;
  const RankParameters p = trained_stage(model, config, stage);
  if (parallel.zero >= 1) return shard_of(p, config);
  return {.dense = static_cast<double>(p.dense()), .experts = static_cast<double>(p.experts)};
}

BlockId optimizer_block(ProgramBuilder& program, const LlmConfig& model,
                        const TrainingConfig& config, int stage, const RankParameters& reduced) {
  const Mesh& mesh = program.mesh();
  const RankParameters parameters = trained_stage(model, config, stage);
  const double gradient = config.software->gradient_bytes(config.precision);
  const ReplicaSync sync(mesh, config, stage);
  BlockBuilder block(program, stage);
  // Megatron-LM multiplies gradients by 1 / replicas before it adds them up.
  if (!has_fresh_gradients(config)) {
    block.kernel(optimizer_kernel("gradient scale", static_cast<double>(parameters.total()),
                                  {gradient, gradient, 1}),
                 Category::kOptimizer);
  }
  const double kept = has_fresh_gradients(config) ? gradient / config.parallel.shards() : gradient;
  reduce_whole(block, mesh, parameters, kept, stage);
  reduce_tables(block, mesh, model, config, stage);
  for (Transfer& transfer : sync.reduction(parameters - reduced))
    block.collective(std::move(transfer), kDataStream);
  const double updated = optimizer_shard(model, config, stage).total();
  for (const Kernel& kernel : optimizer_kernels(updated, config.precision, *config.software))
    block.kernel(kernel, Category::kOptimizer);
  if (!config.software->weight_gather_overlap.value && config.parallel.zero < 3) {
    for (Transfer& transfer : sync.gather(parameters))
      block.collective(std::move(transfer), kDataStream);
  }
  return block.finish("optimizer " + std::to_string(stage));
}

}  // namespace orrery
