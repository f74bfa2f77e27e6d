// SPDX-License-Identifier: Apache-2.0
#include "sim/config/aliases.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/schema.h"

namespace orrery::config {
namespace {

/// Whether somebody wrote it: a completed configuration has defaults too.
bool is_written(const Node* node) {
  return node != nullptr && node->origin().kind != Origin::Kind::kDefault;
}

/// Sets the value at a dotted path below `node`, whose maps are made where they are missing. Two
/// maps join.
/// @returns false where something else is there
bool put(Node& node, const std::string& path, const Node::Entry& entry) {
  const std::size_t dot = path.find('.');
  const std::string key = path.substr(0, dot);
  Node* child = node.find(key);
  if (dot == std::string::npos) {
    if (is_written(child) && child->is_map() && entry.value.is_map()) {
      for (const Node::Entry& part : entry.value.entries())
        if (!put(*child, part.key, part)) return false;
      return true;
    }
    if (is_written(child)) return false;
    node.set(key, entry.value, entry.key_origin);
    return true;
  }
  if (child == nullptr || child->is_null()) {
    node.set(key, Node::map(entry.key_origin), entry.key_origin);
    child = node.find(key);
  }
  // A default becomes the user's, so that its relations are checked.
  if (!is_written(child)) child->take_origin(entry.key_origin);
  return child->is_map() && put(*child, path.substr(dot + 1), entry);
}

}  // namespace

void rename_aliases(Node& node, const Record& record, Diagnostics& diagnostics) {
  if (record.aliases().empty() || !node.is_map()) return;
  std::vector<Node::Entry> others;
  for (const Node::Entry& entry : node.entries())
    if (record.path_of(entry.key) != nullptr) others.push_back(entry);
  for (const Node::Entry& entry : others) {
    const std::string& path = *record.path_of(entry.key);
    node.erase(entry.key);
    if (put(node, path, entry)) continue;
    diagnostics.error(entry.key_origin.location(), static_cast<int>(entry.key.size()),
                      "'" + entry.key + "' is another name of '" + path + "', which is given too");
  }
}

}  // namespace orrery::config
