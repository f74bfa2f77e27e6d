// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/config/changes.h"
#include "sim/config/leaf.h"
#include "sim/config/output.h"
#include "sim/units/text.h"

namespace orrery::config {
namespace {

using Json = nlohmann::ordered_json;

std::string below(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

/// The value of a Fact, whichever way it is written.
const Node& fact_value(const Node& node) {
  return node.is_map() ? *node.find(kFactKeys.front()) : node;
}

void append_leaves(const Node& node, const Type& type, const std::string& path,
                   std::vector<Leaf>& leaves);

void append_leaves(const Node& node, const Record& record, const std::string& path,
                   std::vector<Leaf>& leaves) {
  for (const Field& field : record.fields()) {
    const Node* value = node.find(field.key);
    if (value != nullptr) append_leaves(*value, *field.type, below(path, field.key), leaves);
  }
}

void append_leaves(const Node& node, const Type& type, const std::string& path,
                   std::vector<Leaf>& leaves) {
  if (is_leaf(type)) return leaves.push_back(leaf_of(node, type, path));
  switch (type.kind) {
    case TypeKind::kNode:
      return;  // its meaning is known only to who reads it
    case TypeKind::kRecord:
      return append_leaves(node, type.record(), path, leaves);
    case TypeKind::kChoice:
      return append_leaves(node, *type.choices().record_of(node), path, leaves);
    case TypeKind::kFact:
      return append_leaves(fact_value(node), *type.element, path, leaves);
    case TypeKind::kOptional:
      if (!node.is_null()) append_leaves(node, *type.element, path, leaves);
      return;
    case TypeKind::kList:
      for (std::size_t i = 0; i < node.items().size(); ++i) {
        append_leaves(node.items()[i], *type.element, below(path, std::to_string(i)), leaves);
      }
      return;
    default:
      break;
  }
  for (const Node::Entry& entry : node.entries()) {
    append_leaves(entry.value, *type.element, below(path, entry.key), leaves);
  }
}

/// The scalars of YAML without a type are texts.
Json canonical_untyped(const Node& node) {
  if (node.is_null()) return {};
  if (node.is_scalar()) return node.text();
  if (node.is_sequence()) {
    Json list = Json::array();
    for (const Node& item : node.items()) list.push_back(canonical_untyped(item));
    return list;
  }
  std::map<std::string, Json> sorted;
  for (const Node::Entry& entry : node.entries()) {
    sorted.emplace(entry.key, canonical_untyped(entry.value));
  }
  return sorted;
}

Json canonical_value(const Node& node, const Type& type) {
  if (is_leaf(type)) return canonical_leaf(node, type);
  switch (type.kind) {
    case TypeKind::kNode:
      return canonical_untyped(node);
    case TypeKind::kRecord:
      return canonical(node, type.record());
    case TypeKind::kChoice:
      return canonical(node, *type.choices().record_of(node));
    case TypeKind::kFact:
      return canonical_value(fact_value(node), *type.element);
    case TypeKind::kOptional:
      return node.is_null() ? Json() : canonical_value(node, *type.element);
    case TypeKind::kList: {
      Json list = Json::array();
      for (const Node& item : node.items()) list.push_back(canonical_value(item, *type.element));
      return list;
    }
    default:
      break;
  }
  std::map<std::string, Json> sorted;
  for (const Node::Entry& entry : node.entries()) {
    sorted.emplace(entry.key, canonical_value(entry.value, *type.element));
  }
  return sorted;
}

/// The values that a what-if replaced, by path: other values follow the change (Schema::follow).
Json written_over(const Node& completed, const Record& record) {
  const Node& before = *completed.before();
  const Changes changes(before, completed);
  Json values = Json::object();
  for (const Leaf& leaf : flatten(before, record)) {
    if (!changes.has(leaf.path)) continue;
    values[leaf.path] = leaf.value ? Json(*leaf.value) : Json(leaf.text);
  }
  if (before.before() != nullptr) values["before"] = written_over(before, record);
  return values;
}

}  // namespace

Leaf leaf_of(const Node& node, const Type& type, const std::string& path) {
  const bool is_quantity = type.kind == TypeKind::kQuantity;
  return {path,
          node.text(),
          number_of(parse_leaf(node, type), type),
          is_quantity ? base_unit(type.dimension) : std::string(),
          node.origin().text(),
          &type};
}

nlohmann::ordered_json canonical_leaf(const Node& node, const Type& type) {
  const Scalar scalar = parse_leaf(node, type);
  if (type.kind == TypeKind::kEnum) return node.text();
  if (type.kind == TypeKind::kPath) {
    return std::filesystem::path(node.text()).lexically_normal().string();
  }
  return std::visit([](const auto& value) { return Json(value); }, scalar);
}

std::vector<Leaf> flatten(const Node& completed, const Record& record) {
  std::vector<Leaf> leaves;
  append_leaves(completed, record, {}, leaves);
  return leaves;
}

nlohmann::ordered_json canonical(const Node& completed, const Record& record) {
  std::map<std::string, Json> sorted;
  for (const Field& field : record.fields()) {
    const Node* value = completed.find(field.key);
    if (value != nullptr) sorted.emplace(field.key, canonical_value(*value, *field.type));
  }
  if (completed.before() != nullptr) sorted.emplace("before", written_over(completed, record));
  return sorted;
}

}  // namespace orrery::config
