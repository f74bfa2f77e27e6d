// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "sim/config/defaults.h"
#include "sim/config/leaf.h"
#include "sim/config/output.h"
#include "sim/units/text.h"

namespace orrery::config {
namespace {

using Json = nlohmann::ordered_json;

/// Writes JSON Schema draft-07, the newest that the YAML language server understands. Each struct
/// is one definition.
class JsonSchemaWriter {
 public:
  Json document(const Record& record) {
    Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                   {"title", record.name()}};
    schema["allOf"] = Json::array({record_reference(record, true)});
    schema["definitions"] = std::move(definitions_);
    return schema;
  }

  Json document(const Choices& choices, const std::string& title) {
    Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title}};
    schema["allOf"] = Json::array({choice_schema(choices, true)});
    schema["definitions"] = std::move(definitions_);
    return schema;
  }

 private:
  /// A struct that may have `extends`, which provides the required keys, is another definition than
  /// one that may not.
  Json record_reference(const Record& record, bool extendable) {
    const auto [known, added] = names_.try_emplace({&record, extendable});
    if (added) {
      known->second = unused_name(record.name() + (extendable ? "_file" : ""));
      const std::string name = known->second;
      definitions_[name] = Json::object();  // holds the place in the order of first use
      definitions_[name] = record_schema(record, extendable);
    }
    return {{"$ref", "#/definitions/" + names_.at({&record, extendable})}};
  }

  std::string unused_name(std::string name) {
    std::replace(name.begin(), name.end(), ' ', '_');
    const std::string stem = name;
    for (int i = 2; !taken_.insert(name).second; ++i) name = stem + "_" + std::to_string(i);
    return name;
  }

  Json record_schema(const Record& record, bool extendable) {
    Json properties = Json::object();
    Json required = Json::array();
    const std::shared_ptr<void> defaults = record.make();
    for (const Field& field : record.fields()) {
      Json schema = field_schema(field);
      schema["description"] = field.help;
      if (field.required) {
        required.push_back(field.key);
      } else if (is_leaf(*field.type)) {
        schema["default"] = default_value(default_node(field, defaults.get()), *field.type);
      }
      properties[field.key] = std::move(schema);
    }
    for (const Alias& alias : record.aliases())
      properties[alias.name] = {{"description", "another name of " + alias.path}};
    if (extendable) {
      properties["extends"] = {{"type", "string"},
                               {"description", "file that this one is laid over"}};
    }
    Json schema = {{"type", "object"}, {"description", record.help()}};
    schema["properties"] = std::move(properties);
    schema["additionalProperties"] = false;
    if (extendable && !required.empty()) {
      schema["if"] = {{"required", Json::array({"extends"})}};
      schema["then"] = true;
      schema["else"] = {{"required", std::move(required)}};
    } else if (!required.empty()) {
      schema["required"] = std::move(required);
    }
    return schema;
  }

  static Json default_value(const Node& node, const Type& type) {
    // A quantity is text with its unit; a name is not its enumerator.
    if (type.kind == TypeKind::kQuantity || type.kind == TypeKind::kEnum) return node.text();
    return std::visit([](const auto& value) { return Json(value); }, parse_leaf(node, type));
  }

  Json field_schema(const Field& field) {
    if (field.library.empty()) return type_schema(*field.type, field.bounds);
    const Type& record = field.type->element != nullptr ? *field.type->element : *field.type;
    return {
        {"anyOf", Json::array({{{"type", "string"}}, record_reference(record.record(), true)})}};
  }

  Json type_schema(const Type& type, const Bounds& bounds) {
    switch (type.kind) {
      case TypeKind::kQuantity:
        return quantity_schema(type.dimension);
      case TypeKind::kReal:
        return number_schema("number", bounds);
      case TypeKind::kInteger:
        return number_schema("integer", bounds);
      case TypeKind::kFlag:
        return {{"type", "boolean"}};
      // Unquoted text may look like a number to the editor.
      case TypeKind::kText:
        return {{"type", Json::array({"string", "number", "boolean"})}};
      case TypeKind::kEnum:
        return {{"enum", names_of(*type.names)}};
      case TypeKind::kPath:
        return {{"type", "string"}};
      case TypeKind::kNode:
        return Json::object();
      case TypeKind::kRecord:
        return record_or_shorthand(type.record());
      case TypeKind::kChoice:
        return choice_schema(type.choices(), false);
      case TypeKind::kList:
        return {{"type", "array"}, {"items", type_schema(*type.element, bounds)}};
      case TypeKind::kMap:
        return map_schema(type, bounds);
      case TypeKind::kFact:
        return fact_schema(type, bounds);
      case TypeKind::kOptional:
        break;
    }
    return {{"anyOf", Json::array({type_schema(*type.element, bounds), {{"type", "null"}}})}};
  }

  Json record_or_shorthand(const Record& record) {
    Json map = record_reference(record, false);
    if (record.shorthand().empty()) return map;
    const Field& field = *record.find(record.shorthand());
    return {{"anyOf", Json::array({std::move(map), type_schema(*field.type, field.bounds)})}};
  }

  /// A map of that name has its tag, or another key that tells it.
  static void require_tag(const Choices& choices, const std::string& name, Json& says) {
    const Json tag = Json::array({choices.tag});
    const auto told =
        std::find_if(choices.telling.begin(), choices.telling.end(),
                     [&](const auto& key_and_name) { return key_and_name.second == name; });
    if (told == choices.telling.end()) {
      says["required"] = tag;
    } else {
      says["anyOf"] = {{{"required", tag}}, {{"required", Json::array({told->first})}}};
    }
  }

  Json choice_schema(const Choices& choices, bool extendable) {
    Json any = Json::array();
    for (const auto& [name, record] : choices.records) {
      Json says = {{"properties", {{choices.tag, {{"const", name}}}}}};
      if (name != choices.fallback && !extendable) require_tag(choices, name, says);
      any.push_back(
          {{"allOf", Json::array({record_reference(record(), extendable), std::move(says)})}});
    }
    return {{"anyOf", std::move(any)}};
  }

  static Json quantity_schema(Dimension dimension) {
    std::string units;
    for (const std::string& unit : unit_names(dimension))
      units += (units.empty() ? "" : "|") + unit;
    const Json quantity = {
        {"type", "string"},
        {"pattern", "^[-+]?[0-9]+(\\.[0-9]+)?([eE][-+]?[0-9]+)? *(" + units + ")$"},
        {"examples", dimension_examples(dimension)}};
    return {{"anyOf", Json::array({quantity, {{"const", 0}}})}};
  }

  static Json number_schema(const char* type, const Bounds& bounds) {
    Json schema = {{"type", type}};
    if (!std::isinf(bounds.low))
      schema[bounds.above_low ? "exclusiveMinimum" : "minimum"] = bounds.low;
    if (!std::isinf(bounds.high)) schema["maximum"] = bounds.high;
    return schema;
  }

  Json map_schema(const Type& type, const Bounds& bounds) {
    Json schema = {{"type", "object"}};
    schema["additionalProperties"] = type_schema(*type.element, bounds);
    if (type.names != nullptr) schema["propertyNames"] = {{"enum", names_of(*type.names)}};
    return schema;
  }

  Json fact_schema(const Type& type, const Bounds& bounds) {
    const Json value = type_schema(*type.element, bounds);
    Json properties = Json::object();
    for (const std::string_view key : kFactKeys) {
      const bool is_value = key == "value" || key == "nameplate";
      properties[std::string(key)] = is_value ? value : Json({{"type", "string"}});
    }
    Json map = {{"type", "object"},
                {"properties", std::move(properties)},
                {"required", Json::array({"value"})},
                {"additionalProperties", false}};
    return {{"anyOf", Json::array({value, std::move(map)})}};
  }

  std::map<std::pair<const Record*, bool>, std::string> names_;  // looked up, never iterated
  std::set<std::string> taken_;
  Json definitions_ = Json::object();
};

}  // namespace

nlohmann::ordered_json json_schema(const Record& record) {
  return JsonSchemaWriter().document(record);
}

nlohmann::ordered_json json_schema(const Choices& choices, const std::string& title) {
  return JsonSchemaWriter().document(choices, title);
}

}  // namespace orrery::config
