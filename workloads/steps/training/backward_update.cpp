// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/backward_update.h"

#include <utility>

#include "workloads/base/real.h"
#include "workloads/base/require.h"
#include "workloads/steps/training/optimizer_step.h"
#include "workloads/steps/training/sharded_weights.h"

namespace orrery {

BackwardUpdate::BackwardUpdate(ProgramBuilder& program, BlockBuilder& block, const LlmConfig& model,
                               const TrainingConfig& config, int stage)
    : block_(block),
      mesh_(program.mesh()),
      model_(model),
      config_(config),
      stage_(stage),
      sync_(mesh_, config, stage),
      stage_total_(stage_update(model, config, stage).total()) {}

void BackwardUpdate::add(const RankParameters& parameters) {
  finish();
  if (parameters.total() == 0) return;
  scale_gradients(block_, mesh_, config_, stage_, parameters);
  copy_gradients(block_, parameters, config_);
  for (Transfer& transfer : sync_.reduction(parameters))
    reductions_.push_back(block_.beside(std::move(transfer), kDataStream));
  waiting_ = parameters;
  if (reductions_.empty()) finish();
}

void BackwardUpdate::finish() {
  if (waiting_.total() == 0) return;
  const RankParameters parameters = std::exchange(waiting_, {});
  for (const OperatorId reduction : std::exchange(reductions_, {})) block_.need(reduction);
  const bool shares = config_.parallel.zero >= 1;
  UpdatePart part;
  part.update.others = shares ? shard_of(parameters, config_).total() : real(parameters.total());
  part.paged = paged_moments(config_, stage_) * (part.update.others / stage_total_);
  append_update(block_, mesh_, model_, config_, stage_, part);
}

bool updates_wait(const LlmConfig& model, const TrainingConfig& config) {
  return config.parallel.replicas() > 1 || (model.has_moe() && expert_replicas(config) > 1);
}

bool shares_table(const LlmConfig& model, const TrainingConfig& config) {
  return !config.lora && (model.tied_embeddings || model.has_encoder());
}

void require_backward_update(const LlmConfig& model, const TrainingConfig& c) {
  if (!c.optimizer_in_backward) return;
  const std::string path = "optimizer_in_backward";
  const std::string inside = "an update inside the backward pass ";
  require(!c.gradient_clipping, {"gradient_clipping", path},
          inside + "knows no norm of all gradients to clip them by",
          {{}, {"gradient_clipping: false"}});
  require(c.parallel.pp == 1 && c.parallel.vpp == 1, {"parallel.pp", "parallel.vpp", path},
          inside + "is not modelled with pipeline stages", {"1", {}});
  require(c.micro_batches() == 1, {"batch.global", "batch.micro", path},
          inside + "frees gradients before the next micro-batch could be added to them, got " +
              std::to_string(c.micro_batches()) + " micro-batches",
          {{}, {"batch.micro: " + std::to_string(c.global_batch / c.parallel.dp)}});
  require(c.precision != Precision::kFp16, {"precision", path},
          inside + "comes before the loss scale of fp16 is known to fit", {"bf16", {}});
  require(c.optimizer != OptimizerKind::kMuon, {"optimizer", path},
          inside + "is modelled of adam and sgd", {"adam", {}});
  require(c.optimizer_offload.fraction == 0, {"optimizer_offload", path},
          inside + "is not modelled on the host", {{}, {"optimizer_states.placement: paged"}});
  require(c.mtp == 0, {"mtp", path},
          inside + "is not modelled where modules of multi-token prediction share tables",
          {"0", {}});
  require(c.layers_only == 0, {"layers_only", path}, "layers alone have no optimizer", {"0", {}});
  require(
      !model.has(MixerKind::kSharedBlock), {path},
      inside + "is not modelled for blocks that layers share, which model '" + model.name + "' has",
      {"false", {}});
}

}  // namespace orrery
