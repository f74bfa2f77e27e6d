// SPDX-License-Identifier: Apache-2.0
#include "sim/config/foreign_file.h"

#include <algorithm>
#include <filesystem>

namespace orrery::config {
namespace {

/// The name of a file without its ending; that of its folder where files of all folders are called
/// alike.
std::string name_of(const std::string& path) {
  const std::filesystem::path file = std::filesystem::absolute(path).lexically_normal();
  const std::string stem = file.stem().string();
  const std::string folder = file.parent_path().filename().string();
  return stem == "config" && !folder.empty() ? folder : stem;
}

}  // namespace

Node in_own_words(Node found, const Node& reference, const std::string& kind,
                  const std::string& path) {
  const ForeignFile* known = Registry<ForeignFile>::find(kind);
  if (known == nullptr || !found.is_map()) return found;
  const ForeignFile& file = *known;
  const bool foreign = std::any_of(file.telling.begin(), file.telling.end(),
                                   [&](const auto& key) { return found.find(key) != nullptr; });
  if (!foreign || found.find(file.name_key) != nullptr || found.find(file.path_key) != nullptr)
    return found;
  const Origin& origin = reference.origin();
  Node own = Node::map(origin);
  own.set(file.name_key, Node::scalar(name_of(path), origin), origin);
  own.set(file.path_key, Node::scalar(reference.text(), origin), origin);
  return own;
}

}  // namespace orrery::config
