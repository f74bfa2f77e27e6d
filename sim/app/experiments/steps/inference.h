// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/experiments/keys/inference_keys.h"
#include "sim/app/experiments/steps/model_experiment.h"
#include "sim/serving/scheduler.h"
#include "workloads/operators/cache_format.h"
#include "workloads/steps/inference/inference.h"

namespace orrery {

/// One step of a fixed batch: prefill, decode, or both mixed.
struct InferenceExperiment final : ModelExperiment {
  InferenceExperiment() { kind = "inference"; }

  Phase phase = Phase::kDecode;
  std::int64_t kv_length = 0;
  std::int64_t images = 0;  ///< images of each prompt, besides its tokens of text
  std::optional<ImageConfig> image;
  MixedBatch mixed;  ///< batch of a mixed step
  CacheFormat kv_precision = CacheFormat::kBf16;
  std::int64_t widened_bits =
      0;  ///< see RankWork::widened_bits; follows from model and accelerator
  std::optional<ExpertRoutingConfig> expert_routing;
  std::optional<LoraConfig> lora;  ///< slots for adapters beside the model
  std::int64_t adapters = 0;       ///< different adapters of the step; 0: as many as slots
  bool two_batch_overlap = false;
  std::optional<config::OneOf<SchedulerConfig>> engine;  ///< whose kernels run; none: as fused
  std::string engine_defaults;                           ///< see follow_release()
  std::optional<SpeculativeConfig> speculative;
  static const config::Schema<InferenceExperiment>& schema();

  /// The step under the plan of the experiment.
  /// @throws config::KeyError for a global batch that does not divide
  InferenceConfig inference() const { return inference(parallel); }
  InferenceConfig inference(const ParallelConfig& plan) const;
  /// Tokens that the step gives on one data parallel rank: of prompts all, of decodes those of the
  /// answers.
  double tokens_given(const InferenceConfig& config) const;

  /// Tokens of an answer that a decode gives.
  double mean_answer() const {
    const bool verifies = speculative && phase != Phase::kPrefill;
    return verifies ? speculative->speculation().mean_tokens() : 1;
  }
  /// Prompts have images, whose tokens are added to those of text.
  void see(InferenceConfig& config) const;
  /// Decodes verify draft tokens, and the step is followed by what makes them.
  void add_drafts(InferenceConfig& config) const;

  std::vector<MemoryUse> memory(const LlmConfig& llm, const ParallelConfig& plan) const override;
  void require_plan(const LlmConfig& llm) const override;
  ModelStep step(const LlmConfig& llm) const override;
  std::vector<std::string> engine_kernels() const override;
  bool of_machines(const std::string& path) const override;
  std::int64_t kept_off(const Kernel& kernel) const override;
  std::optional<EngineAllReduce> own_all_reduces() const override;
  bool has_batch() const override;
  std::vector<InputFile> input_files() const override;
  std::string batch_text() const override;
  std::vector<std::string> batch_paths() const override;
  void complete(config::Node& node, config::Diagnostics& diagnostics) override;
  void check(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void run(const SimulateOptions& options, RunRecord& record) const override;
};

}  // namespace orrery
