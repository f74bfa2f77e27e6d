// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

namespace orrery {

/// Rate of PyTorch's elementwise kernels where an operand is a vector over rows or lies otherwise
/// than the result, over those where all lie alike, which are vectorised: 1.18 of 2.57 TB/s (prelu
/// and leaky_relu of 1,024 x 10,240 in fp16 on H200; tile-ai/TileOPs pull request 500, 2026).
inline constexpr double kStridedRate = 0.46;

/// The same over kernels at `elementwise` of their rate; those of slow software are no slower.
constexpr double strided_rate(double elementwise) {
  return std::min(kStridedRate, elementwise) / elementwise;
}

}  // namespace orrery
