// SPDX-License-Identifier: Apache-2.0
#include "sim/config/override.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <vector>

#include "sim/config/leaf.h"
#include "sim/config/load.h"
#include "sim/config/loader.h"
#include "sim/config/proportional.h"
#include "sim/units/comma_separated.h"
#include "sim/units/spelling.h"

namespace orrery::config {
namespace {

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> parts(1);
  for (const char c : path) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// One assignment on its way down the tree.
class Override {
 public:
  Override(const Assignment& assignment, Diagnostics& diagnostics, const Library& library)
      : diagnostics_(diagnostics),
        loader_(diagnostics, library),
        assignment_(assignment),
        origin_(assignment.origin),
        parts_(split_path(assignment.path)) {}

  void apply(Node& root, const Record& record) { into_record(root, record, 0); }

 private:
  void error(std::string message, std::string suggestion = {},
             std::vector<std::string> notes = {}) {
    diagnostics_.error(origin_.location(), static_cast<int>(assignment_.path.size()),
                       std::move(message), std::move(suggestion), std::move(notes));
  }

  void unknown_key(std::size_t depth, const std::string& where,
                   const std::vector<std::string>& names, std::vector<std::string> notes = {}) {
    if (notes.empty()) notes.push_back("allowed: " + comma_joined(names));
    error("unknown key '" + parts_[depth] + "' in " + where, nearest_name(parts_[depth], names),
          std::move(notes));
  }

  /// A default on the way becomes the user's, so that its relations are checked.
  void take_over(Node& node) {
    if (node.origin().kind == Origin::Kind::kDefault) node.take_origin(origin_);
  }

  /// The value of a key of `node`, made if it is not there; nullptr if `node` holds no keys.
  Node* child_of(Node& node, std::size_t depth) {
    if (node.is_null()) node = Node::map(origin_);
    take_over(node);
    if (!node.is_map()) {
      error("'" + parts_[depth] + "' is no key of " + description(node) + " at " +
            node.origin().text());
      return nullptr;
    }
    const std::string& key = parts_[depth];
    if (node.find(key) == nullptr) node.set(key, Node::null(origin_), origin_);
    return node.find(key);
  }

  /// The parts of a path with the names of the schema.
  void use_own_name(const Record& record, std::size_t depth) {
    const std::string* path = record.path_of(parts_[depth]);
    if (path == nullptr) return;
    const auto at = parts_.erase(parts_.begin() + static_cast<std::ptrdiff_t>(depth));
    const std::vector<std::string> own = split_path(*path);
    parts_.insert(at, own.begin(), own.end());
  }

  void into_record(Node& node, const Record& record, std::size_t depth) {
    rename_aliases(node, record, diagnostics_);
    use_own_name(record, depth);
    if (record.following() && node.is_map() && !node.entries().empty()) node.begin_what_if();
    const Field* field = record.find(parts_[depth]);
    if (field == nullptr) {
      return unknown_key(depth, record.name(), record.keys(), record.notes_on(parts_[depth]));
    }
    Node* child = child_of(node, depth);
    if (child == nullptr) return;
    if (depth + 1 < parts_.size() && !field->library.empty() && !load(*child, field->library)) {
      return;
    }
    if (!has_proportional(field->key)) return into(*child, *field->type, depth + 1);
    const Node before = *child;
    into(*child, *field->type, depth + 1);
    scale_proportional(node, field->key, before);
  }

  /// Replaces a name or an extended map by what it stands for.
  bool load(Node& node, const std::string& kind) {
    if (!node.is_scalar() && !node.is_map()) return true;
    std::optional<Node> found = node.is_scalar() ? loader_.load_referenced(node, kind)
                                                 : loader_.resolve_extends(node, kind);
    if (found) node = std::move(*found);
    return found.has_value();
  }

  void into(Node& node, const Type& type, std::size_t depth) {
    if (depth == parts_.size()) {
      node = assignment_.value;
      return;
    }
    switch (type.kind) {
      case TypeKind::kRecord:
        return into_record(node, type.record(), depth);
      case TypeKind::kChoice:
        return into_choice(node, type.choices(), depth);
      case TypeKind::kOptional:
        return into(node, *type.element, depth);
      case TypeKind::kFact:
        return into_fact(node, depth);
      case TypeKind::kList:
        return into_list(node, type, depth);
      case TypeKind::kMap:
        return into_map(node, type, depth);
      case TypeKind::kNode:
        return node.is_sequence() ? into_list(node, type, depth) : into_node(node, type, depth);
      default:
        error("'" + parts_[depth - 1] + "' is a value and has no key '" + parts_[depth] + "'");
    }
  }

  void into_map(Node& node, const Type& type, std::size_t depth) {
    if (type.names != nullptr && !find_enumerator(*type.names, parts_[depth])) {
      return unknown_key(depth, parts_[depth - 1], names_of(*type.names));
    }
    Node* child = child_of(node, depth);
    if (child != nullptr) into(*child, *type.element, depth + 1);
  }

  /// Another assignment may still say which struct it is: keys that the present one does not have
  /// are put there as they are, for complete() to judge.
  void into_choice(Node& node, const Choices& choices, std::size_t depth) {
    const Record* record = choices.record_of(node);
    const std::string key = parts_[depth];
    if (record != nullptr && record->find(key) != nullptr) {
      into_record(node, *record, depth);
    } else {
      into_node(node, type_of<Node>(), depth);
    }
    node.set_layer(key);
  }

  /// YAML without a type may have any keys.
  void into_node(Node& node, const Type& type, std::size_t depth) {
    Node* child = child_of(node, depth);
    if (child != nullptr) into(*child, type, depth + 1);
  }

  void into_list(Node& node, const Type& type, std::size_t depth) {
    const std::string& part = parts_[depth];
    const std::size_t size = node.items().size();
    std::size_t index = 0;
    const auto [end, failure] = std::from_chars(part.data(), part.data() + part.size(), index);
    if (failure != std::errc{} || end != part.data() + part.size() || index >= size) {
      return error("'" + part + "' is no item of " + parts_[depth - 1] + ", a list of " +
                   std::to_string(size) + " counted from 0");
    }
    take_over(node);
    into(node.item(index), type.element != nullptr ? *type.element : type, depth + 1);
  }

  void into_fact(Node& node, std::size_t depth) {
    const std::vector<std::string> names(kFactKeys.begin(), kFactKeys.end());
    if (std::find(names.begin(), names.end(), parts_[depth]) == names.end()) {
      return unknown_key(depth, parts_[depth - 1], names);
    }
    // A new value must not keep the source of the old one.
    if (parts_[depth] == names.front() && depth + 1 == parts_.size()) {
      node = assignment_.value;
      return;
    }
    if (node.is_scalar()) {
      Node fact = Node::map(node.origin());
      fact.set(names.front(), node, node.origin());
      node = std::move(fact);
    }
    Node* child = child_of(node, depth);
    if (child == nullptr) return;
    if (depth + 1 < parts_.size()) return error("'" + parts_[depth] + "' has no keys");
    *child = assignment_.value;
  }

  Diagnostics& diagnostics_;
  Loader loader_;
  const Assignment& assignment_;
  const Origin& origin_;
  std::vector<std::string> parts_;
};

}  // namespace

void apply_override(Node& root, const Record& record, const Assignment& assignment,
                    Diagnostics& diagnostics, const Library& library) {
  Override(assignment, diagnostics, library).apply(root, record);
}

std::optional<Assignment> parse_assignment(const std::string& assignment,
                                           Diagnostics& diagnostics) {
  const Origin origin{Origin::Kind::kOverride,
                      std::make_shared<const std::string>("--set " + assignment), 0, 0};
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    diagnostics.error(origin.location(), 1,
                      "expected PATH=VALUE, such as system.accelerator.memory.bandwidth='4 TB/s'");
    return std::nullopt;
  }
  const std::string text = assignment.substr(equals + 1);
  const int errors = diagnostics.error_count();
  Node value;
  if (text.find_first_not_of(' ') != std::string::npos) {
    value = parse_yaml(text, *origin.file, diagnostics);
  }
  if (diagnostics.error_count() > errors) return std::nullopt;
  value.relocate(origin);
  return Assignment{assignment.substr(0, equals), std::move(value), origin};
}

void apply_override(Node& root, const Record& record, const std::string& assignment,
                    Diagnostics& diagnostics, const Library& library) {
  if (const auto parsed = parse_assignment(assignment, diagnostics))
    apply_override(root, record, *parsed, diagnostics, library);
}

}  // namespace orrery::config
