// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/host_device.h"

namespace orrery::measure {

/// Formats of operands. tf32 is held in 32-bit words whose low 13 bits are zero.
enum class Format { kBf16, kE4m3, kTf32, kF32 };

constexpr const char* name_of(Format format) {
  if (format == Format::kBf16) return "bf16";
  if (format == Format::kE4m3) return "fp8";
  return format == Format::kTf32 ? "tf32" : "fp32";
}

ORRERY_HD constexpr std::size_t bytes_of(Format format) {
  return format == Format::kBf16 ? 2 : format == Format::kE4m3 ? 1 : 4;
}

/// Round to nearest even, as the hardware's conversions do; NaN is not expected.
ORRERY_HD constexpr std::uint16_t encode_bf16(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

ORRERY_HD constexpr float decode_bf16(std::uint16_t code) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(code) << 16);
}

/// Nearest even at 10 mantissa bits: values that the tensor cores read without further rounding.
ORRERY_HD constexpr float round_tf32(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t rounded = (bits + 0xFFFu + ((bits >> 13) & 1u)) & ~0x1FFFu;
  return __builtin_bit_cast(float, rounded);
}

/// E4M3 of Micikevicius et al., "FP8 Formats for Deep Learning" (arXiv 2209.05433): bias 7, largest
/// 448, no infinities; saturates.
ORRERY_HD constexpr std::uint8_t encode_e4m3(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t sign = (bits >> 24) & 0x80u;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<std::uint8_t>(sign | 0x7Fu);
  const std::uint32_t least_normal = 0x3C800000u;  // 2^-6
  std::uint32_t code = 0;
  if (magnitude < least_normal) {
    // Adding 2^23 leaves the integer nearest to |x| / 2^-9 in the low mantissa bits.
    const float shifted = __builtin_bit_cast(float, magnitude) * 512.0f + 8388608.0f;
    code = __builtin_bit_cast(std::uint32_t, shifted) & 0xFFu;
  } else {
    const std::uint32_t rounded = magnitude + 0x7FFFFu + ((magnitude >> 20) & 1u);
    code = (rounded >> 20) - ((127u - 7u) << 3);
  }
  return static_cast<std::uint8_t>(sign | (code > 0x7Eu ? 0x7Eu : code));
}

ORRERY_HD constexpr float decode_e4m3(std::uint8_t code) {
  const std::uint32_t exponent = (code >> 3) & 0xFu, mantissa = code & 7u;
  const float magnitude =
      exponent == 0 ? static_cast<float>(mantissa) * 0.001953125f
                    : __builtin_bit_cast(float, ((exponent + 120u) << 23) | (mantissa << 20));
  return (code & 0x80u) ? -magnitude : magnitude;
}

/// The value that `format` stores for `value`.
ORRERY_HD constexpr float rounded_to(Format format, float value) {
  if (format == Format::kBf16) return decode_bf16(encode_bf16(value));
  if (format == Format::kE4m3) return decode_e4m3(encode_e4m3(value));
  return format == Format::kTf32 ? round_tf32(value) : value;
}

}  // namespace orrery::measure
