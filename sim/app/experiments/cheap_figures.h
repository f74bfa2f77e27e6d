// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/experiments/steps/model_experiment.h"
#include "sim/units/quantity.h"

namespace orrery {

/// The model of a step, built once for experiments that have the same one. Serves one thread.
class StepModel {
 public:
  const LlmConfig& of(const ModelExperiment& experiment) const;

 private:
  mutable std::optional<LlmConfig> built_;
};

/// What follows from the keys of an experiment without simulating it.
struct CheapFigure {
  std::string name;            ///< "ranks", "memory.bytes"
  std::string help;            ///< one line
  bool is_flag = false;        ///< 0 or 1
  Dimension dimension = {};    ///< dimension of a number
  bool needs_machine = false;  ///< only of experiments whose values can stand together
  /// The figure of an experiment of the same kind. @throws config::KeyError where its plan cannot
  /// be
  std::function<double(const Experiment& experiment, const StepModel& model)> of;
};

/// The figures that an experiment has, by its kind.
std::vector<CheapFigure> cheap_figures(const Experiment& experiment);

/// Help text of a figure, one line; empty if no kind of experiment has a figure of this name.
std::string figure_help(const std::string& name);

/// Why an experiment has no figure of a name that others have; empty: no kind has it.
std::string missing_figure(const Experiment& experiment, const std::string& name);

/// Whether the values of an experiment can stand together, as far as that is told without building
/// its graph: keys that exclude each other, ranks that the machine has, extents that divide.
/// @param node of an experiment of the same kind with the same keys
bool can_be(const Experiment& experiment, const config::Node& node, const StepModel& model);

}  // namespace orrery
