// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "sim/config/leaf.h"
#include "sim/config/output.h"
#include "sim/units/text.h"

namespace orrery::config {
namespace {

using Json = nlohmann::ordered_json;

/// How much of a struct is to be written down.
enum class Form {
  kWhole,    ///< all that is required
  kFile,     ///< all that is required, or `extends` and what differs
  kOverlay,  ///< what differs from another one: nothing is required
};

/// Writes JSON Schema draft-07, the newest that the YAML language server understands. Each struct
/// is one definition for each form.
class JsonSchemaWriter {
 public:
  Json document(const Record& record) {
    Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                   {"title", record.name()}};
    schema["allOf"] = Json::array({record_reference(record, Form::kFile)});
    schema["definitions"] = std::move(definitions_);
    return schema;
  }

  Json list_document(const Record& record) {
    cells_ = true;
    Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                   {"title", record.name() + "s"},
                   {"type", "array"}};
    schema["items"] = record_reference(record, Form::kWhole);
    schema["definitions"] = std::move(definitions_);
    return schema;
  }

  Json document(const Choices& choices, const std::string& title) {
    Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title}};
    schema["allOf"] = Json::array({choice_schema(choices, Form::kFile)});
    schema["definitions"] = std::move(definitions_);
    return schema;
  }

 private:
  Json record_reference(const Record& record, Form form) {
    const auto [known, added] = names_.try_emplace({&record, form});
    if (added) {
      constexpr std::array<const char*, 3> kEndings = {"", "_file", "_overlay"};
      known->second = unused_name(record.name() + kEndings[static_cast<std::size_t>(form)]);
      const std::string name = known->second;
      definitions_[name] = Json::object();  // holds the place in the order of first use
      definitions_[name] = form == Form::kFile ? file_schema(record) : record_schema(record, form);
    }
    return {{"$ref", "#/definitions/" + names_.at({&record, form})}};
  }

  Json file_schema(const Record& record) {
    return {{"if", {{"required", Json::array({"extends"})}}},
            {"then", record_reference(record, Form::kOverlay)},
            {"else", record_reference(record, Form::kWhole)}};
  }

  std::string unused_name(std::string name) {
    std::replace(name.begin(), name.end(), ' ', '_');
    const std::string stem = name;
    for (int i = 2; !taken_.insert(name).second; ++i) name = stem + "_" + std::to_string(i);
    return name;
  }

  Json record_schema(const Record& record, Form form) {
    Json properties = Json::object();
    Json required = Json::array();
    const std::shared_ptr<void> defaults = record.make();
    for (const Field& field : record.fields()) {
      Json schema = field_schema(field, form);
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
    if (form == Form::kOverlay) {
      properties["extends"] = {{"type", "string"},
                               {"description", "file that this one is laid over"}};
    }
    Json schema = {{"type", "object"}, {"description", record.help()}};
    schema["properties"] = std::move(properties);
    schema["additionalProperties"] = false;
    if (form != Form::kOverlay && !required.empty()) schema["required"] = std::move(required);
    return schema;
  }

  static Json default_value(const Node& node, const Type& type) {
    // A quantity is text with its unit; a name is not its enumerator.
    if (type.kind == TypeKind::kQuantity || type.kind == TypeKind::kEnum) return node.text();
    return std::visit([](const auto& value) { return Json(value); }, parse_leaf(node, type));
  }

  Json field_schema(const Field& field, Form form) {
    if (field.library.empty()) return type_schema(*field.type, field.bounds, form);
    const Type& record = field.type->element != nullptr ? *field.type->element : *field.type;
    const Form of_file = form == Form::kWhole ? Form::kFile : form;
    return {
        {"anyOf", Json::array({{{"type", "string"}}, record_reference(record.record(), of_file)})}};
  }

  Json type_schema(const Type& type, const Bounds& bounds, Form form) {
    switch (type.kind) {
      case TypeKind::kQuantity:
        return quantity_schema(type.dimension);
      case TypeKind::kReal:
        return number_schema("number", bounds);
      case TypeKind::kInteger:
        return count_schema(bounds);
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
        return record_or_shorthand(type.record(), form);
      case TypeKind::kChoice:
        return choice_schema(type.choices(), form);
      case TypeKind::kList:
        return list_schema(type, bounds);
      case TypeKind::kMap:
        return map_schema(type, bounds, form);
      case TypeKind::kFact:
        return fact_schema(type, bounds, form);
      case TypeKind::kOptional:
        break;
    }
    return {{"anyOf", Json::array({type_schema(*type.element, bounds, form), {{"type", "null"}}})}};
  }

  /// Texts may stand for a list of one.
  Json list_schema(const Type& type, const Bounds& bounds) {
    const Json item = type_schema(*type.element, bounds, Form::kWhole);
    const Json list = {{"type", "array"}, {"items", item}};
    return type.element->kind == TypeKind::kText ? Json{{"anyOf", Json::array({list, item})}}
                                                 : list;
  }

  /// An integer, or "15T". Bounds hold for the former, the pattern for the latter.
  Json count_schema(const Bounds& bounds) const {
    Json schema = number_schema("integer", bounds);
    schema["type"] = Json::array({"integer", "string"});
    schema["pattern"] = "^[-+]?[0-9]+(\\.[0-9]+)?[kMGT]$";
    return schema;
  }

  Json record_or_shorthand(const Record& record, Form form) {
    Json map = record_reference(record, form);
    if (record.shorthand().empty()) return map;
    const Field& field = *record.find(record.shorthand());
    return {{"anyOf", Json::array({std::move(map), type_schema(*field.type, field.bounds, form)})}};
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

  Json choice_schema(const Choices& choices, Form form) {
    Json any = Json::array();
    for (const auto& [name, record] : choices.records) {
      Json says = {{"properties", {{choices.tag, {{"const", name}}}}}};
      if (name != choices.fallback && form == Form::kWhole) require_tag(choices, name, says);
      any.push_back({{"allOf", Json::array({record_reference(record(), form), std::move(says)})}});
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

  Json number_schema(const char* type, const Bounds& bounds) const {
    Json schema = {{"type", type}};
    if (!std::isinf(bounds.low))
      schema[bounds.above_low ? "exclusiveMinimum" : "minimum"] = bounds.low;
    if (!std::isinf(bounds.high)) schema["maximum"] = bounds.high;
    if (!cells_) return schema;
    const Json cell = {{"type", "string"}, {"pattern", "^\\{[^{}]+\\}$"}};
    return {{"anyOf", Json::array({std::move(schema), cell})}};
  }

  Json map_schema(const Type& type, const Bounds& bounds, Form form) {
    Json schema = {{"type", "object"}};
    schema["additionalProperties"] = type_schema(*type.element, bounds, form);
    if (type.names != nullptr) schema["propertyNames"] = {{"enum", names_of(*type.names)}};
    return schema;
  }

  Json fact_schema(const Type& type, const Bounds& bounds, Form form) {
    const Json value = type_schema(*type.element, bounds, form);
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

  bool cells_ = false;  ///< numbers may be columns of a table: "{seconds}"
  std::map<std::pair<const Record*, Form>, std::string> names_;  // looked up, never iterated
  std::set<std::string> taken_;
  Json definitions_ = Json::object();
};

}  // namespace

nlohmann::ordered_json json_schema(const Record& record) {
  return JsonSchemaWriter().document(record);
}

nlohmann::ordered_json json_schema_of_list(const Record& record) {
  return JsonSchemaWriter().list_document(record);
}

nlohmann::ordered_json json_schema(const Choices& choices, const std::string& title) {
  return JsonSchemaWriter().document(choices, title);
}

}  // namespace orrery::config
