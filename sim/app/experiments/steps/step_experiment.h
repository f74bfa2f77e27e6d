// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/app/experiments/core/carbon.h"
#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/files/known_names.h"
#include "sim/app/experiments/keys/algorithm_names.h"
#include "sim/app/experiments/keys/enum_names.h"
#include "sim/app/experiments/keys/link_keys.h"
#include "sim/app/experiments/keys/rank_noise.h"
#include "sim/graph/program.h"
#include "sim/results/metric_table.h"
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

  /// Its keys, without those of machines and links.
  static const config::Record& keys();

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
};

/// Adds the keys that all steps have.
template <class T>
config::Schema<T> with_step_keys(config::Schema<T> schema) {
  schema.include(StepExperiment::keys(), [](void* object) -> void* {
    return static_cast<StepExperiment*>(static_cast<T*>(object));
  });
  return schema;
}

/// Declares a metric of all steps.
DeclaredMetric step_metric(const std::string& name, const char* unit, const std::string& meaning,
                           Follows follows = Follows::kNothing);

/// Share of the step that waits for transfers, for tables.
std::string exposed_cell(const RunRecord& record);

}  // namespace orrery
