// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "sim/config/byte_source.h"

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
  bool next(std::uint64_t end, Field& field);
  /// Takes what is left of a field's bytes.
  void skip(const Field& field);
  /// The bytes of a field as text.
  /// @param most above which it is refused
  std::string text(const Field& field, std::size_t most);
  /// A varint that stands before the offset `end`.
  std::uint64_t varint(std::uint64_t end);
  /// Four or eight bytes, the lowest first, that stand before the offset `end`.
  std::uint64_t fixed(std::size_t bytes, std::uint64_t end);
  /// Whether bytes are left before the offset.
  bool before(std::uint64_t end) const { return source_.offset() < end; }

  /// @throws config::ConfigError with the file and the offset
  [[noreturn]] void refuse(const std::string& what) const;

  static constexpr std::uint64_t kFile = ~std::uint64_t{0};

 private:
  ByteSource& source_;
};

/// The number that the bits of a fixed field stand for.
float float_of(std::uint64_t bits);
double double_of(std::uint64_t bits);

}  // namespace orrery
