// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/questions/describe/facts.h"
#include "sim/machine/system_config.h"

namespace orrery {

/// A unit that a figure may be printed in.
struct Scale {
  double base = 1;  ///< SI base units in one
  std::string unit;
};

/// Values of Facts of a system by their keys, as published or as simulations use them; none where
/// the system has no such Fact.
using Values = std::function<std::optional<double>(const std::string& key)>;

/// One row of the comparison of systems.
struct Figure {
  std::string label;
  std::vector<Scale> scales;        ///< ascending; the largest in which no value is below 1 is used
  std::optional<int> decimals;      ///< none: one where a value is below 100, otherwise none
  std::vector<std::string> inputs;  ///< keys of the Facts behind it
  /// In SI base units; none where the system has no such figure.
  std::function<std::optional<double>(const SystemConfig&, const Values&)> value;
  bool of_machine = false;  ///< about the machine that was built of copies of a system
};

/// The Facts of a system that are behind a figure.
std::vector<SeenFact> inputs_of(const Figure& figure, const SystemConfig& system);
/// The figure of a system; none where it has no such figure.
std::optional<double> value_of(const Figure& figure, const SystemConfig& system, bool published);

/// The rows about the whole system, about one package, and about a machine built of systems.
const std::vector<Figure>& all_figures();

}  // namespace orrery
