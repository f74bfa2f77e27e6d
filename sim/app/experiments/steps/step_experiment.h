// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/app/experiments/core/carbon.h"
#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/keys/algorithm_names.h"
#include "sim/app/experiments/keys/enum_names.h"
#include "sim/app/experiments/keys/link_keys.h"
#include "sim/app/experiments/keys/rank_noise.h"
#include "sim/graph/program.h"
#include "sim/serving/engine_costs.h"

namespace orrery {

/// What runs beside the kernels of a step and what it leaves to them.
struct StepContention {
  bool transfers = true;  ///< transfers slow the kernels beside them
  static const config::Schema<StepContention>& schema();
};

/// One step of a program on the ranks of a machine, whatever it computes.
struct StepExperiment : MachineExperiment, LinkKeys {
  Precision precision = Precision::kBf16;
  Fidelity fidelity = Fidelity::kAuto;
  std::vector<FilePath> measured;  ///< operator tables whose times override the model
  StepContention contention;
  Folding fold = Folding::kAuto;
  NoiseConfig noise;
  int steps = 1;                  ///< steps that are replayed with noise
  double memory_reserve = 0.1;    ///< share of the device memory that the job cannot use
  Unused unused = Unused::kIdle;  ///< accelerators of `nodes` systems that have no rank
  std::string prices = "none";    ///< a name of the library, or a path; "none"
  std::optional<CarbonIntensity> carbon_intensity;  ///< none: no CO2 is reported
  std::vector<std::string> algorithms;  ///< collective algorithms: see algorithm_names.h

  virtual int ranks() const = 0;
  Precision products() const override { return precision; }
  /// The step as it is replayed.
  virtual Program program() const = 0;
  /// The part of the model that a kernel of the program is of, for explanations.
  virtual std::string part_of(const Kernel& kernel) const = 0;
  /// The engine's kernels for all-reduces inside a system. Without them NCCL carries all of them.
  virtual std::optional<EngineAllReduce> own_all_reduces() const { return {}; }
  /// SMs that a kernel of the program leaves to exchanges of tokens all the time.
  virtual std::int64_t kept_off(const Kernel& /*kernel*/) const { return 0; }
  /// Accelerators that the step uses (a rank is a die).
  double accelerators() const { return static_cast<double>(ranks()) / system.accelerator.dies; }
  /// Whether every rank is replayed on its own: noise leaves no two alike.
  bool unfolds() const { return fold == Folding::kOff || noise.any(); }
  Bytes usable_memory() const { return machine().usable_memory(memory_reserve); }
  /// What would make a step fit that does not, as parts of a sentence; empty: nothing is known.
  virtual std::string plan_hint() const { return {}; }
  virtual std::string fitting_text() const { return {}; }

  void complete(config::Node& node, config::Diagnostics& diagnostics) override;
  void check_names(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void check_machine(const config::Node& node, config::Diagnostics& diagnostics) const override;
  std::vector<InputFile> input_files() const override;
  void strip_names(nlohmann::ordered_json& configuration) const override;
  void check_network() const override;

 protected:
  /// Complains about noise and prices that cannot be.
  void check_step(const config::Node& node, config::Diagnostics& diagnostics) const;
  /// Points at what was written of the keys, or at what holds them.
  static void complain(config::Diagnostics& diagnostics, const config::Node& node,
                       const std::vector<std::string>& keys, std::string message,
                       config::Advice advice = {});
  static bool is_written(const config::Node& node, std::string_view key);
};

/// Adds the keys that all steps have.
template <class T>
config::Schema<T> with_step_keys(config::Schema<T> schema) {
  using S = StepExperiment;
  schema
      .optional("precision", static_cast<Precision T::*>(&S::precision),
                "number format of weights and matrix operands (MXFP8 is fp8, in training with "
                "software.fp8_scaling: blocks); where inference is given none, that of the "
                "checkpoint (quantization_config of the model's file)")
      .optional(
          "fidelity", static_cast<Fidelity T::*>(&S::fidelity),
          "detail of the kernel model: closed form, tile (thread blocks as discrete events: "
          "products, "
          "experts, attention and latent attention; others in closed form), or auto, whichever "
          "predicts a kernel better")
      .optional(
          "measured", static_cast<std::vector<FilePath> T::*>(&S::measured),
          "operator tables (CSV) of this accelerator: kernels that they have take the measured "
          "time")
      .optional("contention", static_cast<StepContention T::*>(&S::contention),
                "slowdown of kernels by concurrent work")
      .optional("fold", static_cast<Folding T::*>(&S::fold),
                "auto: ranks that do the same at the same time are replayed as one; off: each on "
                "its own")
      .optional("noise", static_cast<NoiseConfig T::*>(&S::noise),
                "what makes kernels differ by rank and by run; none by default. With it every rank "
                "is replayed on its own")
      .optional("steps", static_cast<int T::*>(&S::steps),
                "steps that are replayed, each with draws of its own for noise.kernels; the result "
                "is that of the step with the median time, and quantiles over all",
                config::between(1, 100000))
      .optional(
          "memory_reserve", static_cast<double T::*>(&S::memory_reserve),
          "share of device memory left to contexts and communication buffers: 0.1, as vLLM "
          "leaves by default (gpu_memory_utilization 0.9); in training 0.02, as an H100 shows "
          "with a communicator before anything is loaded",
          config::between(0, 0.9))
      .optional(
          "unused", static_cast<Unused T::*>(&S::unused),
          "accelerators of the systems (`nodes`) without a rank. idle: they draw idle power, "
          "hosts are charged whole, and usd_per_hour is the price of all accelerators. absent: "
          "host power and price are those of the used share")
      .optional("algorithms", static_cast<std::vector<std::string> T::*>(&S::algorithms),
                kAlgorithmsHelp)
      .optional("prices", static_cast<std::string T::*>(&S::prices),
                "price list of accelerators: a name in configs/prices, a path, or none")
      .optional("carbon_intensity",
                static_cast<std::optional<CarbonIntensity> T::*>(&S::carbon_intensity),
                kCarbonIntensityHelp, config::at_least(0));
  return schema;
}

/// Share of the step that waits for transfers, for tables.
std::string exposed_cell(const RunRecord& record);

}  // namespace orrery
