// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace orrery {

/// Number formats of matrix operands. `fp8_block` is FP8 with one scale per 1x128 or 128x128 block.
enum class Precision : std::uint8_t { kFp32, kTf32, kBf16, kFp16, kFp8, kFp8Block, kNvfp4, kInt8 };

/// Bytes of one element (0.5 for nvfp4; scales of block formats are not counted).
double element_bytes(Precision precision);
/// The name used in YAML and results: "bf16", "fp8_block", ...
const char* to_string(Precision precision);

}  // namespace orrery
