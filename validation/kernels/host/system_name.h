// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace orrery::measure {

/// Name of a system in the CSV files, from the GPU's name as the driver tells it: "NVIDIA H200" is
/// "h200_sxm". A GPU without a customary name gets its own in lower case, with underscores.
std::string system_name(const std::string& gpu);

}  // namespace orrery::measure
