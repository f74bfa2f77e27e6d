// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Chakra traces that tests write themselves, field by field.
namespace orrery::test {

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7U) bytes += static_cast<char>(0x80U | (value & 0x7FU));
  return bytes + static_cast<char>(value);
}
inline std::string number(unsigned field, std::uint64_t value) {
  return varint(field << 3U) + varint(value);
}
inline std::string text(unsigned field, std::string_view value) {
  return varint(field << 3U | 2U) + varint(value.size()) + std::string(value);
}
inline std::string fixed(unsigned field, unsigned bytes, std::uint64_t value) {
  std::string out = varint(field << 3U | (bytes == 8 ? 1U : 5U));
  for (unsigned i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8U * i & 0xFFU);
  return out;
}
inline std::string delimited(const std::string& message) {
  return varint(message.size()) + message;
}

/// An attribute with the bytes of its value, whatever field that is.
inline std::string attribute(std::string_view name, const std::string& value) {
  return text(10, text(1, name) + value);
}
inline std::string int64_attribute(std::string_view name, std::int64_t value) {
  return attribute(name, number(9, static_cast<std::uint64_t>(value)));
}

/// A node; `more` are attributes and other fields.
inline std::string chakra_node(std::uint64_t id, std::string_view name, unsigned type,
                               const std::vector<std::uint64_t>& after = {},
                               const std::string& more = {}) {
  std::string packed;
  for (const std::uint64_t earlier : after) packed += varint(earlier);
  return delimited((id > 0 ? number(1, id) : "") + text(2, name) + number(3, type) +
                   (packed.empty() ? "" : text(5, packed)) + more);
}

inline std::string micros(std::uint64_t time) { return number(7, time); }

/// A trace of nodes as chakra_node() makes them.
inline std::string chakra_file(const std::string& nodes) {
  return delimited(text(1, "0.0.4")) + nodes;
}

}  // namespace orrery::test
