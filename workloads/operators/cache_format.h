// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "sim/config/type.h"
#include "sim/graph/kernel.h"
#include "workloads/llm/attention_kernels.h"

namespace orrery {

/// Format of cached keys and values.
enum class CacheFormat { kBf16, kFp8 };

/// Fills in what a cache format means for a core that reads all its keys and values from the cache.
inline void read_cache(AttentionCore& core, CacheFormat format, Precision precision) {
  const bool narrow = format == CacheFormat::kFp8;
  core.precision = attention_precision(core.kind, precision, narrow);
  core.wide_queries = narrow && element_bytes(precision) >= 2;
  core.new_bytes = core.cache_bytes = element_bytes(narrow ? Precision::kFp8 : Precision::kBf16);
}

namespace config {

template <>
struct EnumNames<CacheFormat> {
  static constexpr std::pair<CacheFormat, const char*> values[] = {{CacheFormat::kBf16, "bf16"},
                                                                   {CacheFormat::kFp8, "fp8"}};
};

}  // namespace config
}  // namespace orrery
