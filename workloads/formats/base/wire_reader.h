// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/config/byte_source.h"
#include "sim/config/diagnostics.h"

namespace orrery {

/// Reads messages of protocol buffers as they stream by, without a schema
/// (https://protobuf.dev/programming-guides/encoding): callers ask for one field after the other
/// and then for its value, or skip it. Nothing but texts that they ask for is held.
class WireReader {
 public:
  /// How a field is written.
  enum class Wire : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  /// One field of a message: its number, and where its value stands.
  struct Field {
    std::uint32_t number = 0;
    Wire wire = Wire::kVarint;
    std::uint64_t value = 0;  ///< varints and fixed ones: the value; bytes: how many there are
    std::uint64_t end = 0;    ///< offset behind the value; bytes have not been taken yet
  };

  explicit WireReader(ByteSource& source) : source_(source) {}

  /// The next field of the message that ends at offset `end`; false at its end.
  /// @param end kFile: the file is the message
  bool next(std::uint64_t end, Field& field) {
    if (end == kFile ? source_.at_end() : source_.offset() >= end) return false;
    const std::uint64_t tag = varint(end);
    constexpr std::uint64_t kMostTag = 0xffffffffU;
    if (tag > kMostTag || tag >> 3U == 0)
      refuse(fmt::format("no field has the number {}", tag >> 3U));
    field.number = static_cast<std::uint32_t>(tag >> 3U);
    field.wire = static_cast<Wire>(tag & 7U);
    if (field.wire == Wire::kVarint || field.wire == Wire::kBytes) {
      field.value = varint(end);
    } else if (field.wire == Wire::kFixed64 || field.wire == Wire::kFixed32) {
      field.value = fixed(field.wire == Wire::kFixed64 ? 8 : 4, end);
    } else {
      refuse(fmt::format("field {} is written in an unknown way", field.number));
    }
    field.end = source_.offset();
    if (field.wire != Wire::kBytes) return true;
    if (field.value > end - field.end)
      refuse(fmt::format("field {} has {} bytes, more than what it stands in", field.number,
                         field.value));
    field.end += field.value;
    return true;
  }
  /// Takes what is left of a field's bytes.
  void skip(const Field& field) {
    while (source_.offset() < field.end) source_.take(part(field).size());
  }
  /// The bytes of a field as text.
  /// @param most above which it is refused
  std::string text(const Field& field, std::size_t most) {
    if (field.wire != Wire::kBytes)
      refuse(fmt::format("field {} is a number where a text should stand", field.number));
    if (field.end - source_.offset() > most)
      refuse(fmt::format("field {} has more than {} bytes", field.number, most));
    std::string text;
    while (source_.offset() < field.end) {
      const std::string_view bytes = part(field);
      text += bytes;
      source_.take(bytes.size());
    }
    return text;
  }
  /// A varint that stands before the offset `end`.
  std::uint64_t varint(std::uint64_t end) {
    constexpr std::size_t kMostBytes = 10;
    constexpr unsigned kBits = 7;
    const std::string_view bytes = source_.peek(kMostBytes);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < kMostBytes; ++i) {
      if (i >= bytes.size() || source_.offset() + i >= end) refuse("a number is cut off");
      const auto byte = static_cast<unsigned char>(bytes[i]);
      if (i == kMostBytes - 1 && byte > 1) break;  // more than 64 bits
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << (kBits * i);
      if (byte < 0x80U) {
        source_.take(i + 1);
        return value;
      }
    }
    refuse("a number has more than 64 bits");
  }
  /// Four or eight bytes, the lowest first, that stand before the offset `end`.
  std::uint64_t fixed(std::size_t bytes, std::uint64_t end) {
    constexpr unsigned kBits = 8;
    const std::string_view there = source_.peek(bytes);
    if (there.size() < bytes || end - source_.offset() < bytes) refuse("a number is cut off");
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(there[i])) << (kBits * i);
    source_.take(bytes);
    return value;
  }
  /// Whether bytes are left before the offset.
  bool before(std::uint64_t end) const { return source_.offset() < end; }

  /// @throws config::ConfigError with the file and the offset
  [[noreturn]] void refuse(const std::string& what) const {
    throw config::ConfigError(
        fmt::format("{}: offset {}: {}", source_.path(), source_.offset(), what));
  }

  static constexpr std::uint64_t kFile = ~std::uint64_t{0};

 private:
  /// Bytes of a field that come next, at least one of them.
  std::string_view part(const Field& field) {
    const std::string_view bytes = source_.peek(static_cast<std::size_t>(
        std::min<std::uint64_t>(field.end - source_.offset(), std::size_t{1} << 18U)));
    if (bytes.empty()) refuse(fmt::format("the file ends inside of field {}", field.number));
    return bytes;
  }

  ByteSource& source_;
};

}  // namespace orrery
