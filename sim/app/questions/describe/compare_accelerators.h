// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/config/node.h"
#include "sim/results/table.h"

namespace orrery {

/// An accelerator as it was asked for, and its completed configuration.
struct NamedDevice {
  std::string name;
  config::Node node;
};

/// The values that simulations use, side by side, with what was published where that differs; the
/// ratio is that of the second over the first.
Table compare_accelerators(const std::vector<NamedDevice>& devices);

}  // namespace orrery
