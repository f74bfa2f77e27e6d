// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/onnx/tensor_reader.h"

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace orrery::onnx {
namespace {

using Field = WireReader::Field;
using Wire = WireReader::Wire;

constexpr std::size_t kMostNumbers = std::size_t{1} << 16U;  // of attributes and shapes

/// IEEE 754 half precision.
double half(std::uint64_t bits) {
  const auto exponent = static_cast<int>(bits >> 10U & 0x1fU);
  const auto fraction = static_cast<double>(bits & 0x3ffU);
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  constexpr int kBias = 15, kFractionBits = 10;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - kBias - kFractionBits);
  return sign * std::ldexp(1024 + fraction, exponent - kBias - kFractionBits);
}

/// Bytes of an element of raw_data; 0: types that are not read.
std::size_t raw_size(DataType type) {
  switch (type) {
    case DataType::kUint8:
    case DataType::kInt8:
    case DataType::kBool:
      return 1;
    case DataType::kUint16:
    case DataType::kInt16:
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return 2;
    case DataType::kFloat:
    case DataType::kInt32:
    case DataType::kUint32:
      return 4;
    case DataType::kInt64:
    case DataType::kUint64:
    case DataType::kDouble:
      return 8;
    default:
      return 0;
  }
}

double number_of(DataType type, std::uint64_t bits) {
  switch (type) {
    case DataType::kFloat:
      return float_of(bits);
    case DataType::kDouble:
      return double_of(bits);
    case DataType::kFloat16:
      return half(bits);
    case DataType::kBfloat16:
      return float_of(bits << 16U);
    case DataType::kInt8:
      return static_cast<std::int8_t>(bits);
    case DataType::kInt16:
      return static_cast<std::int16_t>(bits);
    case DataType::kInt32:
      return static_cast<std::int32_t>(bits);
    case DataType::kInt64:
      return static_cast<double>(static_cast<std::int64_t>(bits));
    default:
      return static_cast<double>(bits);
  }
}

std::vector<double> unpacked(DataType type, std::string_view raw) {
  constexpr unsigned kBits = 8;
  const std::size_t size = raw_size(type);
  std::vector<double> values;
  if (size == 0) return values;
  values.reserve(raw.size() / size);
  for (std::size_t at = 0; at + size <= raw.size(); at += size) {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < size; ++i)
      bits |= static_cast<std::uint64_t>(static_cast<unsigned char>(raw[at + i])) << (kBits * i);
    values.push_back(number_of(type, bits));
  }
  return values;
}

bool is_small(WireReader& wire, const Field& field) {
  if (field.wire != Wire::kBytes) wire.refuse("a tensor's values should be bytes");
  return field.value <= kMostValues * sizeof(double);
}

/// Values that stand one by one, or packed. Types of 16 bits have their bits in int32_data.
void read_values(WireReader& wire, const Field& field, DataType type, std::vector<double>& values) {
  if (values.size() > kMostValues || (field.wire == Wire::kBytes && !is_small(wire, field))) {
    values.assign(kMostValues + 1, 0);  // too many; dropped at the end
    wire.skip(field);
    return;
  }
  constexpr std::uint32_t kFloats = 4, kDoubles = 10, kInt32s = 5;
  const bool halves =
      field.number == kInt32s && (type == DataType::kFloat16 || type == DataType::kBfloat16);
  const auto read = [&](std::uint64_t bits) {
    if (field.number == kFloats) return static_cast<double>(float_of(bits));
    if (field.number == kDoubles) return double_of(bits);
    if (halves) return number_of(type, bits & 0xffffU);
    return static_cast<double>(static_cast<std::int64_t>(bits));
  };
  if (field.wire != Wire::kBytes) {
    values.push_back(read(field.value));
    return;
  }
  while (wire.before(field.end)) {
    std::uint64_t bits = 0;
    if (field.number == kFloats || field.number == kDoubles) {
      bits = wire.fixed(field.number == kFloats ? 4 : 8, field.end);
    } else {
      bits = wire.varint(field.end);
    }
    values.push_back(read(bits));
  }
}

}  // namespace

void read_integers(WireReader& wire, const Field& field, std::vector<std::int64_t>& integers) {
  const auto add = [&](std::uint64_t bits) {
    if (integers.size() == kMostNumbers) wire.refuse("a list has more than 65,536 numbers");
    integers.push_back(static_cast<std::int64_t>(bits));
  };
  if (field.wire != Wire::kBytes) {
    add(field.value);
    return;
  }
  while (wire.before(field.end)) add(wire.varint(field.end));
}

void read_reals(WireReader& wire, const Field& field, std::vector<double>& reals) {
  const auto add = [&](std::uint64_t bits) {
    if (reals.size() == kMostNumbers) wire.refuse("a list has more than 65,536 numbers");
    reals.push_back(float_of(bits));
  };
  if (field.wire != Wire::kBytes) {
    add(field.value);
    return;
  }
  while (wire.before(field.end)) add(wire.fixed(4, field.end));
}

void read_tensor(WireReader& wire, std::uint64_t end, TensorData& tensor) {
  constexpr std::size_t kMostName = std::size_t{1} << 16U;
  std::string raw;
  Field field;
  while (wire.next(end, field)) {
    switch (field.number) {
      case 1:
        read_integers(wire, field, tensor.dims);
        break;
      case 2:
        tensor.type = static_cast<DataType>(field.value);
        break;
      case 4:
      case 5:
      case 7:
      case 10:
      case 11:
        read_values(wire, field, tensor.type, tensor.values);
        break;
      case 8:
        tensor.name = wire.text(field, kMostName);
        break;
      case 9:
        if (is_small(wire, field)) {
          raw = wire.text(field, kMostValues * sizeof(double));
        } else {
          wire.skip(field);
        }
        break;
      default:
        wire.skip(field);
    }
  }
  if (!raw.empty()) tensor.values = unpacked(tensor.type, raw);
  std::size_t elements = 1;
  for (const std::int64_t size : tensor.dims) {
    if (size < 0 || size > static_cast<std::int64_t>(kMostValues)) {
      elements = kMostValues + 1;
      break;
    }
    elements *= static_cast<std::size_t>(size);
    if (elements > kMostValues) break;
  }
  if (elements > kMostValues || tensor.values.size() != elements) tensor.values.clear();
}

}  // namespace orrery::onnx
