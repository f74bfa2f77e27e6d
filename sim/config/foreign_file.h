// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/config/node.h"
#include "sim/config/registry.h"

namespace orrery::config {

/// A file in another project's format that may stand where a file of the library does: its path is
/// the value of one key of the struct, and its name the struct's.
struct ForeignFile {
  std::string name_key;              ///< key of the struct that names it
  std::string path_key;              ///< key of the struct that such a file is the value of
  std::vector<std::string> telling;  ///< keys of which such a file has one
};

/// Makes `file` known for a kind of the library ("models").
struct RegisterForeignFile : Registry<ForeignFile>::Register {
  RegisterForeignFile(const std::string& kind, const ForeignFile& file)
      : Register(kind, "", file) {}
};

/// The map that a reference stands for whose file is one of another format; `found` otherwise.
/// @param path of the file that was read
Node in_own_words(Node found, const Node& reference, const std::string& kind,
                  const std::string& path);

}  // namespace orrery::config
