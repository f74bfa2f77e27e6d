// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/node.h"
#include "sim/config/type.h"

namespace orrery::config {

struct Field;

/// The keys of a Fact that is written as a map; the first is required.
inline constexpr std::array<std::string_view, 5> kFactKeys = {"value", "source", "nameplate",
                                                              "nameplate_source", "reason"};

/// Whether values of this type are scalars in YAML.
bool is_leaf(const Type& type);

/// The value that a scalar stands for. Paths are those of the text.
/// @throws UnitError if the node is no such value.
Scalar parse_leaf(const Node& node, const Type& type);
/// The text that parse_leaf() reads back as the same value.
std::string print_leaf(const Scalar& value, const Type& type);
/// The number in SI base units; none for flags, names and texts.
std::optional<double> number_of(const Scalar& value, const Type& type);

/// The names of an enumeration.
std::vector<std::string> names_of(const EnumTable& table);
/// The value of a name in an enumeration.
std::optional<std::int64_t> find_enumerator(const EnumTable& table, std::string_view name);

/// What the user is to write: "bandwidth (e.g. 900 GB/s, 3.2 Tb/s)", "an integer", "one of bf16,
/// fp8".
std::string expectation(const Type& type);
/// What the user wrote, in words: "'5 GB'", "a list", "nothing".
std::string description(const Node& node);

/// A value as the YAML that would give it, all of it with the origin "default".
Node default_node(const Type& type, const void* value);

/// The default of a field: that of its member in the default-constructed `object`.
Node default_node(const Field& field, void* object);

}  // namespace orrery::config
