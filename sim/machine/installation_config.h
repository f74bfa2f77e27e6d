// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "sim/config/declared.h"
#include "sim/config/fact.h"
#include "sim/units/units.h"

namespace orrery {

/// How lists of supercomputers count the fp64 peak of one system from its parts:
///
///   processors + accelerators x units x clock x unit_flops
struct ListedPeakConfig {
  Fact<double> unit_flops;           ///< fp64 FLOP of one unit of an accelerator in a clock
  Fact<FlopsPerSecond> processors;   ///< fp64 of all processors of a system
  std::optional<Fact<Hertz>> clock;  ///< clock of the units; absent: the accelerator's
  std::optional<Fact<FlopsPerSecond>> published;  ///< Rpeak of the whole machine
  static const config::Schema<ListedPeakConfig>& schema();
};

/// The machine that somebody built of copies of a system, and what is published of it. Simulations
/// read none of this: `nodes` of an experiment says how many copies run. `describe system` puts
/// what follows from the parts beside what is published.
struct InstallationConfig {
  std::string name;                           ///< "Frontier, Oak Ridge"
  Fact<int> systems;                          ///< copies of the system
  std::optional<Fact<Watts>> processors;      ///< design power of the processors of a system
  std::optional<Fact<Watts>> power;           ///< published power of the whole machine at load
  std::optional<Fact<double>> cost;           ///< price of the whole machine [USD]
  std::optional<ListedPeakConfig> fp64_peak;  ///< absent: no list has its Rpeak
  static const config::Schema<InstallationConfig>& schema();
};

}  // namespace orrery
