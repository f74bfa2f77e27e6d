// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/onnx/lowered.h"

#include <algorithm>

#include "workloads/base/real.h"
#include "workloads/ops/kernels.h"

namespace orrery::onnx {
namespace {

constexpr double kBitsOfByte = 8;

bool is_wide_float(DataType type) {
  return type == DataType::kFloat || type == DataType::kFloat16 || type == DataType::kBfloat16 ||
         type == DataType::kDouble;
}

}  // namespace

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
    if (size < 0) return "a dimension of " + std::to_string(size);
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

int bits_of(DataType type) {
  switch (type) {
    case DataType::kUint4:
    case DataType::kInt4:
    case DataType::kFloat4:
      return 4;
    case DataType::kUint8:
    case DataType::kInt8:
    case DataType::kBool:
    case DataType::kFloat8E4M3:
    case DataType::kFloat8E4M3Uz:
    case DataType::kFloat8E5M2:
    case DataType::kFloat8E5M2Uz:
    case DataType::kFloat8E8M0:
      return 8;
    case DataType::kUint16:
    case DataType::kInt16:
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return 16;
    case DataType::kDouble:
    case DataType::kInt64:
    case DataType::kUint64:
    case DataType::kComplex64:
      return 64;
    case DataType::kComplex128:
      return 128;
    default:
      return 32;
  }
}

bool is_integer(DataType type) {
  switch (type) {
    case DataType::kUint8:
    case DataType::kInt8:
    case DataType::kUint16:
    case DataType::kInt16:
    case DataType::kInt32:
    case DataType::kInt64:
    case DataType::kUint32:
    case DataType::kUint64:
    case DataType::kUint4:
    case DataType::kInt4:
    case DataType::kBool:
      return true;
    default:
      return false;
  }
}

Bytes NumberFormat::bytes(const Value& value, bool weight) const {
  const double elements = real(elements_of(value.dims));
  if (precision && is_wide_float(value.type))
    return Bytes(elements * (weight ? element_bytes(*precision) : activation_bytes(*precision)));
  return Bytes(elements * bits_of(value.type) / kBitsOfByte);
}

Precision NumberFormat::of(DataType type) const {
  if (precision && is_wide_float(type)) return *precision;
  switch (type) {
    case DataType::kFloat16:
      return Precision::kFp16;
    case DataType::kBfloat16:
      return Precision::kBf16;
    case DataType::kFloat8E4M3:
    case DataType::kFloat8E4M3Uz:
    case DataType::kFloat8E5M2:
    case DataType::kFloat8E5M2Uz:
      return Precision::kFp8;
    case DataType::kFloat4:
      return Precision::kNvfp4;
    case DataType::kUint8:
    case DataType::kInt8:
    case DataType::kUint4:
    case DataType::kInt4:
      return Precision::kInt8;
    default:
      return Precision::kFp32;
  }
}

}  // namespace orrery::onnx
