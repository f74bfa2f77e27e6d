// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace orrery::config {

/// A place in a text, 1-based. `line` 0: no position (a command line option, a whole file).
struct Location {
  std::string file;
  int line = 0;
  int column = 0;

  /// "file:line:column", or the file alone.
  std::string text() const;
  bool operator==(const Location&) const = default;
};

}  // namespace orrery::config
