// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "host/environment.h"
#include "host/measurement.h"

namespace orrery::measure {

/// Makes GPU `index` the one of this process, and tells what it is. The context's `state` reads
/// from the management library. @param system name for the CSV files; empty: from the GPU's name.
/// @throws std::runtime_error where there is no such GPU.
Context open_device(int index, const std::string& system);

/// The same, with all that environment.yaml notes.
DeviceReport report_device(int index, const std::string& system);

}  // namespace orrery::measure
