// SPDX-License-Identifier: Apache-2.0
#include "workloads/training/optimizer_step.h"

#include <cmath>
#include <string>
#include <utility>

#include "workloads/llm/kernels.h"
#include "workloads/parallelism/rank_parameters.h"

namespace orrery {
namespace {

int expert_replicas(const ParallelConfig& parallel) {
  return parallel.tp * parallel.dp / (parallel.ep * parallel.etp);
}

Kernel optimizer_kernel(std::string name, double elements, StreamCost per_element) {
  return stream(std::move(name), KernelClass::kOptimizer,
                static_cast<std::int64_t>(std::ceil(elements)), 1, per_element);
}

Transfer reduction(std::string name, std::string purpose, TransferKind kind, double bytes,
                   Mesh::Groups groups) {
  Transfer transfer;
  transfer.name = std::move(name);
  transfer.purpose = std::move(purpose);
  transfer.kind = kind;
  transfer.bytes = Bytes(bytes);
  transfer.groups = std::move(groups);
  return transfer;
}

/// Collectives over the replicas of a stage's parameters.
class ReplicaSync {
 public:
  /// @param gradient bytes of an element of the buffer of gradients
  ReplicaSync(const Mesh& mesh, const RankParameters& parameters, int stage, double gradient)
      : mesh_(mesh), parameters_(parameters), stage_(stage), gradient_(gradient) {}

  void over_replicas(BlockBuilder& block, TransferKind kind, const std::string& what,
                     double element) const {
    const std::string name = what + " " + to_string(kind) + " stage " + std::to_string(stage_);
    if (mesh_.parallel().dp > 1) {
      block.collective(
          reduction(name, "dp", kind, static_cast<double>(parameters_.dense()) * element,
                    mesh_.groups({"cp", "dp"}, stage_)),
          kDataStream);
    }
    if (parameters_.experts > 0 && expert_replicas(mesh_.parallel()) > 1) {
      block.collective(reduction("expert " + name, "dp", kind,
                                 static_cast<double>(parameters_.experts) * element,
                                 mesh_.groups({"edp"}, stage_)),
                       kDataStream);
    }
  }

  /// Under sequence parallelism every tensor parallel rank saw other tokens through the norms,
  /// routers and shared experts that it holds whole.
  void over_tensor_ranks(BlockBuilder& block) const {
    if (!mesh_.parallel().sp) return;
    block.collective(
        reduction("whole gradients all_reduce stage " + std::to_string(stage_), "tp",
                  TransferKind::kAllReduce, static_cast<double>(parameters_.whole) * gradient_,
                  mesh_.groups({"tp"}, stage_)),
        kTensorStream);
  }

 private:
  const Mesh& mesh_;
  const RankParameters& parameters_;
  int stage_;
  double gradient_;
};

/// The stages of the first and of the last slice hold the same table and add up its gradients.
void reduce_tied_embedding(BlockBuilder& block, const Mesh& mesh, const LlmConfig& model,
                           const TrainingConfig& config, int stage) {
  const Placement placement = placement_of(config);
  const int first = placement.place(0).rank;
  const int last = placement.place(placement.slices() - 1).rank;
  if (!model.tied_embeddings || first == last || (stage != first && stage != last)) return;
  const double table = static_cast<double>(embedding_parameters(model, mesh.parallel().tp).split);
  Transfer transfer =
      reduction("tied embedding all_reduce", "embedding", TransferKind::kAllReduce,
                table * config.software->gradient_bytes(config.precision), mesh.pairs(first, last));
  transfer.participants = 2;
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
  const RankParameters p = stage_parameters(model, parallel, placement_of(config), stage);
  const bool sharded = parallel.zero >= 1;
  return {.dense = static_cast<double>(p.dense()) / (sharded ? parallel.dp : 1),
          .experts = static_cast<double>(p.experts) / (sharded ? expert_replicas(parallel) : 1)};
}

BlockId optimizer_block(ProgramBuilder& program, const LlmConfig& model,
                        const TrainingConfig& config, int stage) {
  const Mesh& mesh = program.mesh();
  const bool sharded = config.parallel.zero >= 1;
  const RankParameters parameters =
      stage_parameters(model, config.parallel, placement_of(config), stage);
  const double gradient = config.software->gradient_bytes(config.precision);
  const ReplicaSync sync(mesh, parameters, stage, gradient);
  BlockBuilder block(program, stage);
  // Megatron-LM multiplies gradients by 1 / replicas before it adds them up.
  block.kernel(optimizer_kernel("gradient scale", static_cast<double>(parameters.total()),
                                {gradient, gradient, 1}),
               Category::kOptimizer);
  sync.over_tensor_ranks(block);
  reduce_tied_embedding(block, mesh, model, config, stage);
  sync.over_replicas(block, sharded ? TransferKind::kReduceScatter : TransferKind::kAllReduce,
                     "gradients", gradient);
  const double updated = optimizer_shard(model, config, stage).total();
  for (const Kernel& kernel : optimizer_kernels(updated, config.precision, *config.software))
    block.kernel(kernel, Category::kOptimizer);
  if (sharded) sync.over_replicas(block, TransferKind::kAllGather, "weights", kWeightBytes);
  return block.finish("optimizer " + std::to_string(stage));
}

}  // namespace orrery
