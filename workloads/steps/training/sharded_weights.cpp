// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/sharded_weights.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/ops/kernels.h"
#include "workloads/plan/stages.h"

namespace orrery {
namespace {

bool has_replicas(const LlmConfig& model, const TrainingConfig& config) {
  return config.layers_only == 0 &&
         (config.parallel.replicas() > 1 || model.has_moe() || placement_of(config).copies() > 1);
}

bool shards_gradients(const TrainingConfig& config) {
  return config.parallel.zero >= 2 && config.layers_only == 0;
}
bool shards_weights(const TrainingConfig& config) {
  return config.parallel.zero >= 3 && config.layers_only == 0;
}

/// What the host has to do with a copy: the time that it takes to issue it, and whether it waits.
struct HostWork {
  Seconds issue;
  bool waits = false;
};

/// A kernel of its own that moves `elements` parameters.
void append_copy(BlockBuilder& block, const std::string& name, double elements, StreamCost cost,
                 HostWork host = {}) {
  if (elements <= 0) return;
  Kernel copy = elementwise(name, static_cast<std::int64_t>(std::ceil(elements)), 1, cost);
  copy.issue = host.issue;
  copy.host_waits = host.waits;
  block.kernel(copy, Category::kCompute);
}

/// Software that keeps operands of narrow products wide casts gathered weights in every pass by
/// scales of their own, whose largest values are found before (pytorch/ao
/// torchao/float8/float8_linear.py: forward and backward have hp_tensor_to_float8_dynamic of the
/// weight; AQT in MaxText). Transformer Engine keeps what it has cast.
void cast_gathered(BlockBuilder& block, const RankParameters& parameters,
                   const TrainingConfig& config) {
  const TrainingSoftware& software = *config.software;
  const double wide = training_bytes(config.precision);
  const bool casts = software.scaling(config.precision) == NarrowScaling::kCurrent &&
                     !software.keeps_narrow_inputs.value &&
                     software.gathered_bytes(config.precision) >= wide;
  if (!shards_weights(config) || !casts || config.lora) return;
  const double elements = real(parameters.quantised());
  append_copy(block, "gathered weights largest", elements, {wide, 0, 1});
  append_copy(block, "gathered weights cast", elements, {wide, element_bytes(config.precision), 2});
}

/// Units that gathers run ahead of the pass.
std::size_t lead_of(const TrainingConfig& config, Pass::Kind pass, std::size_t units) {
  if (!shards_weights(config)) return units;
  const TrainingSoftware& software = *config.software;
  const bool ahead = pass == Pass::Kind::kForward ? software.forward_prefetch.value
                                                  : software.backward_prefetch.value;
  return ahead ? 1 : 0;
}

}  // namespace

Seconds parts_issue(const TrainingConfig& config, std::int64_t tensors) {
  if (config.software->gather_copies.value == Fusion::kFused) return Seconds(0);
  return Seconds(config.software->launch_issue.value.base() *
                 real(tensors * config.parallel.shards()));
}

SyncPasses gathering_passes(const LlmConfig& model, const TrainingConfig& config) {
  if (!has_replicas(model, config)) return SyncPasses::kNone;
  if (shards_weights(config)) {
    const bool drops = config.software->reshard_after_forward.value || config.parallel.pp == 1;
    return drops ? SyncPasses::kEvery : SyncPasses::kOne;
  }
  return config.software->weight_gather_overlap.value ? SyncPasses::kOne : SyncPasses::kNone;
}

bool gathers_again(const TrainingConfig& config) {
  return shards_weights(config) && config.software->reshard_after_forward.value;
}

SyncPasses reducing_passes(const LlmConfig& model, const TrainingConfig& config) {
  if (!has_replicas(model, config)) return SyncPasses::kNone;
  if (shards_gradients(config)) {
    const bool every = config.software->gradient_sync.value == GradientSync::kEvery;
    return every ? SyncPasses::kEvery : SyncPasses::kOne;
  }
  return config.software->gradient_reduction_overlap.value ? SyncPasses::kOne : SyncPasses::kNone;
}

bool has_fresh_gradients(const TrainingConfig& config) {
  return shards_gradients(config) && config.software->gradient_sync.value == GradientSync::kEvery;
}

UnitGathers::UnitGathers(BlockBuilder& block, const ReplicaSync& sync, const TrainingConfig& config,
                         Pass::Kind pass, std::vector<RankParameters> units)
    : block_(block),
      sync_(sync),
      config_(config),
      units_(std::move(units)),
      lead_(lead_of(config, pass, units_.size())) {}

void UnitGathers::next() {
  const std::size_t until = std::min(units_.size(), next_ + lead_ + 1);
  while (gathers_.size() < until) gather(gathers_.size());
  for (const OperatorId gather : gathers_[next_]) block_.need(gather);
  if (shards_weights(config_) && config_.software->gather_copies.value == Fusion::kApart) {
    const double weight = training_bytes(config_.precision);
    append_copy(block_, "gathered weights copy", real(units_[next_].total()), {weight, weight, 0},
                {parts_issue(config_, units_[next_].matrices)});
  }
  cast_gathered(block_, units_[next_], config_);
  ++next_;
}

void UnitGathers::gather(std::size_t unit) {
  const RankParameters& parameters = units_[unit];
  const bool master = config_.software->weight_shards.value == WeightShards::kMaster;
  if (shards_weights(config_) && master && !config_.lora) {
    const OptimizerShard shard = shard_of(parameters, config_);
    append_copy(block_, "weight shard cast", shard.total(),
                {4, training_bytes(config_.precision), 0});
  }
  // Where the host deals with the parts of ranks it waits for the device before each gather.
  if (shards_weights(config_) && parts_issue(config_, 1).base() > 0)
    append_copy(block_, "gathered weights buffer", real(parameters.total()),
                {0, training_bytes(config_.precision), 0}, {Seconds(0), true});
  std::vector<OperatorId>& gathers = gathers_.emplace_back();
  for (Transfer& transfer : sync_.gather(parameters))
    gathers.push_back(shards_weights(config_) ? block_.beside(std::move(transfer), kDataStream)
                                              : block_.ahead(std::move(transfer), kDataStream));
}

void copy_gradients(BlockBuilder& block, const RankParameters& parameters,
                    const TrainingConfig& config) {
  if (!shards_gradients(config) || config.software->reduction_copies.value == Fusion::kFused)
    return;
  append_copy(
      block, "gradient copy", real(parameters.total()),
      {training_bytes(config.precision), config.software->gradient_bytes(config.precision), 0},
      {parts_issue(config, parameters.matrices + parameters.vectors)});
}

Bytes unit_weights(const LlmConfig& model, const TrainingConfig& config, int stage) {
  if (!shards_weights(config)) return {};
  const Placement placement = placement_of(config);
  std::int64_t largest = 0;
  for (const std::int64_t i :
       layers_of_stage(model.layer_count(), config.parallel, placement, stage, config.mtp))
    largest = std::max(largest, layer_parameters(model, model.layer(i), config.parallel).total());
  const RankParameters all =
      stage_parameters(model, config.parallel, placement, stage, {true, config.mtp});
  const RankParameters layers =
      stage_parameters(model, config.parallel, placement, stage, {false, config.mtp});
  const bool both = placement.holds(stage, 0) && placement.holds(stage, placement.slices() - 1);
  const bool copied = model.tied_embeddings && unties_tables(config) && both;
  const std::int64_t ends =
      (all - layers).total() + (copied ? embedding_parameters(model, config.parallel.tp).split : 0);
  const TrainingSoftware& software = *config.software;
  const std::int64_t dropped =
      software.end_units.value == EndUnits::kApart && placement.holds(stage, 0)
          ? embedding_parameters(model, config.parallel.tp).total()
          : 0;
  const bool two = software.forward_prefetch.value || software.backward_prefetch.value;
  const std::int64_t units = gathers_again(config) ? largest * (two ? 2 : 1) : layers.total();
  return Bytes(real(ends - dropped + std::min(units, layers.total())) *
               training_bytes(config.precision));
}

bool makes_gradients(const TrainingConfig& config) {
  if (config.optimizer_in_backward) return true;
  if (!config.software->releases_gradients.value || config.layers_only > 0) return false;
  const std::vector<Pass> passes = schedule_of(config).passes(pipeline_shape(config), 0);
  return std::ranges::none_of(passes, &Pass::with_next);
}

GradientMemory gradient_memory(const RankParameters& parameters, const TrainingConfig& config) {
  const TrainingSoftware& software = *config.software;
  const double sum = software.gradient_bytes(config.precision);
  GradientMemory memory;
  memory.kept = Bytes(sum * (has_fresh_gradients(config) ? shard_of(parameters, config).total()
                                                         : real(parameters.total())));
  if (!has_fresh_gradients(config)) return memory;
  const bool apart =
      software.reduction_copies.value == Fusion::kApart && software.bucket_buffers.value == 0;
  memory.whole =
      Bytes(real(parameters.total()) * (training_bytes(config.precision) + (apart ? sum : 0)));
  return memory;
}

Bytes bucket_buffers(const TrainingConfig& config) {
  if (!shards_gradients(config)) return {};
  const TrainingSoftware& software = *config.software;
  return Bytes(real(software.bucket_buffers.value) * software.bucket_parameters.value *
               training_bytes(config.precision));
}

StepCopies step_copies(double elements, const TrainingConfig& config) {
  if (config.software->step_gradients.value == StepGradients::kKept) return {};
  // DeepSpeed f57fc4c runtime/zero/config.py: sub_group_size.
  constexpr double kSubGroup = 1e9;
  const double group = shards_weights(config) ? std::min(elements, kSubGroup) : elements;
  return {Bytes(group * config.software->gradient_bytes(config.precision)), Bytes(group * 4)};
}

}  // namespace orrery
