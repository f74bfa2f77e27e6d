// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/app/experiments/core/experiment.h"
#include "tests/properties/random/draw.h"

namespace orrery {

/// What a user would type after `orrery run` to see an experiment again.
struct RandomExperiment {
  std::string base;                      ///< "training": a file beside this one
  std::vector<std::string> assignments;  ///< arguments of `--set`

  std::string file() const;
  std::string command_line() const;
  /// The same with further assignments.
  RandomExperiment with(const std::vector<std::string>& more) const;
};

/// One of all kinds, on any shipped system of at most 1,024 ranks, of any shipped model, plan,
/// batch and precision. Some cannot be: loading them throws config::ConfigError.
RandomExperiment draw_as_sold(Draw& draw);

/// A training step among them.
RandomExperiment draw_training_as_sold(Draw& draw);

/// The same, every second one on hardware with a changed figure.
RandomExperiment draw_experiment(Draw& draw);

/// The number of a configured quantity times `factor`, as an assignment; nothing where the
/// experiment does not have it.
std::optional<std::string> scaled(const LoadedExperiment& loaded, const std::string& path,
                                  double factor);

}  // namespace orrery
