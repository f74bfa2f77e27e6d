// SPDX-License-Identifier: Apache-2.0
#include "sim/config/leaf.h"

#include <charconv>
#include <cmath>
#include <map>
#include <stdexcept>

#include "sim/config/schema.h"
#include "sim/units/comma_separated.h"
#include "sim/units/spelling.h"
#include "sim/units/text.h"

namespace orrery::config {
namespace {

/// A quoted number is text to YAML and to editors; taking it for a number would hide a slip.
void refuse_quoted(const Node& node, const Type& type) {
  if (node.quoted()) {
    throw UnitError("expected " + expectation(type) + ", got text; remove the quotes");
  }
}

[[noreturn]] void refuse(const Node& node, const Type& type, std::string suggestion = {}) {
  throw UnitError("expected " + expectation(type) + ", got " + description(node),
                  std::move(suggestion));
}

void check_range(std::int64_t value, const std::string& text, const Type& type) {
  if (value < type.lowest || value > type.highest) {
    throw UnitError("'" + text + "' does not fit: integers here go from " +
                    std::to_string(type.lowest) + " to " + std::to_string(type.highest));
  }
}

std::int64_t parse_integer(const Node& node, const Type& type) {
  refuse_quoted(node, type);
  const std::string& text = node.text();
  double value = 0;
  try {
    value = parse_number(text);
  } catch (const UnitError&) {
    const bool quantity = text.find(' ') != std::string::npos;
    if (quantity || text.empty() || text.find_first_of("0123456789") == std::string::npos) {
      refuse(node, type);
    }
    throw;
  }
  if (value != std::nearbyint(value)) refuse(node, type);
  std::int64_t integer = 0;
  const char* first = text.data() + (text[0] == '+' ? 1 : 0);
  const auto [end, error] = std::from_chars(first, text.data() + text.size(), integer);
  // "1e9" is no integer to from_chars, but exact as a double below 2^53.
  constexpr double kExact = 9007199254740992.0;
  if (error != std::errc{} || end != text.data() + text.size()) {
    if (std::abs(value) > kExact) {
      throw UnitError("'" + text + "' is too large for an integer");
    }
    integer = static_cast<std::int64_t>(value);
  }
  check_range(integer, text, type);
  return integer;
}

bool parse_flag(const Node& node, const Type& type) {
  refuse_quoted(node, type);
  if (node.text() == "true") return true;
  if (node.text() == "false") return false;
  // What other YAML dialects take for a flag.
  static const std::map<std::string, std::string, std::less<>> dialects = {
      {"yes", "true"},  {"on", "true"}, {"y", "true"}, {"no", "false"},
      {"off", "false"}, {"n", "false"}, {"1", "true"}, {"0", "false"}};
  const auto found = dialects.find(node.text());
  refuse(node, type,
         found != dialects.end() ? found->second : nearest_name(node.text(), {"true", "false"}));
}

std::int64_t parse_enumerator(const Node& node, const Type& type) {
  const std::optional<std::int64_t> value = find_enumerator(*type.names, node.text());
  if (!value) refuse(node, type, nearest_name(node.text(), names_of(*type.names)));
  return *value;
}

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

bool is_leaf(const Type& type) { return type.store != nullptr; }

Scalar parse_leaf(const Node& node, const Type& type) {
  if (!node.is_scalar()) refuse(node, type);
  switch (type.kind) {
    case TypeKind::kQuantity:
      return parse_quantity(node.text(), type.dimension);
    case TypeKind::kReal:
      refuse_quoted(node, type);
      return parse_number(node.text());
    case TypeKind::kInteger:
      return parse_integer(node, type);
    case TypeKind::kFlag:
      return parse_flag(node, type);
    case TypeKind::kEnum:
      return parse_enumerator(node, type);
    case TypeKind::kText:
    case TypeKind::kPath:
      return node.text();
    default:
      throw std::logic_error("parse_leaf: not a leaf type");
  }
}

std::string print_leaf(const Scalar& value, const Type& type) {
  switch (type.kind) {
    case TypeKind::kQuantity:
      return print_quantity(std::get<double>(value), type.dimension);
    case TypeKind::kReal:
      return print_number(std::get<double>(value));
    case TypeKind::kInteger:
      return std::to_string(std::get<std::int64_t>(value));
    case TypeKind::kFlag:
      return std::get<bool>(value) ? "true" : "false";
    case TypeKind::kText:
    case TypeKind::kPath:
      return std::get<std::string>(value);
    case TypeKind::kEnum:
      for (const auto& [name, number] : *type.names) {
        if (number == std::get<std::int64_t>(value)) return name;
      }
      throw std::logic_error("an enumerator without a name in EnumNames");
    default:
      throw std::logic_error("print_leaf: not a leaf type");
  }
}

std::optional<double> number_of(const Scalar& value, const Type& type) {
  if (type.kind == TypeKind::kInteger) return static_cast<double>(std::get<std::int64_t>(value));
  if (const double* number = std::get_if<double>(&value)) return *number;
  return std::nullopt;
}

std::vector<std::string> names_of(const EnumTable& table) {
  std::vector<std::string> names;
  for (const auto& [name, value] : table) names.push_back(name);
  return names;
}

std::optional<std::int64_t> find_enumerator(const EnumTable& table, std::string_view name) {
  for (const auto& [known, value] : table) {
    if (known == name) return value;
  }
  return std::nullopt;
}

std::string expectation(const Type& type) {
  switch (type.kind) {
    case TypeKind::kQuantity:
      return dimension_expectation(type.dimension);
    case TypeKind::kReal:
      return "a number";
    case TypeKind::kInteger:
      return "an integer";
    case TypeKind::kFlag:
      return "true or false";
    case TypeKind::kText:
      return "text";
    case TypeKind::kEnum:
      return "one of " + comma_joined(names_of(*type.names));
    case TypeKind::kPath:
      return "the path of a file";
    case TypeKind::kList:
      return "a list";
    case TypeKind::kMap:
    case TypeKind::kRecord:
    case TypeKind::kChoice:
      return "a map";
    case TypeKind::kNode:
      return "a value";
    case TypeKind::kOptional:
    case TypeKind::kFact:
      break;
  }
  return expectation(*type.element);
}

std::string description(const Node& node) {
  switch (node.kind()) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kSequence:
      return "a list";
    case Node::Kind::kMap:
      return "a map";
    case Node::Kind::kScalar:
      break;
  }
  return "'" + node.text() + "'";
}

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
