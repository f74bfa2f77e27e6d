// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/onnx/lowered.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "workloads/base/real.h"
#include "workloads/ops/kernels.h"

namespace orrery::onnx {
namespace {

enum class Numbers : std::uint8_t { kOther, kInteger, kWideFloat };

struct TypeFacts {
  int bits;  ///< bits of an element in memory
  Numbers numbers = Numbers::kOther;
  Precision precision = Precision::kFp32;  ///< what products of it run in
};
/// Types in the order of TensorProto.DataType.
constexpr TypeFacts kTypes[] = {
    {32},                                         // undefined
    {32, Numbers::kWideFloat},                    // float
    {8, Numbers::kInteger, Precision::kInt8},     // uint8
    {8, Numbers::kInteger, Precision::kInt8},     // int8
    {16, Numbers::kInteger},                      // uint16
    {16, Numbers::kInteger},                      // int16
    {32, Numbers::kInteger},                      // int32
    {64, Numbers::kInteger},                      // int64
    {32},                                         // string
    {8, Numbers::kInteger},                       // bool
    {16, Numbers::kWideFloat, Precision::kFp16},  // float16
    {64, Numbers::kWideFloat},                    // double
    {32, Numbers::kInteger},                      // uint32
    {64, Numbers::kInteger},                      // uint64
    {64},                                         // complex64
    {128},                                        // complex128
    {16, Numbers::kWideFloat, Precision::kBf16},  // bfloat16
    {8, Numbers::kOther, Precision::kFp8},        // float8e4m3fn
    {8, Numbers::kOther, Precision::kFp8},        // float8e4m3fnuz
    {8, Numbers::kOther, Precision::kFp8},        // float8e5m2
    {8, Numbers::kOther, Precision::kFp8},        // float8e5m2fnuz
    {4, Numbers::kInteger, Precision::kInt8},     // uint4
    {4, Numbers::kInteger, Precision::kInt8},     // int4
    {4, Numbers::kOther, Precision::kNvfp4},      // float4e2m1
    {8},                                          // float8e8m0
};

const TypeFacts& facts_of(DataType type) {
  const auto number = static_cast<std::size_t>(type);
  return kTypes[number < std::size(kTypes) ? number : 0];
}

}  // namespace

Value value_of(const TensorData& tensor) {
  Value value;
  value.dims = tensor.dims;
  value.type = tensor.type;
  value.values = tensor.values;
  value.known = !tensor.values.empty() || std::count(tensor.dims.begin(), tensor.dims.end(), 0) > 0;
  return value;
}

std::int64_t elements_of(const Dims& dims) {
  std::int64_t elements = 1;
  for (const std::int64_t size : dims) elements *= size;
  return elements;
}

std::string mistake_of(const Dims& dims) {
  constexpr std::size_t kMostDimensions = 64;
  if (dims.size() > kMostDimensions) return "more than 64 dimensions";
  std::int64_t elements = 1;
  for (const std::int64_t size : dims) {
    if (size < 0) return fmt::format("a dimension of {}", size);
    if (size > 0 && elements > kMostElements / size) return "more than 2^53 elements";
    elements *= std::max<std::int64_t>(size, 1);
  }
  return {};
}

std::string text_of(const Dims& dims) {
  std::string text;
  for (const std::int64_t size : dims) {
    if (!text.empty()) text += "x";
    text += std::to_string(size);
  }
  return text.empty() ? "scalar" : text;
}

int bits_of(DataType type) { return facts_of(type).bits; }
bool is_integer(DataType type) { return facts_of(type).numbers == Numbers::kInteger; }
bool is_wide_float(DataType type) { return facts_of(type).numbers == Numbers::kWideFloat; }

Bytes NumberFormat::bytes(const Value& value, bool weight) const {
  const double elements = real(elements_of(value.dims));
  if (precision && is_wide_float(value.type))
    return Bytes(elements * (weight ? element_bytes(*precision) : activation_bytes(*precision)));
  constexpr double kBitsOfByte = 8;
  return Bytes(elements * bits_of(value.type) / kBitsOfByte);
}

Precision NumberFormat::of(DataType type) const {
  return precision && is_wide_float(type) ? *precision : facts_of(type).precision;
}

}  // namespace orrery::onnx
