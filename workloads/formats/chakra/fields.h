// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/units/comma_separated.h"
#include "sim/units/time.h"
#include "workloads/formats/chakra/nodes.h"

/// Parts of Chakra's nodes (et_def.proto) as they are written: fields of protobuf messages in their
/// wire format (https://protobuf.dev/programming-guides/encoding/), appended to a text. Attributes
/// have the types that Chakra's own writers choose (int64_val 9, bool_val 27, ...).
namespace orrery::chakra {

inline constexpr unsigned kAttribute = 10, kDouble = 3, kInt32 = 7, kInt64 = 9, kUint64 = 13,
                          kBool = 27, kString = 29;

inline void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>(0x80U | (value & 0x7FU));
  out += static_cast<char>(value);
}
inline void put_number(std::string& out, unsigned field, std::uint64_t value) {
  put_varint(out, std::uint64_t{field} << 3U);
  put_varint(out, value);
}
inline void put_text(std::string& out, unsigned field, std::string_view text) {
  put_varint(out, std::uint64_t{field} << 3U | 2U);
  put_varint(out, text.size());
  out += text;
}
inline void put_attribute(std::string& out, std::string_view name, unsigned type,
                          std::int64_t value, unsigned field = kAttribute) {
  std::string attribute;
  put_text(attribute, 1, name);
  put_number(attribute, type, static_cast<std::uint64_t>(value));
  put_text(out, field, attribute);
}
inline void put_attribute(std::string& out, std::string_view name, std::string_view text) {
  std::string attribute;
  put_text(attribute, 1, name);
  put_text(attribute, kString, text);
  put_text(out, kAttribute, attribute);
}
/// As an integer of the type that readers expect, unless it is none.
inline void put_amount(std::string& out, std::string_view name, unsigned type, double value) {
  if (value == std::floor(value))
    return put_attribute(out, name, type, static_cast<std::int64_t>(value));
  std::string attribute;
  put_text(attribute, 1, name);
  put_varint(attribute, std::uint64_t{kDouble} << 3U | 1U);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (unsigned i = 0; i < 8; ++i) attribute += static_cast<char>(bits >> 8U * i & 0xFFU);
  put_text(out, kAttribute, attribute);
}

/// What stands first in a node, behind its identifier.
inline std::string begun_node(std::string_view name, ChakraType type) {
  std::string node;
  put_text(node, 2, name);
  put_number(node, 3, static_cast<std::uint64_t>(type));
  return node;
}

inline void put_duration(std::string& node, Picoseconds time) {
  constexpr double kPicosecondsPerMicro = 1e6;
  const double micros = static_cast<double>(time) / kPicosecondsPerMicro;
  put_number(node, 7, static_cast<std::uint64_t>(std::llround(micros)));
  put_attribute(node, "orrery.duration_ps", kInt64, static_cast<std::int64_t>(time));
}

/// A communicator: its name and members.
using Group = std::pair<std::string, std::vector<int>>;

/// A list of ranks as JSON and Python print it.
inline std::string list_text(const std::vector<int>& ranks) {
  return fmt::format("[{}]", comma_joined(ranks, [](int rank) { return std::to_string(rank); }));
}

/// A METADATA node with communicators in PyTorch's words, but for its identifier.
inline std::string groups_node(const std::vector<Group>& groups) {
  const auto words = [](const Group& group) {
    return fmt::format(R"({{"pg_name": "{}", "ranks": {}, "group_size": {}}})", group.first,
                       list_text(group.second), group.second.size());
  };
  std::string inputs, node = begun_node("process_group", ChakraType::kMetadata);
  put_text(inputs, 1, fmt::format("[{}]", comma_joined(groups, words)));
  put_text(node, 8, inputs);
  return node;
}

/// Writes communicators as ASTRA-sim reads them: {"1": [ranks], ...}.
inline void write_group_file(std::ostream& out, const std::vector<Group>& groups) {
  std::string text;
  for (const auto& [name, ranks] : groups)
    text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ",\n ", name, list_text(ranks));
  out << "{" << text << "}\n";
}

/// A file of messages while it is written, each behind its length; the first is GlobalMetadata.
class MessageFile {
 public:
  /// @param attributes fields of GlobalMetadata behind its version
  explicit MessageFile(std::ostream& out, const std::string& attributes = {}) : out_(out) {
    std::string metadata;
    put_text(metadata, 1, "0.0.4");
    put(metadata + attributes);
  }
  void put(std::string_view message) {
    constexpr std::size_t kFlush = std::size_t{1} << 20U;
    put_varint(buffer_, message.size());
    buffer_ += message;
    if (buffer_.size() >= kFlush) flush();
  }
  void flush() {
    out_ << buffer_;
    buffer_.clear();
  }

 private:
  std::ostream& out_;
  std::string buffer_;
};

}  // namespace orrery::chakra
