// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/config/diagnostics.h"
#include "sim/config/node.h"

namespace orrery::config {

/// What a message about a configuration points at.
struct Place {
  Location where;
  int length = 1;      ///< characters to underline
  bool exact = false;  ///< the place is what one of the paths names, not something around it
};

/// Where a user looks for what several values say together. Of the paths whose value was written:
/// that of a `--set`, else of a file outside the library, else of the library; the first of equals.
/// Where none was written, the key that holds the first of them, or `root`. A map, and a list
/// below its key, is shown by the key.
Place place_of(const Node& root, const std::vector<std::string>& paths);

}  // namespace orrery::config
