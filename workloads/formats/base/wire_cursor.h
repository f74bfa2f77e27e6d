// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "sim/config/diagnostics.h"

namespace orrery {

/// Goes through the fields of a protobuf message in its wire format
/// (https://protobuf.dev/programming-guides/encoding/), without a description of them.
class WireCursor {
 public:
  enum Wire : unsigned { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  /// @param file, offset of the message in it, for errors
  WireCursor(std::string_view message, const std::string& file, std::uint64_t offset)
      : begin_(message.data()),
        at_(message.data()),
        end_(message.data() + message.size()),
        file_(file),
        offset_(offset) {}

  /// Goes to the next field; false at the end of the message.
  bool next() {
    if (at_ == end_) return false;
    const std::uint64_t key = varint();
    field_ = key >> 3U;
    wire_ = static_cast<unsigned>(key & 7U);
    if (field_ == 0) refuse("a field with the number 0");
    return true;
  }
  /// Goes to the next field of that number and kind; others are passed over.
  bool next(std::uint64_t field, Wire wire) {
    for (; next(); skip())
      if (field_ == field && wire_ == wire) return true;
    return false;
  }
  std::uint64_t field() const { return field_; }
  unsigned wire() const { return wire_; }

  // What the field holds; each is taken once, or skip() instead.
  std::uint64_t varint() {
    if (at_ != end_ && static_cast<unsigned char>(*at_) < 0x80)
      return static_cast<unsigned char>(*at_++);
    return long_varint();
  }
  std::uint32_t fixed32() { return fixed<std::uint32_t>(); }
  std::uint64_t fixed64() { return fixed<std::uint64_t>(); }
  std::string_view bytes() {
    const std::uint64_t size = varint();
    if (size > static_cast<std::uint64_t>(end_ - at_))
      refuse("a field that is longer than what holds it");
    const std::string_view text(at_, static_cast<std::size_t>(size));
    at_ += size;
    return text;
  }
  /// A message in the field.
  WireCursor message() {
    const std::string_view text = bytes();
    return {text, file_, offset_ + static_cast<std::uint64_t>(text.data() - begin_)};
  }
  void skip() {
    if (wire_ == kVarint) {
      varint();
    } else if (wire_ == kFixed64) {
      fixed64();
    } else if (wire_ == kBytes) {
      bytes();
    } else if (wire_ == kFixed32) {
      fixed32();
    } else {
      refuse("a field of an unknown kind");
    }
  }
  bool at_end() const { return at_ == end_; }

  [[noreturn]] void refuse(const std::string& what) const {
    throw config::ConfigError(fmt::format(
        "{}: at byte {}: {}", file_, offset_ + static_cast<std::uint64_t>(at_ - begin_), what));
  }

 private:
  std::uint64_t long_varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) refuse("a number that ends too early");
      const auto byte = static_cast<unsigned char>(*at_++);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    refuse("a number of more than 10 bytes");
  }
  template <class T>
  T fixed() {
    if (static_cast<std::size_t>(end_ - at_) < sizeof(T)) refuse("a number that ends too early");
    T value = 0;
    std::memcpy(&value, at_, sizeof value);
    static_assert(std::endian::native == std::endian::little);
    at_ += sizeof value;
    return value;
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  const std::string& file_;
  std::uint64_t offset_;
  std::uint64_t field_ = 0;
  unsigned wire_ = 0;
};

}  // namespace orrery
