// SPDX-License-Identifier: Apache-2.0
#include "sim/config/place.h"

#include <optional>
#include <string_view>

#include "sim/config/library.h"

namespace orrery::config {
namespace {

/// Who wrote a value, the likeliest to have made the mistake first.
enum class Writer { kOption, kUser, kLibrary };

Writer writer_of(const Origin& origin) {
  if (origin.kind == Origin::Kind::kOverride) return Writer::kOption;
  const std::string library = default_library().root().string() + "/";
  return origin.file && origin.file->starts_with(library) ? Writer::kLibrary : Writer::kUser;
}

struct Written {
  Place place;
  Writer writer = Writer::kLibrary;
};

/// The word that a map was written as, which its one key then has; null for other maps.
const Node* short_form_of(const Node& map) {
  for (const Node::Entry& entry : map.entries()) {
    const Origin& of_value = entry.value.origin();
    if (entry.value.is_scalar() && of_value.kind == map.origin().kind &&
        entry.value.where() == map.where() && entry.key_origin.line == of_value.line &&
        entry.key_origin.column == of_value.column)
      return &entry.value;
  }
  return nullptr;
}

/// The value at a path, or none where nobody wrote it.
std::optional<Written> written_at(const Node& root, std::string_view path) {
  const Node* node = root.at_path(path);
  if (node == nullptr || node->origin().kind == Origin::Kind::kDefault) return {};
  if (const Node* word = node->is_map() ? short_form_of(*node) : nullptr)
    return Written{{word->where(), word->length(), true}, writer_of(word->origin())};
  const std::size_t dot = path.rfind('.');
  const Node* parent = dot == std::string_view::npos ? &root : root.at_path(path.substr(0, dot));
  const std::string_view key = dot == std::string_view::npos ? path : path.substr(dot + 1);
  // What is written in several lines begins at the first of its keys or items, and a map keeps the
  // place of what it is laid over.
  const bool below_key = node->is_sequence() && parent->is_map() &&
                         parent->key_origin(key).line != node->origin().line;
  if ((node->is_map() || below_key) && parent->is_map() &&
      parent->key_origin(key).kind != Origin::Kind::kDefault) {
    const Origin& origin = parent->key_origin(key);
    return Written{{origin.location(), static_cast<int>(key.size()), true}, writer_of(origin)};
  }
  return Written{{node->where(), node->length(), true}, writer_of(node->origin())};
}

}  // namespace

Place place_of(const Node& root, const std::vector<std::string>& paths) {
  std::optional<Written> best;
  for (const std::string& path : paths) {
    const std::optional<Written> written = written_at(root, path);
    if (written && (!best || written->writer < best->writer)) best = written;
  }
  if (best) return best->place;
  std::string_view around = paths.empty() ? std::string_view{} : paths.front();
  while (around.find('.') != std::string_view::npos) {
    around = around.substr(0, around.rfind('.'));
    if (auto written = written_at(root, around)) {
      written->place.exact = false;
      return written->place;
    }
  }
  return {root.where(), 1, false};
}

}  // namespace orrery::config
