// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/experiments/model_experiment.h"
#include "workloads/inference/inference.h"
#include "workloads/operators/cache_format.h"

namespace orrery {

/// One step of a fixed batch: prefill, decode, or both mixed.
struct InferenceExperiment final : ModelExperiment {
  InferenceExperiment() { kind = "inference"; }

  Phase phase = Phase::kDecode;
  std::int64_t kv_length = 0;
  MixedBatch mixed;  ///< batch of a mixed step
  CacheFormat kv_precision = CacheFormat::kBf16;
  std::optional<ExpertRoutingConfig> expert_routing;
  std::optional<LoraConfig> lora;  ///< slots for adapters beside the model
  std::int64_t adapters = 0;       ///< different adapters of the step; 0: as many as slots
  bool two_batch_overlap = false;
  static const config::Schema<InferenceExperiment>& schema();

  /// The step under the plan of the experiment.
  /// @throws config::KeyError for a global batch that does not divide
  InferenceConfig inference() const { return inference(parallel); }
  InferenceConfig inference(const ParallelConfig& plan) const;

  std::vector<MemoryUse> memory(const LlmConfig& llm, const ParallelConfig& plan) const override;
  void require_plan(const LlmConfig& llm) const override;
  ModelStep step(const LlmConfig& llm) const override;
  bool has_batch() const override;
  std::vector<InputFile> input_files() const override;
  std::string batch_text() const override;
  void complete(config::Node& node, config::Diagnostics& diagnostics) override;
  void check(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void run(const SimulateOptions& options, RunRecord& record) const override;
};

}  // namespace orrery
