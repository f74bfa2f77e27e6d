// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace orrery {

/// What runs products of experts in fp8 with scales of blocks where tensor cores do not scale
/// blocks.
enum class ExpertKernels : std::uint8_t {
  kMeasured,  ///< the kernels whose times were measured
  kTriton,    ///< Triton's fused_moe, which scales its sums: priced as products of fp8
  kDeepGemm,  ///< DeepGEMM: priced as dense products of its kernel, an expert behind the other
};

}  // namespace orrery
