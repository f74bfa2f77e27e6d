// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "sim/config/declared.h"
#include "sim/graph/precision.h"

namespace orrery::config {

/// The names of precisions in YAML, those of to_string().
template <>
struct EnumNames<Precision> {
  static constexpr std::pair<Precision, const char*> values[] = {
      {Precision::kFp32, "fp32"},   {Precision::kTf32, "tf32"}, {Precision::kBf16, "bf16"},
      {Precision::kFp16, "fp16"},   {Precision::kFp8, "fp8"},   {Precision::kFp8Block, "fp8_block"},
      {Precision::kNvfp4, "nvfp4"}, {Precision::kInt8, "int8"},
  };
};

}  // namespace orrery::config
