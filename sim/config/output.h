// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

#include "sim/config/schema.h"

namespace orrery::config {

/// One value of a resolved configuration.
struct Leaf {
  std::string path;             ///< path such as "system.accelerator.memory.bandwidth"
  std::string text;             ///< text as written, or the default as printed: "8 TB/s"
  std::optional<double> value;  ///< numbers: the value in SI base units
  std::string unit;             ///< "B/s"; empty for texts and counts
  std::string origin;  ///< "configs/accelerators/nvidia/gb200.yaml:12:14", "--set", "default"
  const Type* type = nullptr;  ///< type in the schema: one that is_leaf()
};

/// Every value of a completed node (see complete()) in the order of the schema, sources of Facts
/// left out.
std::vector<Leaf> flatten(const Node& completed, const Record& record);

/// The meaning of a completed node: keys sorted, numbers in SI base units, Facts as their value
/// alone. Two texts that mean the same ("8 TB/s", "8000 GB/s") give the same object.
nlohmann::ordered_json canonical(const Node& completed, const Record& record);

/// A JSON Schema (draft-07) of the YAML files, for editors.
nlohmann::ordered_json json_schema(const Record& record);
/// The JSON Schema of files that are a list of such structs. Its entries may have `rows`, a table
/// in CSV, and texts with columns of it in braces in place of any value.
nlohmann::ordered_json json_schema_of_list(const Record& record);
/// The JSON Schema of files that are one of several structs.
nlohmann::ordered_json json_schema(const Choices& choices, const std::string& title);

/// One row of the key reference.
struct KeyHelp {
  std::string path;      ///< "memory.bandwidth", "layers[].window", "matrix.<precision>"
  std::string type;      ///< "bandwidth (B/s)", "integer", "one of bf16, fp8"
  std::string fallback;  ///< the default, "required", or empty
  std::string help;
  bool operator==(const KeyHelp&) const = default;
};
/// All keys of a schema, nested ones after the key that holds them.
std::vector<KeyHelp> describe_keys(const Record& record);
/// The same as aligned text.
std::string describe(const Record& record);

/// One scalar as flatten() lists it. @throws UnitError if it is no such value
Leaf leaf_of(const Node& scalar, const Type& type, const std::string& path);

/// The same as canonical() has it. @throws UnitError
nlohmann::ordered_json canonical_leaf(const Node& scalar, const Type& type);

}  // namespace orrery::config
