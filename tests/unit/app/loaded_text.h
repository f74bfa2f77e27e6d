// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/app/experiments/core/experiment.h"
#include "sim/config/load.h"

namespace orrery::test {

/// An experiment of a text, with settings as on the command line.
inline LoadedExperiment load(const std::string& text, const std::vector<std::string>& set = {}) {
  config::Diagnostics diagnostics;
  config::Node node = config::parse_yaml(text, "test.yaml", diagnostics);
  diagnostics.throw_if_errors();
  return load_experiment(std::move(node), set, diagnostics);
}

/// What is said of such a text; empty: nothing is wrong with it.
inline std::string error_of(const std::string& text, const std::vector<std::string>& set = {}) {
  try {
    load(text, set);
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return {};
}

}  // namespace orrery::test
