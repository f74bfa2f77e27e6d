// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace orrery {

/// One resolved configuration value, for queries: `system.accelerator.memory.bandwidth = 8e12 B/s`.
struct Parameter {
  std::string path;
  std::string text;             ///< text as written or printed: "8 TB/s"
  std::optional<double> value;  ///< value in SI base units where it is a number
  std::string unit;             ///< "B/s", empty for text and counts
  std::string origin;  ///< "configs/accelerators/nvidia/gb200.yaml:12:14", "--set", "default"

  bool operator==(const Parameter&) const = default;
};

/// A resolved configuration. Points of a sweep share that of their case and say what differs.
struct Configuration {
  std::vector<Parameter> parameters;
  /// A JSON object: keys sorted, numbers in SI base units.
  std::shared_ptr<const nlohmann::ordered_json> canonical;
};

/// A value that is another one than in a base.
struct Variation {
  Parameter parameter;  ///< parameter with the path of one of the base
  std::string json;     ///< JSON of its value in the canonical object: `8000000000000.0`, `"bf16"`
};

/// The parameters of a base with some of them replaced.
std::vector<Parameter> parameters_with(const Configuration& base,
                                       const std::vector<Variation>& varied);
/// The canonical object of a base with some values replaced.
nlohmann::ordered_json canonical_with(const Configuration& base,
                                      const std::vector<Variation>& varied);

/// What makes `whole` of `base`; none where more than `most` values differ, or something that is no
/// value of a path.
std::optional<std::vector<Variation>> difference(const Configuration& base,
                                                 const Configuration& whole, std::size_t most);

}  // namespace orrery
