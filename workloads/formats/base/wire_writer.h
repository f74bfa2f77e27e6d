// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace orrery {

// Fields of protobuf messages in their wire format
// (https://protobuf.dev/programming-guides/encoding/), appended to a text.

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
inline void put_real(std::string& out, unsigned field, double value) {
  put_varint(out, std::uint64_t{field} << 3U | 1U);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (unsigned i = 0; i < 8; ++i) out += static_cast<char>(bits >> 8U * i & 0xFFU);
}

}  // namespace orrery
