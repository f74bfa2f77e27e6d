// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "sim/machine/network_calibration.h"
#include "sim/machine/system_config.h"

namespace orrery {

/// The network calibration that `choice` means for a system: "none" none, a name of the library or
/// a path that one, and "auto" what the system names. Empty: none, or the system has no protocols.
/// @throws config::ConfigError for a name that does not exist
std::string network_calibration_file(const std::string& choice, const SystemConfig& system);

/// A network calibration, read once in a process.
/// @throws config::ConfigError as load_network_calibration()
std::shared_ptr<const NetworkCalibration> loaded_network_calibration(const std::string& file);

}  // namespace orrery
