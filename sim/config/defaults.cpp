// SPDX-License-Identifier: Apache-2.0
#include "sim/config/defaults.h"

#include "sim/config/leaf.h"

namespace orrery::config {
namespace {

std::string key_text(const Scalar& key, const Type& map) {
  if (map.names == nullptr) return std::get<std::string>(key);
  Type name;
  name.kind = TypeKind::kEnum;
  name.names = map.names;
  return print_leaf(key, name);
}

/// The accessors of records and Facts give addresses only; nothing is written through them here.
void* address_of(const void* value) { return const_cast<void*>(value); }

Node record_node(const Record& record, const void* value) {
  Node node = Node::map({});
  for (const Field& field : record.fields()) {
    node.set(field.key, default_node(field, address_of(value)), {});
  }
  return node;
}

}  // namespace

Node default_node(const Field& field, void* object) {
  return default_node(*field.type, field.address(object));
}

Node default_node(const Type& type, const void* value) {
  if (is_leaf(type)) return Node::scalar(print_leaf(type.load(value), type), {});
  switch (type.kind) {
    case TypeKind::kNode:
      return *static_cast<const Node*>(value);
    case TypeKind::kChoice:
      return Node::null({});
    case TypeKind::kRecord:
      return record_node(type.record(), value);
    case TypeKind::kFact:
      return default_node(*type.element, type.fact_value(address_of(value)));
    case TypeKind::kOptional: {
      const auto children = type.children(value);
      return children.empty() ? Node::null({}) : default_node(*type.element, children[0].second);
    }
    case TypeKind::kList: {
      Node node = Node::sequence({});
      for (const auto& [index, item] : type.children(value)) {
        node.append(default_node(*type.element, item));
      }
      return node;
    }
    default:
      break;
  }
  Node node = Node::map({});
  for (const auto& [key, item] : type.children(value)) {
    node.set(key_text(key, type), default_node(*type.element, item), {});
  }
  return node;
}

}  // namespace orrery::config
