// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "workloads/parallelism/stages.h"
#include "workloads/training/training.h"

namespace orrery {
namespace {

void require(bool holds, const std::string& message) {
  if (!holds) throw config::ConfigError(message);
}

void require_batch(const LlmConfig& model, const TrainingConfig& c) {
  require(c.global_batch > 0 && c.micro_batch > 0 && c.sequence > 0,
          "batch: global, micro and sequence must be at least 1");
  require(c.global_batch % (c.micro_batch * c.parallel.dp) == 0,
          "batch.global: " + std::to_string(c.global_batch) +
              " sequences do not divide by batch.micro * parallel.dp = " +
              std::to_string(c.micro_batch * c.parallel.dp));
  require(model.positions == 0 || c.sequence <= model.positions,
          "batch.sequence: model '" + model.name + "' has " + std::to_string(model.positions) +
              " positions, got " + std::to_string(c.sequence));
  require(!c.parallel.sp || c.micro_batch * c.sequence % c.parallel.tp == 0,
          "parallel.sp: the tokens of a micro-batch do not divide by tp = " +
              std::to_string(c.parallel.tp));
}

void require_schedule(const TrainingConfig& c) {
  require(c.schedule == "1f1b" || c.schedule == "interleaved",
          "schedule: expected 1f1b or interleaved, got '" + c.schedule + "'");
  require((c.schedule == "interleaved") == (c.parallel.vpp > 1),
          "schedule: interleaved goes with parallel.vpp > 1, 1f1b with vpp 1");
  require(c.parallel.vpp == 1 || c.micro_batches() % c.parallel.pp == 0,
          "schedule: interleaved needs micro-batches in multiples of pp = " +
              std::to_string(c.parallel.pp) + ", got " + std::to_string(c.micro_batches()));
}

void require_layers_only(const LlmConfig& model, const TrainingConfig& c) {
  require(c.layers_only >= 0 && c.layers_only <= model.layer_count(),
          "layers_only: model '" + model.name + "' has " + std::to_string(model.layer_count()) +
              " layers, got " + std::to_string(c.layers_only));
  require(c.layers_only == 0 || (c.parallel.pp == 1 && c.parallel.dp == 1),
          "layers_only: needs pp = 1 and dp = 1");
}

void require_experts(const LlmConfig& model, const TrainingConfig& c) {
  if (!model.has_moe()) return;
  require(model.moe.experts % c.parallel.ep == 0,
          "parallel.ep: " + std::to_string(model.moe.experts) +
              " experts do not divide by ep = " + std::to_string(c.parallel.ep));
  // Experts are not split (etp = 1), so tensor parallel ranks have to take different tokens;
  // Megatron-LM asks the same.
  require(c.parallel.tp == 1 || c.parallel.sp,
          "parallel.sp: training experts with tp > 1 needs sequence parallelism");
}

}  // namespace

void require_supported(const LlmConfig& model, const TrainingConfig& config) {
  require_supported(config.parallel);
  require_divisible(model, config.parallel.tp, config.parallel.ep);
  require_batch(model, config);
  require_schedule(config);
  require_layers_only(model, config);
  require_experts(model, config);
  layer_ranges(trained_model(model, config).layer_count(), config.parallel);
}

}  // namespace orrery
