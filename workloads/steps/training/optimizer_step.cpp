// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/optimizer_step.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/ops/kernels.h"
#include "workloads/plan/stages.h"
#include "workloads/steps/training/muon.h"
#include "workloads/steps/training/sharded_weights.h"

namespace orrery {
namespace {

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
/// table is the head too, that on which a decoder begins behind an encoder, and of modules of
/// multi-token prediction.
std::vector<int> table_stages(const LlmConfig& model, const TrainingConfig& config) {
  const Placement placement = placement_of(config);
  std::set<int> stages = {placement.place(0).rank};
  const auto add = [&](int slice) {
    const int stage = placement.place(slice).rank;
    if (!placement.holds(stage, 0)) stages.insert(stage);
  };
  const std::int64_t encoder = model.encoder_layers();
  const auto slices = slice_layers(model.layer_count(), config.parallel, placement, config.mtp);
  for (int slice = 0; encoder > 0 && slice < placement.slices(); ++slice) {
    if (slices[static_cast<std::size_t>(slice)].holds(encoder)) add(slice);
  }
  if (model.tied_embeddings) add(placement.slices() - 1);
  if (config.mtp > 0) add(module_slice(config.parallel, placement));
  return {stages.begin(), stages.end()};
}

/// They add up its gradients.
void reduce_tables(BlockBuilder& block, const Mesh& mesh, const LlmConfig& model,
                   const TrainingConfig& config, int stage) {
  if (config.lora) return;  // frozen
  const std::vector<int> stages = table_stages(model, config);
  if (stages.size() == 1 || std::ranges::find(stages, stage) == stages.end()) return;
  const double table = static_cast<double>(embedding_parameters(model, mesh.parallel().tp).split);
  const double kept = has_fresh_gradients(config) ? 1.0 / config.parallel.shards() : 1;
  Transfer transfer = optimizer_transfer(
      "tied embedding all_reduce", "embedding", TransferKind::kAllReduce,
      table * kept * config.software->gradient_bytes(config.precision), mesh.across(stages));
  transfer.participants = static_cast<int>(stages.size());
  block.collective(std::move(transfer), kDataStream);
}

/// Where norms of parts of the gradients are added up: over ranks that hold other parts, and with
/// the distributed optimizer over all (Megatron-Core optimizer/clip_grads.py, optimizer.py:
/// get_grad_stats_parallel_group).
Mesh::Groups norm_groups(const Mesh& mesh, bool sharded) {
  const int stages = mesh.parallel().pp;
  Mesh::Groups groups = mesh.groups({"tp"}, 0);
  for (int stage = 1; stage < stages; ++stage) {
    const Mesh::Groups more = mesh.groups({"tp"}, stage);
    for (std::size_t g = 0; g < groups.size(); ++g)
      groups[g].insert(groups[g].end(), more[g].begin(), more[g].end());
  }
  if (!sharded) return groups;
  Mesh::Groups all(1);
  for (const std::vector<int>& group : groups)
    all.front().insert(all.front().end(), group.begin(), group.end());
  return all;
}

/// Vectors stay gathered for a step where the host deals with the parts of ranks (zero 3), behind
/// which it gathers them again, part by part; their bytes are next to nothing.
void append_kept_vectors(BlockBuilder& block, const LlmConfig& model, const TrainingConfig& config,
                         const RankParameters& parameters) {
  const Seconds issue = parts_issue(config, parameters.vectors);
  if (config.parallel.zero < 3 || config.layers_only > 0 || issue.base() == 0) return;
  const double weight = training_bytes(config.precision);
  Kernel copy = optimizer_kernel("kept weights copy", real(parameters.vectors * model.hidden),
                                 {weight, weight, 0});
  copy.issue = issue;
  block.kernel(copy, Category::kOptimizer);
}

/// Every stage has to have its gradients before any goes on.
void reduce_norm(BlockBuilder& block, const Mesh& mesh, const TrainingConfig& config) {
  constexpr double kNorm = 4;
  Transfer transfer =
      optimizer_transfer("gradient norm all_reduce", "norm", TransferKind::kAllReduce, kNorm,
                         norm_groups(mesh, config.parallel.zero >= 1));
  if (transfer.groups.front().size() < 2) return;
  transfer.participants = mesh.parallel().pp;
  block.collective(std::move(transfer), kDataStream);
}

/// Elements of matrices outside of experts: those that are pruned.
double sparse_elements(const LlmConfig& model, const TrainingConfig& config, int stage) {
  return config.sparse_weights ? matrix_elements(model, config, stage).dense : 0;
}

Transfer host_transfer(const std::string& name, HostCopy copy, double bytes,
                       const std::vector<int>& ranks) {
  Transfer transfer = optimizer_transfer(name, "host", TransferKind::kSendReceive, bytes,
                                         runs_of(Mesh::Groups{ranks}, 1));
  transfer.host = copy;
  return transfer;
}

/// The host updates `elements`: gradients of 4 bytes go there; a fused Adam reads 16 bytes of its
/// memory and writes 12, and weights are cast there (4, 2), of which 2 bytes come back
/// (Megatron-Core hybrid_optimizer.py). With overlap each tensor on its own, else all at once.
class HostUpdate {
 public:
  HostUpdate(BlockBuilder& block, std::vector<int> ranks, double elements, double weight)
      : block_(block), ranks_(std::move(ranks)), elements_(elements), weight_(weight) {}

  void begin(std::int64_t parts) {
    const std::optional<OperatorId> here = block_.cursor();
    const double part = elements_ / real(parts);
    for (std::int64_t i = 0; i < parts; ++i) {
      block_.move_to(here);
      step("gradients to host", {HostEnd::kHost, true}, 4 * part, kHostStream);
      step("adam on host", {HostEnd::kMemory, true}, (16 + 12 + 4 + weight_) * part,
           kHostUpdateStream);
      step("weights from host", {HostEnd::kHost, false}, weight_ * part, kHostReturnStream);
    }
    last_ = block_.cursor();
    block_.move_to(here);
  }
  /// What follows waits for all weights.
  void end() {
    if (last_) block_.need(*last_);
  }

 private:
  void step(const std::string& name, HostCopy copy, double bytes, Stream stream) {
    block_.collective(host_transfer(name, copy, bytes, ranks_), stream);
  }

  BlockBuilder& block_;
  std::vector<int> ranks_;
  double elements_, weight_;
  std::optional<OperatorId> last_;
};

/// Layers of a stage: tensors of which a host has one under way while it updates another.
std::int64_t host_parts(const LlmConfig& model, const TrainingConfig& config, int stage) {
  if (!config.optimizer_offload.overlap) return 1;
  const auto layers = layers_of_stage(model.layer_count(), config.parallel, placement_of(config),
                                      stage, config.mtp);
  return std::max<std::int64_t>(1, std::ssize(layers));
}

}  // namespace

Bytes paged_moments(const TrainingConfig& config, int stage) {
  const auto at = static_cast<std::size_t>(stage);
  return at < config.moments_on_host.size() ? config.moments_on_host[at] : Bytes();
}

void append_update(BlockBuilder& block, const Mesh& mesh, const LlmConfig& model,
                   const TrainingConfig& config, int stage, const UpdatePart& part) {
  const StageUpdate& update = part.update;
  const double gradient = config.software->gradient_bytes(config.precision);
  const auto run = [&](const Kernel& kernel) { block.kernel(kernel, Category::kOptimizer); };
  const OptimizerStates& states = config.optimizer_states;
  const UpdateBytes bytes = update_bytes(config.precision, *config.software, states);
  for (const Kernel& kernel : gradient_preparation(
           update.total(), config.precision, *config.software, config.gradient_clipping, states))
    run(kernel);
  if (config.gradient_clipping) {
    reduce_norm(block, mesh, config);
    run(clipping_kernel(update.total(), bytes.gradient));
  }
  const double on_host = update.others * config.optimizer_offload.fraction;
  std::optional<HostUpdate> host;
  if (on_host > 0) {
    host.emplace(block, mesh.stage(stage), on_host, training_bytes(config.precision));
    host->begin(host_parts(model, config, stage));
  }
  const double others = update.others - on_host;
  const double paged = part.paged.base();
  const auto copy_paged = [&](const char* name, bool outward) {
    if (paged > 0)
      block.collective(host_transfer(name, {HostEnd::kHost, outward}, paged, mesh.stage(stage)),
                       kHostStream);
  };
  copy_paged("paged moments from host", false);
  if (config.optimizer == OptimizerKind::kSgd)
    run(sgd_kernel(others, bytes, states));
  else if (others > 0)
    run(adam_kernel(others, bytes, states));
  if (config.optimizer == OptimizerKind::kMuon)
    append_muon(block, mesh, config.muon, updated_matrices(model, config, stage), stage);
  if (update.total() > on_host)
    run(weight_cast(update.total() - on_host, config.precision, gradient, states));
  copy_paged("paged moments to host", true);
  if (on_host > 0) run(optimizer_kernel("gradient clearing", on_host, {0, gradient, 0}));
  if (host) host->end();
}

double sparse_copies(const LlmConfig& model, const TrainingConfig& config, int stage) {
  return 2 * sparse_elements(model, config, stage) *
         stored_weight_bytes(config.precision, {.sparse = true});
}

StageUpdate stage_update(const LlmConfig& model, const TrainingConfig& config, int stage) {
  const RankParameters p = trained_stage(model, config, stage);
  const bool shares = config.parallel.zero >= 1;
  StageUpdate update;
  if (config.optimizer != OptimizerKind::kMuon) {
    update.others = shares ? shard_of(p, config).total() : real(p.total());
    return update;
  }
  const MatrixElements held = matrix_elements(model, config, stage);
  for (const MuonMatrix& matrix : updated_matrices(model, config, stage))
    update.matrices += matrix.elements();
  const double dense = real(p.dense()) - held.dense, experts = real(p.experts) - held.experts;
  update.others = dense + experts;
  if (shares) {
    const RankParameters rest{.whole = static_cast<std::int64_t>(dense),
                              .experts = static_cast<std::int64_t>(experts)};
    update.others = shard_of(rest, config).total();
  }
  return update;
}

Bytes optimizer_moments(const LlmConfig& model, const TrainingConfig& config, int stage) {
  const StageUpdate update = stage_update(model, config, stage);
  const double momentum = moment_bytes(config.optimizer_states.momentum);
  const double variance =
      config.optimizer == OptimizerKind::kSgd ? 0 : moment_bytes(config.optimizer_states.variance);
  return Bytes(update.matrices * momentum +
               update.others * (1 - config.optimizer_offload.fraction) * (momentum + variance));
}

Bytes optimizer_state(const LlmConfig& model, const TrainingConfig& config, int stage) {
  const StageUpdate update = stage_update(model, config, stage);
  const OptimizerKind others =
      config.optimizer == OptimizerKind::kSgd ? OptimizerKind::kSgd : OptimizerKind::kAdam;
  const OptimizerStates& states = config.optimizer_states;
  return Bytes(update.matrices * optimizer_bytes(OptimizerKind::kMuon, config.precision, states) +
               update.others * (1 - config.optimizer_offload.fraction) *
                   optimizer_bytes(others, config.precision, states)) -
         paged_moments(config, stage);
}

void scale_gradients(BlockBuilder& block, const Mesh& mesh, const TrainingConfig& config, int stage,
                     const RankParameters& parameters) {
  const double gradient = config.software->gradient_bytes(config.precision);
  // Megatron-LM multiplies gradients by 1 / replicas before it adds them up.
  if (!has_fresh_gradients(config))
    block.kernel(optimizer_kernel("gradient scale", static_cast<double>(parameters.total()),
                                  {gradient, gradient, 1}),
                 Category::kOptimizer);
  const double kept = has_fresh_gradients(config) ? gradient / config.parallel.shards() : gradient;
  reduce_whole(block, mesh, parameters, kept, stage);
}

BlockId optimizer_block(ProgramBuilder& program, const LlmConfig& model,
                        const TrainingConfig& config, int stage, const RankParameters& reduced) {
  const Mesh& mesh = program.mesh();
  const RankParameters parameters = trained_stage(model, config, stage);
  const ReplicaSync sync(mesh, config, stage);
  BlockBuilder block(program, stage);
  if (!config.optimizer_in_backward) {
    scale_gradients(block, mesh, config, stage, parameters);
    reduce_tables(block, mesh, model, config, stage);
    for (Transfer& transfer : sync.reduction(parameters - reduced))
      block.collective(std::move(transfer), kDataStream);
    append_update(block, mesh, model, config, stage,
                  {stage_update(model, config, stage), paged_moments(config, stage)});
  }
  if (!config.software->weight_gather_overlap.value && config.parallel.zero < 3) {
    for (Transfer& transfer : sync.gather(parameters))
      block.collective(std::move(transfer), kDataStream);
  }
  // Each weight is read, and what masks leave written along either side.
  const double pruned = sparse_elements(model, config, stage);
  const double masked = 2 * stored_weight_bytes(config.precision, {.sparse = true});
  if (pruned > 0)
    block.kernel(
        optimizer_kernel("weight pruning", pruned, {training_bytes(config.precision), masked, 4}),
        Category::kOptimizer);
  append_kept_vectors(block, model, config, parameters);
  return block.finish("optimizer " + std::to_string(stage));
}

}  // namespace orrery
