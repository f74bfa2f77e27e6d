// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::config {

/// The folder of ready configurations: `<root>/<kind>/<name>.yaml` or, where a kind has folders
/// (one for each maker), `<root>/<kind>/<folder>/<name>.yaml`; kinds are "accelerators", "systems",
/// "models", ... A name stands once in its kind.
class Library {
 public:
  explicit Library(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  /// The names of a kind, sorted.
  std::vector<std::string> names(const std::string& kind) const;
  /// The file that `reference` means when it stands in `from_file`: a plain name is looked up in
  /// the library, anything with a '/' or a YAML or JSON ending is a path relative to the folder of
  /// `from_file`. The file may not exist.
  std::string locate(const std::string& kind, const std::string& reference,
                     const std::string& from_file) const;
  /// Whether a reference is a path instead of a name.
  static bool is_path(std::string_view reference);

 private:
  std::filesystem::path root_;
};

/// The library at $ORRERY_CONFIGS, or the one of the source tree this was built from.
const Library& default_library();

/// The file that was probably meant by a path that leads to none: `reference` with the most alike
/// name of the folder of `path`; empty where no name is alike.
/// @param path `reference` as it opens from the working directory
std::string nearest_file(const std::string& reference, const std::string& path);

/// `path` as it stands in `from_file`, relative to the working directory. Absolute paths stay.
std::string relative_to(const std::string& path, const std::string& from_file);

}  // namespace orrery::config
