// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/machine/system_config.h"

namespace orrery {

/// Which of the two values of a Fact.
enum class View { kPublished, kSimulated };

/// One configured value behind a figure, as text.
struct Input {
  std::string key;  ///< key of a configuration: "accelerator.memory.capacity"
  std::string published, simulated;
  std::string published_source, simulated_source;
  std::string reason;  ///< why simulations do not use the published value
  bool differs = false;
  bool estimated = false;  ///< the published value is an estimate of ours
};

/// A unit that a figure may be printed in.
struct Scale {
  double base = 1;  ///< SI base units in one
  std::string unit;
};

/// One row of the comparison of systems.
struct Figure {
  std::string label;
  std::vector<Scale> scales;    ///< ascending; the largest in which no value is below 1 is used
  std::optional<int> decimals;  ///< none: one where a value is below 100, otherwise none
  /// In SI base units; none where the system has no such figure.
  std::function<std::optional<double>(const SystemConfig&, View)> value;
  std::function<std::vector<Input>(const SystemConfig&)> inputs;
};

/// The rows about the whole system, then those about one package.
const std::vector<Figure>& system_figures();
const std::vector<Figure>& package_figures();
/// The rows about the machine that was built of copies of a system; systems without one have none.
const std::vector<Figure>& installation_figures();

}  // namespace orrery
