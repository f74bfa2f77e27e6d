// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/app/experiments/core/experiment.h"

namespace orrery {

/// What the point identity is the SHA-256 of.
std::string identity_text_of(const Experiment& experiment,
                             const nlohmann::ordered_json& configuration,
                             const std::vector<InputFile>& files);

/// The point identity: of the configuration without what only names things, of `files`, and of the
/// engine.
std::string identity_of(const Experiment& experiment, const nlohmann::ordered_json& configuration,
                        const std::vector<InputFile>& files);

}  // namespace orrery
