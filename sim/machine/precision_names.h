// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "sim/config/declared.h"
#include "sim/graph/precision.h"

namespace orrery::config {

/// The names of precisions in YAML, those of to_string().
template <>
struct EnumNames<Precision> {
  using enum Precision;
  static constexpr std::pair<Precision, const char*> values[] = {
      {kFp32, "fp32"}, {kTf32, "tf32"},          {kBf16, "bf16"},   {kFp16, "fp16"},
      {kFp8, "fp8"},   {kFp8Block, "fp8_block"}, {kNvfp4, "nvfp4"}, {kInt8, "int8"}};
};

}  // namespace orrery::config
