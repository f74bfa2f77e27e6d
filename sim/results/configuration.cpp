// SPDX-License-Identifier: Apache-2.0
#include "sim/results/configuration.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "sim/results/json_path.h"

namespace orrery {
using nlohmann::ordered_json;

ordered_json* value_at(ordered_json& json, std::string_view path) {
  ordered_json* value = &json;
  while (!path.empty()) {
    const std::string_view key = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(key.size() + 1, path.size()));
    if (value->is_array()) {
      std::size_t index = 0;
      const auto [end, fault] = std::from_chars(key.data(), key.data() + key.size(), index);
      if (fault != std::errc{} || end != key.data() + key.size() || index >= value->size())
        return nullptr;
      value = &(*value)[index];
    } else {
      const auto found = value->is_object() ? value->find(key) : value->end();
      if (found == value->end()) return nullptr;
      value = &*found;
    }
  }
  return value;
}

std::vector<Parameter> parameters_with(const Configuration& base,
                                       const std::vector<Variation>& varied) {
  std::vector<Parameter> parameters = base.parameters;
  for (const Variation& other : varied)
    for (Parameter& parameter : parameters)
      if (parameter.path == other.parameter.path) parameter = other.parameter;
  return parameters;
}

ordered_json canonical_with(const Configuration& base, const std::vector<Variation>& varied) {
  if (!base.canonical) return ordered_json::object();
  ordered_json canonical = *base.canonical;
  for (const Variation& other : varied)
    if (ordered_json* value = value_at(canonical, other.parameter.path))
      *value = ordered_json::parse(other.json);
  return canonical;
}

std::optional<std::vector<Variation>> difference(const Configuration& base,
                                                 const Configuration& whole, std::size_t most) {
  if (!base.canonical || !whole.canonical || base.parameters.size() != whole.parameters.size())
    return std::nullopt;
  std::vector<Variation> varied;
  ordered_json canonical = *whole.canonical;
  for (std::size_t i = 0; i < whole.parameters.size(); ++i) {
    const Parameter& parameter = whole.parameters[i];
    if (parameter == base.parameters[i]) continue;
    const ordered_json* value = value_at(canonical, parameter.path);
    const bool named = parameter.path == base.parameters[i].path && value != nullptr;
    if (!named || value->is_structured() || varied.size() == most) return std::nullopt;
    varied.push_back({parameter, value->dump()});
  }
  // What is in no parameter must be the same.
  if (canonical_with(base, varied) != canonical) return std::nullopt;
  return varied;
}

}  // namespace orrery
