// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/config/node.h"
#include "sim/machine/accelerator_config.h"
#include "sim/results/answer.h"

namespace orrery {

/// Every value of an accelerator as simulations use it, beside what is published where that
/// differs, with its source; then figures that follow from them, and warnings of facts that cannot
/// be true together.
///
/// As JSON: {"name", "values": [{"path", "text", "value", "unit", "source", "origin", "nameplate",
/// "nameplate_source", "reason"}], ...}, with what follows from them.
/// @param file what the accelerator was read from
Answer describe_accelerator(const std::string& name, const AcceleratorConfig& accelerator,
                            const config::Node& file);

/// An accelerator as it was asked for, and its completed configuration.
struct NamedDevice {
  std::string name;
  config::Node node;
};

/// The values that simulations use, side by side, with what was published where that differs; the
/// ratio is that of the second over the first.
Table compare_accelerators(const std::vector<NamedDevice>& devices);

}  // namespace orrery
