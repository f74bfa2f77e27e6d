// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/points/export_points.h"

#include <fmt/core.h>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/experiments/core/experiment.h"
#include "sim/config/library.h"
#include "sim/config/load.h"
#include "sim/config/type.h"
#include "sim/results/version.h"
#include "sim/units/comma_separated.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

using config::Record;
using config::Type;
using config::TypeKind;
using Json = nlohmann::ordered_json;

bool is_plain_key(const std::string& key) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !key.empty() && key.find_first_not_of(kPlain) == std::string::npos && key[0] != '-';
}

/// The type of a value that need not be there, or has a source.
const Type* bare(const Type* type) {
  while (type != nullptr && (type->kind == TypeKind::kOptional || type->kind == TypeKind::kFact))
    type = type->element;
  return type;
}

/// Writes a canonical configuration as YAML that reads back as the same one: maps over lines, what
/// is in lists in braces.
class Writer {
 public:
  /// @param named top-level keys of which the name in the library is written
  Writer(const RunRecord& record, const std::set<std::string>& named) : named_(named) {
    for (const Parameter& parameter : record.parameters())
      origins_.emplace(parameter.path, parameter.origin);
  }

  std::string whole(const Json& json, const Record& record) {
    for (const auto& [key, value] : json.items()) {
      const config::Field* field = record.find(key);
      if (named_.count(key) > 0) {
        text_ += fmt::format("{}: {}\n", key_text(key), value.at(key).get<std::string>());
      } else if (was_written(value, key)) {
        write(key, value, field != nullptr ? field->type : nullptr, key, 0);
      }
    }
    return std::move(text_);
  }

 private:
  using Fields = std::function<const Type*(const std::string& key)>;

  /// What the entries of a map are; none where the value is no map with entries.
  static Fields fields_of(const Json& json, const Type* type) {
    type = bare(type);
    if (!json.is_object() || json.empty()) return nullptr;
    if (type == nullptr || type->kind == TypeKind::kNode)
      return [](const std::string&) { return nullptr; };
    if (type->kind == TypeKind::kMap) return [type](const std::string&) { return type->element; };
    const Record* record = nullptr;
    if (type->kind == TypeKind::kRecord) record = &type->record();
    if (type->kind == TypeKind::kChoice) {
      const config::Choices& choices = type->choices();
      const std::string name =
          json.contains(choices.tag) ? json.at(choices.tag).get<std::string>() : choices.fallback;
      record = &choices.records.at(name)();
    }
    return [record](const std::string& key) -> const Type* {
      const config::Field* field = record != nullptr ? record->find(key) : nullptr;
      return field != nullptr ? field->type : nullptr;
    };
  }

  /// Whether a value, or something in it, is no default. Defaults are left out: some of them may
  /// not stand beside what was written.
  bool was_written(const Json& json, const std::string& path) const {
    if (json.is_null()) return false;
    if (json.is_array()) {
      for (std::size_t i = 0; i < json.size(); ++i)
        if (was_written(json[i], below(path, std::to_string(i)))) return true;
      return false;
    }
    if (json.is_object()) {
      for (const auto& [key, value] : json.items())
        if (was_written(value, below(path, key))) return true;
      return false;
    }
    const auto origin = origins_.find(path);
    return origin == origins_.end() || origin->second != "default";
  }

  static std::string below(const std::string& path, const std::string& key) {
    return fmt::format("{}.{}", path, key);
  }

  static std::string key_text(const std::string& key) {
    return is_plain_key(key) ? key : Json(key).dump();
  }

  void write(const std::string& key, const Json& json, const Type* type, const std::string& path,
             std::size_t depth) {
    text_ += std::string(2 * depth, ' ') + key_text(key) + ":";
    const Fields fields = fields_of(json, type);
    if (!fields) {
      text_ += " " + inline_text(json, type, path) + "\n";
      return;
    }
    text_ += "\n";
    for (const auto& [name, value] : json.items())
      if (was_written(value, below(path, name)))
        write(name, value, fields(name), below(path, name), depth + 1);
  }

  std::string inline_text(const Json& json, const Type* type, const std::string& path) const {
    type = bare(type);
    if (json.is_array()) {
      const Type* element =
          type != nullptr && type->kind == TypeKind::kList ? type->element : nullptr;
      std::vector<std::string> texts;
      for (std::size_t i = 0; i < json.size(); ++i)
        texts.push_back(inline_text(json[i], element, below(path, std::to_string(i))));
      return fmt::format("[{}]", comma_joined(texts));
    }
    if (json.is_object()) {
      const Fields fields = fields_of(json, type);
      std::vector<std::string> texts;
      for (const auto& [name, value] : json.items())
        if (was_written(value, below(path, name)))
          texts.push_back(fmt::format("{}: {}", key_text(name),
                                      inline_text(value, fields(name), below(path, name))));
      return fmt::format("{{{}}}", comma_joined(texts));
    }
    return scalar(json, type, path);
  }

  std::string scalar(const Json& json, const Type* type, const std::string& path) const {
    if (json.is_null()) return "null";
    if (json.is_number() && type != nullptr && type->kind == TypeKind::kQuantity)
      return print_quantity(json.get<double>(), type->dimension);
    if (json.is_number_float()) return print_number(json.get<double>());
    if (!json.is_string()) return json.dump();
    auto text = json.get<std::string>();
    // The text of YAML that nobody gave a type may have been a number.
    const bool word = type == nullptr || type->kind == TypeKind::kEnum;
    if (word && is_plain_key(text)) return text;
    return Json(located(text, path)).dump();
  }

  /// Whether there is a file, or files that a prefix stands for: PREFIX.0.et, ...
  static bool is_there(const std::filesystem::path& path) {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return true;
    const std::string begin = path.filename().string() + ".";
    const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
      if (entry.path().filename().string().starts_with(begin)) return true;
    return false;
  }

  /// A path of a file from where it was written, so that it is found from anywhere.
  std::string located(const std::string& text, const std::string& path) const {
    const auto origin = origins_.find(path);
    if (origin == origins_.end() || !config::Library::is_path(text)) return text;
    std::string file = origin->second;
    for (int i = 0; i < 2; ++i) file = file.substr(0, std::min(file.rfind(':'), file.size()));
    const std::filesystem::path there = config::relative_to(text, file);
    return is_there(there) ? std::filesystem::absolute(there).lexically_normal().string() : text;
  }

  std::map<std::string, std::string> origins_;
  const std::set<std::string>& named_;
  std::string text_;
};

/// Whether a text is an experiment with the identity of a point.
bool is_of_point(const std::string& text, const std::string& identity) {
  try {
    config::Diagnostics diagnostics;
    const config::Node node = config::parse_yaml(text, "reproduction.yaml", diagnostics);
    return load_point_with_settings(node, {}, diagnostics, config::default_library()).identity ==
           identity;
  } catch (const std::exception&) {
    return false;  // a name that the library does not have, or a map that it has otherwise
  }
}

/// Top-level keys whose values equal an entry of the library: the name of the entry replaces them.
std::set<std::string> keys_of_library(const RunRecord& record, const Json& configuration,
                                      const Record& keys) {
  std::set<std::string> named;
  for (const config::Field& field : keys.fields()) {
    const auto value = configuration.find(field.key);
    const bool has_name = value != configuration.end() && value->is_object() &&
                          value->contains(field.key) && value->at(field.key).is_string() &&
                          is_plain_key(value->at(field.key).get<std::string>());
    if (field.library.empty() || !has_name) continue;
    named.insert(field.key);
    if (!is_of_point(Writer(record, named).whole(configuration, keys), record.identity))
      named.erase(field.key);
  }
  return named;
}

}  // namespace

std::string reproduction(const RunRecord& record) {
  const Json configuration = record.base ? record.configuration() : Json::object();
  if (configuration.empty()) throw UsageError("this result was stored without its configuration");
  const auto kind = ExperimentKinds::items().find(record.experiment);
  if (kind == ExperimentKinds::items().end())
    throw UsageError("there are no experiments of kind '" + record.experiment + "' any more");
  const Record& keys = kind->second.record();
  const std::set<std::string> named = keys_of_library(record, configuration, keys);
  return fmt::format("# Repeats point {}\n{}", record.identity,
                     Writer(record, named).whole(configuration, keys));
}

std::string obstacle_to(const RunRecord& record, const std::string& file) {
  const LoadedExperiment loaded = load_experiment(file, {});
  if (loaded.identity == record.identity) return {};
  return fmt::format(
      "the point that {} gives is another one than the stored: its result is of another engine "
      "than "
      "this ({}), or a file that it rests on has changed",
      file, kEngineVersion);
}

}  // namespace orrery
