// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/app/experiments/enum_names.h"
#include "sim/app/experiments/experiment.h"
#include "sim/app/experiments/link_keys.h"
#include "sim/app/experiments/rank_noise.h"
#include "workloads/llm/enum_names.h"
#include "workloads/llm/model_config.h"
#include "workloads/memory.h"
#include "workloads/parallelism/parallel_config.h"

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

/// What runs beside the kernels of a step and what it leaves to them.
struct StepContention {
  bool transfers = true;  ///< transfers slow the kernels beside them
  static const config::Schema<StepContention>& schema();
};

/// One step of a language model: what training and inference have in common.
struct ModelExperiment : MachineExperiment, LinkKeys {
  ModelConfig model;
  ParallelConfig parallel;
  BatchConfig batch;
  Precision precision = Precision::kBf16;
  Fidelity fidelity = Fidelity::kAuto;
  std::vector<FilePath> measured;  ///< operator tables whose times override the model
  StepContention contention;
  Folding fold = Folding::kAuto;
  NoiseConfig noise;
  int steps = 1;                ///< steps that are replayed with noise
  double memory_reserve = 0.1;  ///< share of the device memory that the job cannot use
  std::string prices = "none";  ///< a name of the library, or a path; "none"

  int ranks() const { return parallel.ranks(); }
  /// Accelerators that the step uses (a rank is a die).
  double accelerators() const { return static_cast<double>(ranks()) / system.accelerator.dies; }
  /// Whether every rank is replayed on its own: noise leaves no two alike.
  bool unfolds() const { return fold == Folding::kOff || noise.any(); }
  Bytes usable_memory() const { return machine().usable_memory(memory_reserve); }

  /// What the ranks of each stage need, under another plan.
  virtual std::vector<MemoryUse> memory(const LlmConfig& llm, const ParallelConfig& plan) const = 0;
  /// What would make a step fit that does not, as a part of a sentence; empty: nothing is known.
  virtual std::string fitting_text() const { return {}; }
  /// @throws config::KeyError for a plan that the model cannot be run by
  virtual void require_plan(const LlmConfig& llm) const = 0;
  /// The step as a program, with its size.
  virtual ModelStep step(const LlmConfig& llm) const = 0;
  /// Whether it says how many sequences the step has.
  virtual bool has_batch() const { return batch.global > 0 || batch.micro > 0; }
  /// "1152", "384/rank": how many sequences the step has.
  virtual std::string batch_text() const = 0;

  void complete(config::Node& node, config::Diagnostics& diagnostics) override;
  void check(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void check_machine(const config::Node& node, config::Diagnostics& diagnostics) const override;
  std::vector<InputFile> input_files() const override;
  void strip_names(nlohmann::ordered_json& configuration) const override;
  void check_plan(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void check_network() const override;
  void explain(const KnownReplay& replay, nlohmann::ordered_json& explanation) const override;
  TableView table() const override;

 protected:
  /// Points at what was written of the keys, or at what holds them.
  static void complain(config::Diagnostics& diagnostics, const config::Node& node,
                       const std::vector<std::string>& keys, std::string message,
                       config::Advice advice = {});
};

/// A schema with the keys that steps of models have.
template <class T>
config::Schema<T> model_schema(const std::string& kind, const std::string& help) {
  using M = ModelExperiment;
  config::Schema<T> schema = with_link_keys(machine_schema<T>(kind, help));
  schema
      .optional_reference("model", static_cast<ModelConfig T::*>(&M::model), "models",
                          "the language model")
      .optional("parallel", static_cast<ParallelConfig T::*>(&M::parallel),
                "how the model is spread over ranks")
      .optional("batch", static_cast<BatchConfig T::*>(&M::batch), "sequences of one step")
      .optional("precision", static_cast<Precision T::*>(&M::precision),
                "number format of weights and matrix operands; where inference is given none, that "
                "of the "
                "checkpoint (quantization_config of the model's file)")
      .optional(
          "fidelity", static_cast<Fidelity T::*>(&M::fidelity),
          "detail of the kernel model: closed form, tile (thread blocks as discrete events: "
          "products, "
          "experts, attention and latent attention; others in closed form), or auto, whichever "
          "predicts a kernel better")
      .optional(
          "measured", static_cast<std::vector<FilePath> T::*>(&M::measured),
          "operator tables (CSV) of this accelerator: kernels that they have take the measured "
          "time")
      .optional("contention", static_cast<StepContention T::*>(&M::contention),
                "what runs beside kernels and what it leaves to them")
      .optional("fold", static_cast<Folding T::*>(&M::fold),
                "auto: ranks that do the same at the same time are replayed as one; off: each on "
                "its own")
      .optional("noise", static_cast<NoiseConfig T::*>(&M::noise),
                "what makes kernels differ by rank and by run; none by default. With it every rank "
                "is replayed on its own")
      .optional("steps", static_cast<int T::*>(&M::steps),
                "steps that are replayed, each with draws of its own for noise.kernels; the result "
                "is that of the step with the median time, and quantiles over all",
                config::between(1, 100000))
      .optional("memory_reserve", static_cast<double T::*>(&M::memory_reserve),
                "share of device memory left to contexts, communication buffers and fragmentation; "
                "0.1 is what vLLM leaves by default (gpu_memory_utilization 0.9)",
                config::between(0, 0.9))
      .optional("prices", static_cast<std::string T::*>(&M::prices),
                "what accelerators cost: a list of configs/prices, a path, or none");
  return schema;
}

}  // namespace orrery
