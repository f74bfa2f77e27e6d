// SPDX-License-Identifier: Apache-2.0
#include "sim/results/identity.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>

namespace orrery {
namespace {

// Above 2^53 a double no longer tells neighbouring integers apart, so they keep their own spelling.
constexpr double kExactIntegers = 9007199254740992.0;

// nlohmann::json sorts keys; what is left to do is one spelling for a number.
nlohmann::json canonical(const nlohmann::ordered_json& value) {
  if (value.is_object()) {
    nlohmann::json object = nlohmann::json::object();
    for (const auto& item : value.items()) object[item.key()] = canonical(item.value());
    return object;
  }
  if (value.is_array()) {
    nlohmann::json array = nlohmann::json::array();
    for (const auto& item : value) array.push_back(canonical(item));
    return array;
  }
  if (!value.is_number_float()) return value;
  const double number = value.get<double>();
  if (!std::isfinite(number)) throw std::logic_error("a configuration holds no finite number");
  if (std::fabs(number) < kExactIntegers && number == std::trunc(number)) {
    return static_cast<std::int64_t>(number);
  }
  return number;
}

}  // namespace

std::string canonical_json(const nlohmann::ordered_json& value) { return canonical(value).dump(); }

std::string identity_text(const nlohmann::ordered_json& configuration, std::vector<FileHash> files,
                          std::string_view engine_version) {
  std::sort(files.begin(), files.end(), [](const FileHash& a, const FileHash& b) {
    return std::tie(a.role, a.sha256) < std::tie(b.role, b.sha256);
  });
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const FileHash& file : files) list.push_back({file.role, file.sha256});
  return canonical_json(
      {{"configuration", configuration}, {"engine", engine_version}, {"files", list}});
}

std::string point_identity(const nlohmann::ordered_json& configuration, std::vector<FileHash> files,
                           std::string_view engine_version) {
  return sha256_hex(identity_text(configuration, std::move(files), engine_version));
}

}  // namespace orrery
