// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/location.h"

namespace orrery::config {

/// Where a node was written: a place in a file, a `--set` option, or the default of the schema.
struct Origin {
  enum class Kind { kFile, kOverride, kDefault };
  Kind kind = Kind::kDefault;
  std::shared_ptr<const std::string> file;  ///< shared by all nodes of a file; the option's text
  int line = 0;
  int column = 0;

  Location location() const { return {file ? *file : std::string(), line, column}; }
  /// "file:line:column", "--set" or "default".
  std::string text() const;
};

/// A YAML value that knows where it was written. Maps keep the order of the text. Values are copied
/// deeply.
class Node {
 public:
  enum class Kind { kNull, kScalar, kSequence, kMap };
  struct Entry;
  static constexpr int kLastLayer = std::numeric_limits<int>::max();

  Node() = default;
  static Node null(Origin origin);
  static Node scalar(std::string text, Origin origin, bool quoted = false);
  static Node sequence(Origin origin);
  static Node map(Origin origin);

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_scalar() const { return kind_ == Kind::kScalar; }
  bool is_sequence() const { return kind_ == Kind::kSequence; }
  bool is_map() const { return kind_ == Kind::kMap; }
  const Origin& origin() const { return origin_; }
  Location where() const { return origin_.location(); }

  const std::string& text() const { return text_; }  ///< text of a scalar
  bool quoted() const { return quoted_; }            ///< a scalar in quotes or a text block
  /// Characters that the scalar takes in its file.
  int length() const;

  const std::vector<Node>& items() const { return items_; }  ///< items of a sequence
  void append(Node item);
  Node& item(std::size_t index) { return items_.at(index); }

  const std::vector<Entry>& entries() const { return entries_; }  ///< entries of a map
  /// The value of a key, or nullptr (also if this is no map).
  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
  /// The value at a dotted path; list items by their index. nullptr if there is none.
  const Node* at_path(std::string_view path) const;
  /// Where a key is written; that of the map if it is not there.
  const Origin& key_origin(std::string_view key) const;
  /// Adds a key or replaces its value.
  void set(const std::string& key, Node value, Origin key_origin);
  void erase(std::string_view key);
  /// Begins to lay another map over this one.
  int add_layer() { return ++layers_; }
  /// Says which layer wrote the value of a key: the last one where an option did.
  void set_layer(std::string_view key, int layer = kLastLayer);
  void take_origin(Origin origin) { origin_ = std::move(origin); }
  /// Gives everything below one origin: what a `--set` brings.
  void relocate(const Origin& origin);

  /// The map that a what-if changed, as it was before: the file that `extends` names, or the map
  /// before the first `--set`. Null if nothing changed it.
  const std::shared_ptr<const Node>& before() const { return before_; }
  void set_before(std::shared_ptr<const Node> before);
  /// Keeps this map as before(), and does nothing when it is called again: all `--set` together are
  /// one what-if.
  void begin_what_if();

 private:
  Node(Kind kind, Origin origin);

  Kind kind_ = Kind::kNull;
  bool quoted_ = false;
  Origin origin_;
  std::string text_;
  std::vector<Node> items_;
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t, std::less<>> index_;  // position in entries_ by key
  int layers_ = 0;                                         // maps that were laid over this one
  std::shared_ptr<const Node> before_;
  bool in_what_if_ = false;
};

struct Node::Entry {
  std::string key;
  Origin key_origin;
  Node value;
  int layer = 0;  ///< number of the map that wrote it; higher ones are laid over lower ones
};

/// Lays `over` on `base`: maps merge, everything else replaces. A map with the key `value` is a
/// Fact and replaces too, because a new value must not keep the source of the old one.
Node merge(const Node& base, const Node& over);

}  // namespace orrery::config
