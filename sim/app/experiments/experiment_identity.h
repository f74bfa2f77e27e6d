// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/app/experiments/experiment.h"

namespace orrery {

/// Reads the files that an experiment needs beside its configuration, each once in a process unless
/// it is small, and hashes what was read. Files that its kind does not use stay unread.
/// @throws config::ConfigError for what is wrong with one
std::vector<ExperimentFile> read_files(Experiment& experiment);

/// The point identity: of the configuration without what only names things, of `files`, and of the
/// engine.
std::string identity_of(const nlohmann::ordered_json& configuration,
                        const std::vector<ExperimentFile>& files);

/// @throws config::ConfigError where a file was read again meanwhile and is another one
void require_unchanged(const std::vector<ExperimentFile>& files);

}  // namespace orrery
