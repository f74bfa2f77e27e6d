// SPDX-License-Identifier: Apache-2.0
// Unchecked reading of parts of a configuration that others write freely: what is not what it
// should be counts as not there.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace orrery::json_fields {

/// The object at a key, or null.
inline const nlohmann::json* object_at(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? &*found : nullptr;
}

inline std::string text_at(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// A count, or 0 where there is none; what is not a sensible one is none.
inline std::int64_t count_at(const nlohmann::json& object, const char* key) {
  constexpr double kLargest = 1e9;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return 0;
  const double value = found->get<double>();
  return value >= 1 && value <= kLargest ? static_cast<std::int64_t>(value) : 0;
}

inline std::vector<std::string> texts_at(const nlohmann::json& object, const char* key) {
  std::vector<std::string> texts;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return texts;
  for (const nlohmann::json& item : *found)
    if (item.is_string()) texts.push_back(item.get<std::string>());
  return texts;
}

/// The object that describes the language model inside a wrapper; null where there is no wrapper.
inline const nlohmann::json* language_model(const nlohmann::json& configuration) {
  for (const char* key : {"text_config", "llm_config", "language_config"})
    if (const nlohmann::json* inner = object_at(configuration, key)) return inner;
  return nullptr;
}

}  // namespace orrery::json_fields
