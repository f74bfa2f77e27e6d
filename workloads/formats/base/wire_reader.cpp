// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/base/wire_reader.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "sim/config/diagnostics.h"

namespace orrery {

void WireReader::refuse(const std::string& what) const {
  throw config::ConfigError(source_.path() + ": offset " + std::to_string(source_.offset()) + ": " +
                            what);
}

std::uint64_t WireReader::varint(std::uint64_t end) {
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

std::uint64_t WireReader::fixed(std::size_t bytes, std::uint64_t end) {
  constexpr unsigned kBits = 8;
  const std::string_view there = source_.peek(bytes);
  if (there.size() < bytes || end - source_.offset() < bytes) refuse("a number is cut off");
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i)
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(there[i])) << (kBits * i);
  source_.take(bytes);
  return value;
}

bool WireReader::next(std::uint64_t end, Field& field) {
  if (end == kFile ? source_.at_end() : source_.offset() >= end) return false;
  const std::uint64_t tag = varint(end);
  constexpr std::uint64_t kMostTag = 0xffffffffU;
  if (tag > kMostTag || tag >> 3U == 0)
    refuse("no field has the number " + std::to_string(tag >> 3U));
  field.number = static_cast<std::uint32_t>(tag >> 3U);
  field.wire = static_cast<Wire>(tag & 7U);
  switch (field.wire) {
    case Wire::kVarint:
      field.value = varint(end);
      break;
    case Wire::kFixed64:
      field.value = fixed(8, end);
      break;
    case Wire::kFixed32:
      field.value = fixed(4, end);
      break;
    case Wire::kBytes:
      field.value = varint(end);
      if (field.value > end - source_.offset())
        refuse("field " + std::to_string(field.number) + " has " + std::to_string(field.value) +
               " bytes, more than what it stands in");
      field.end = source_.offset() + field.value;
      return true;
    default:
      refuse("field " + std::to_string(field.number) + " is written in an unknown way");
  }
  field.end = source_.offset();
  return true;
}

void WireReader::skip(const Field& field) {
  while (source_.offset() < field.end) {
    const std::size_t most = static_cast<std::size_t>(
        std::min<std::uint64_t>(field.end - source_.offset(), std::size_t{1} << 18U));
    const std::string_view bytes = source_.peek(most);
    if (bytes.empty()) refuse("the file ends inside of field " + std::to_string(field.number));
    source_.take(bytes.size());
  }
}

std::string WireReader::text(const Field& field, std::size_t most) {
  if (field.wire != Wire::kBytes)
    refuse("field " + std::to_string(field.number) + " is a number where a text should stand");
  if (field.end - source_.offset() > most)
    refuse("field " + std::to_string(field.number) + " has more than " + std::to_string(most) +
           " bytes");
  std::string text;
  while (source_.offset() < field.end) {
    const std::string_view bytes =
        source_.peek(static_cast<std::size_t>(field.end - source_.offset()));
    if (bytes.empty()) refuse("the file ends inside of field " + std::to_string(field.number));
    text += bytes;
    source_.take(bytes.size());
  }
  return text;
}

float float_of(std::uint64_t bits) {
  const auto low = static_cast<std::uint32_t>(bits);
  float value = 0;
  std::memcpy(&value, &low, sizeof value);
  return value;
}

double double_of(std::uint64_t bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace orrery
