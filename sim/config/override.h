// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "sim/config/schema.h"

namespace orrery::config {

/// A value for a dotted path, with the origin of the path for messages.
struct Assignment {
  std::string path;
  Node value;
  Origin origin;
};

/// Lays one value over a configuration. The path is checked against the schema; list items are
/// given by their index. A file or library entry that the path leads through is loaded first.
void apply_override(Node& root, const Record& record, const Assignment& assignment,
                    Diagnostics& diagnostics, const Library& library);

/// The text of `--set`: "system.accelerator.memory.bandwidth=4 TB/s", the value being YAML. None
/// after an error.
std::optional<Assignment> parse_assignment(const std::string& text, Diagnostics& diagnostics);

/// Applies the text of `--set`: "system.accelerator.memory.bandwidth=4 TB/s", the value being YAML.
void apply_override(Node& root, const Record& record, const std::string& assignment,
                    Diagnostics& diagnostics, const Library& library);

}  // namespace orrery::config
