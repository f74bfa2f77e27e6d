// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "sim/config/declared.h"
#include "workloads/layers/parts/attention_kernels.h"

namespace orrery {

/// Format of cached keys and values.
enum class CacheFormat : std::uint8_t {
  kByPrecision,  ///< 8 bits where the products have 8 or fewer, 16 else
  kBf16,
  kFp8
};

inline constexpr const char* kCacheFormatHelp =
    "number format of keys and values; auto: fp8 where `precision` has 8 bits or fewer (int8: 8 "
    "bits), else bf16. 16-bit queries over fp8: decode widens the cache, prefill runs in fp8; fp8, "
    "int8 or nvfp4 over bf16: runs in bf16; nvfp4 over 8 bits: runs in fp8";

/// Fills in what a cache format means for a core that reads all its keys and values from the cache:
/// bytes, and the format of the products, so that time, bytes, FLOPs and energy are of one kernel.
inline void read_cache(AttentionCore& core, CacheFormat format, Precision precision) {
  const bool few_bits = element_bytes(precision) < 2;
  const bool narrow =
      format == CacheFormat::kFp8 || (format == CacheFormat::kByPrecision && few_bits);
  // No library multiplies 4-bit queries and keys, or 8-bit queries by 16-bit keys.
  if (few_bits && !narrow) precision = Precision::kBf16;
  if (precision == Precision::kNvfp4) precision = Precision::kFp8;
  core.precision = few_bits ? precision : attention_precision(core.kind, precision, narrow);
  core.wide_queries = narrow && !few_bits;
  core.new_bytes = core.cache_bytes = element_bytes(narrow ? Precision::kFp8 : Precision::kBf16);
}

template <>
struct config::EnumNames<CacheFormat> {
  static constexpr std::pair<CacheFormat, const char*> values[] = {
      {CacheFormat::kByPrecision, "auto"},
      {CacheFormat::kBf16, "bf16"},
      {CacheFormat::kFp8, "fp8"}};
};

}  // namespace orrery
