// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/app/questions/describe/catalog.h"

namespace orrery {

/// The software of training runs and of serving engines in the library; details are switches, or
/// rules, each with its value and its source.
std::vector<CatalogEntry> described_software();

/// The version of an engine that a user's file describes. @throws config::ConfigError
CatalogEntry described_software_file(const std::string& path);

}  // namespace orrery
