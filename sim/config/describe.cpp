// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <memory>

#include "sim/config/leaf.h"
#include "sim/config/output.h"
#include "sim/units/comma_separated.h"
#include "sim/units/text.h"

namespace orrery::config {
namespace {

std::string type_name(const Type& type) {
  switch (type.kind) {
    case TypeKind::kQuantity:
      return dimension_name(type.dimension) + " (" + base_unit(type.dimension) + ")";
    case TypeKind::kReal:
      return "number";
    case TypeKind::kInteger:
      return "integer";
    case TypeKind::kFlag:
      return "true or false";
    case TypeKind::kText:
      return "text";
    case TypeKind::kEnum:
      return "one of " + comma_joined(names_of(*type.names));
    case TypeKind::kPath:
      return "file";
    case TypeKind::kNode:
      return "any value";
    case TypeKind::kRecord:
      return type.record().name();
    case TypeKind::kChoice:
      return "keys by " + type.choices().tag + ": " + comma_joined(type.choices().names());
    case TypeKind::kList:
      return "list of " + type_name(*type.element);
    case TypeKind::kMap:
      return "map to " + type_name(*type.element) +
             (type.names == nullptr ? std::string() : " by " + comma_joined(names_of(*type.names)));
    case TypeKind::kOptional:
      return type_name(*type.element);
    case TypeKind::kFact:
      return type_name(*type.element) + ", with source";
  }
  return {};
}

/// A default in one line; empty where there is nothing to show or nested keys show it.
std::string default_text(const Node& node) {
  if (node.is_scalar()) return node.text();
  std::string text;
  for (const Node& item : node.items()) {
    if (!item.is_scalar()) return {};
    text += (text.empty() ? "[" : ", ") + item.text();
  }
  return text.empty() ? text : text + "]";
}

/// The structs inside lists, maps and optionals (several where one is chosen), and how a path leads
/// into them.
struct Nested {
  std::vector<const Record*> records;
  std::string steps;
};

Nested nested_records(const Type& type) {
  if (type.kind == TypeKind::kRecord) return {{&type.record()}, {}};
  if (type.kind == TypeKind::kChoice) {
    Nested nested;
    for (const auto& [name, record] : type.choices().records) nested.records.push_back(&record());
    return nested;
  }
  if (type.element == nullptr) return {};
  Nested nested = nested_records(*type.element);
  if (type.kind == TypeKind::kList) nested.steps = "[]" + nested.steps;
  if (type.kind == TypeKind::kMap) nested.steps = ".<name>" + nested.steps;
  return nested;
}

/// " (also num_layers_in_first_pipeline_stage)": other names of a key.
std::string other_names(const Record& record, const std::string& key) {
  std::vector<std::string> names;
  for (const Alias& alias : record.aliases())
    if (alias.path == key) names.push_back(alias.name);
  return names.empty() ? "" : " (also " + comma_joined(names) + ")";
}

void append_nested(const Nested& nested, const std::string& path, std::vector<KeyHelp>& rows);

void append_keys(const Record& record, const std::string& prefix, std::vector<KeyHelp>& rows) {
  const std::shared_ptr<void> defaults = record.make();
  for (const Field& field : record.fields()) {
    const std::string path = prefix + field.key;
    const Type& leaf = *field.type;
    std::string type = type_name(leaf);
    if (!field.library.empty()) type += ", or a name in " + field.library;
    const Type* number = &leaf;
    while (number->element != nullptr) number = number->element;
    if (!field.bounds.unlimited()) {
      const bool is_quantity = number->kind == TypeKind::kQuantity;
      type +=
          ", " + field.bounds.text(is_quantity ? std::optional(number->dimension) : std::nullopt);
    }
    rows.push_back({path, type,
                    field.required ? "required" : default_text(default_node(field, defaults.get())),
                    field.help + other_names(record, field.key)});
    const std::size_t first = rows.size();
    append_nested(nested_records(leaf), path, rows);
    for (std::size_t i = first; i < rows.size(); ++i)
      rows[i].help += other_names(record, rows[i].path.substr(prefix.size()));
  }
}

/// The keys that all of the structs have alike, then those of each under its name.
void append_nested(const Nested& nested, const std::string& path, std::vector<KeyHelp>& rows) {
  std::vector<std::vector<KeyHelp>> all;
  for (const Record* inner : nested.records)
    append_keys(*inner, path + nested.steps + ".", all.emplace_back());
  const auto shared = [&](const KeyHelp& row) {
    return std::all_of(all.begin(), all.end(), [&](const std::vector<KeyHelp>& others) {
      return std::find(others.begin(), others.end(), row) != others.end();
    });
  };
  if (!all.empty()) std::copy_if(all[0].begin(), all[0].end(), std::back_inserter(rows), shared);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const KeyHelp& row : all[i]) {
      if (shared(row)) continue;
      rows.push_back(row);
      rows.back().help.insert(0, nested.records[i]->name() + ": ");
    }
  }
}

}  // namespace

std::vector<KeyHelp> describe_keys(const Record& record) {
  std::vector<KeyHelp> rows;
  append_keys(record, {}, rows);
  return rows;
}

std::string describe(const Record& record) {
  const std::vector<KeyHelp> rows = describe_keys(record);
  std::size_t path_width = 0, type_width = 0, default_width = 0;
  for (const KeyHelp& row : rows) {
    path_width = std::max(path_width, row.path.size());
    type_width = std::max(type_width, row.type.size());
    default_width = std::max(default_width, row.fallback.size());
  }
  const auto padded = [](const std::string& text, std::size_t width) {
    return text + std::string(width - text.size() + 2, ' ');
  };
  std::string text = record.name() + ": " + record.help() + "\n";
  for (const KeyHelp& row : rows) {
    text += "  " + padded(row.path, path_width) + padded(row.type, type_width) +
            padded(row.fallback, default_width) + row.help + "\n";
  }
  return text;
}

}  // namespace orrery::config
