// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace orrery {

/// Builds one protobuf message, field by field (protobuf.dev, "Encoding"): all that a trace needs.
class ProtobufMessage {
 public:
  ProtobufMessage& integer(std::uint32_t field, std::uint64_t value) {
    tag(field, kVarint);
    varint(value);
    return *this;
  }
  ProtobufMessage& fixed(std::uint32_t field, std::uint64_t bits) {
    tag(field, kFixed64);
    for (unsigned shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(bits >> shift);
    return *this;
  }
  ProtobufMessage& real(std::uint32_t field, double value) {
    return fixed(field, std::bit_cast<std::uint64_t>(value));
  }
  ProtobufMessage& text(std::uint32_t field, std::string_view value) {
    tag(field, kLengthDelimited);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  ProtobufMessage& message(std::uint32_t field, const ProtobufMessage& value) {
    return text(field, value.bytes_);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  enum WireType : std::uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2 };

  void tag(std::uint32_t field, WireType type) { varint(std::uint64_t{field} << 3 | type); }
  /// Seven bits a byte, the lowest first; the eighth says that more follow.
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace orrery
