// SPDX-License-Identifier: Apache-2.0
// What time mixing and channel mixing of RWKV share.
#pragma once

#include <cstdint>

#include "workloads/base/real.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/ops/kernels.h"

namespace orrery {

/// Bytes of the last token, which the next one is mixed with.
inline double shift_bytes(const LlmConfig& model) { return 2 * real(model.hidden); }

/// How ranks add up a product of rows: training shares tokens out where sequences are split.
inline RowOutput rwkv_reduction(const RankWork& work) {
  const bool scatters = work.trains() && work.split.sp;
  return scatters ? RowOutput::kScattered : RowOutput::kReduced;
}

}  // namespace orrery
