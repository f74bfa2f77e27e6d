// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace orrery {

/// The path of another file that a configuration names. It is written relative to the file it
/// stands in and held relative to the working directory, ready to be opened.
struct FilePath {
  std::string path;

  bool empty() const { return path.empty(); }
  bool operator==(const FilePath&) const = default;
};

}  // namespace orrery
