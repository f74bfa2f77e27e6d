// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/app/experiments/core/experiment.h"
#include "sim/config/override.h"

namespace orrery {

/// What a sweep or a published row lays over its experiment.
using SettingList = std::vector<config::Assignment>;

/// The entries of a map `{path: value, ...}`.
SettingList settings_of(const config::Node& map);

/// Loads an experiment (a scalar: a path from the file that it stands in; a map: inline) and lays
/// settings over it. Values that cannot stand together are the `contradiction` of the result.
/// @param diagnostics that know the text of that file, to quote it
/// @throws config::ConfigError for other mistakes
LoadedExperiment load_point_with_settings(const config::Node& experiment,
                                          const SettingList& settings,
                                          config::Diagnostics& diagnostics,
                                          const config::Library& library);

}  // namespace orrery
