// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/app/experiments/steps/step_experiment.h"
#include "workloads/layers/work/enum_names.h"
#include "workloads/models/config/model_config.h"
#include "workloads/plan/parallel_config.h"
#include "workloads/steps/figures/memory.h"

namespace orrery {

struct ModelStep;

/// Sequences of a step; 0 means derived: global = micro * dp, or micro = global / dp.
struct BatchConfig {
  std::int64_t global = 0;
  std::int64_t micro = 0;
  std::int64_t sequence = 0;          ///< tokens of each sequence (training, prefill)
  std::int64_t encoder_sequence = 0;  ///< those that an encoder reads (training); 0: as many
  static const config::Schema<BatchConfig>& schema();
};

/// One step of a language model: what training and inference have in common.
struct ModelExperiment : StepExperiment {
  ModelConfig model;
  ParallelConfig parallel;
  BatchConfig batch;

  int ranks() const override { return parallel.ranks(); }
  Program program() const override;
  std::string part_of(const Kernel& kernel) const override;
  std::string plan_hint() const override;

  /// What the ranks of each stage need, under another plan.
  virtual std::vector<MemoryUse> memory(const LlmConfig& llm, const ParallelConfig& plan) const = 0;
  /// @throws config::KeyError for a plan that the model cannot be run by
  virtual void require_plan(const LlmConfig& llm) const = 0;
  /// The step as a program, with its size.
  virtual ModelStep step(const LlmConfig& llm) const = 0;
  /// Whether it says how many sequences the step has.
  virtual bool has_batch() const { return batch.global > 0 || batch.micro > 0; }
  /// "1152", "384/rank": how many sequences the step has.
  virtual std::string batch_text() const = 0;
  /// Paths of the configuration whose values batch_text() shows.
  virtual std::vector<std::string> batch_paths() const { return {"batch.global"}; }

  bool has_experts() const override;
  void complete(config::Node& node, config::Diagnostics& diagnostics) override;
  void check(const config::Node& node, config::Diagnostics& diagnostics) const override;
  std::vector<InputFile> input_files() const override;
  void strip_names(nlohmann::ordered_json& configuration) const override;
  void check_plan(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void explain(const KnownReplay& replay, nlohmann::ordered_json& explanation) const override;
  TableView table() const override;
};

template <class T>
config::Schema<T> model_schema(const std::string& kind, const std::string& help) {
  using M = ModelExperiment;
  config::Schema<T> schema = with_link_keys(machine_schema<T>(kind, help));
  schema
      .optional_reference("model", static_cast<ModelConfig T::*>(&M::model), "models",
                          "the language model")
      .optional("parallel", static_cast<ParallelConfig T::*>(&M::parallel),
                "how the model is spread over ranks")
      .optional("batch", static_cast<BatchConfig T::*>(&M::batch), "sequences of one step");
  return with_step_keys(std::move(schema));
}

}  // namespace orrery
