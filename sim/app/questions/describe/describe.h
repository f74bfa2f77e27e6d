// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/config/library.h"
#include "sim/results/answer.h"

namespace orrery {

/// `orrery describe [KIND] [NAME...]`. Without words the kinds; with a kind (singular or plural)
/// the list of its names; with names their details. Systems are put side by side; accelerators and
/// systems may be paths of files. Keys are named by their path or the beginning of it.
/// @throws UsageError for a wrong kind or name, with a suggestion;
/// config::ConfigError for a file that is wrong.
Answer describe(const std::vector<std::string>& words,
                const config::Library& library = config::default_library());

}  // namespace orrery
