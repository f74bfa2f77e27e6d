// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/machine/accelerator_config.h"

namespace orrery {

/// How the device issues matrix instructions (core.matrix_tile.issue); `otherwise` where its file
/// does not tell.
inline MatrixIssue issue_of(const AcceleratorConfig& device, MatrixIssue otherwise) {
  return device.core && device.core->matrix_tile ? device.core->matrix_tile->issue : otherwise;
}

/// How what runs at the same time adds up, as exponents of p-norms: 1 would be one after the other,
/// infinity the longest of all.
struct Overlap {
  int step;    ///< of instructions, loads and latencies in a step of the main loop
  int stream;  ///< of computing beside streaming from memory
};

/// Read off fits of A100, H100, H200 and B200: instructions, loads and latencies overlap less and
/// less in time that gets shorter.
constexpr Overlap overlap_of(MatrixIssue issue) {
  if (issue == MatrixIssue::kTensorMemory) return {2, 3};
  return issue == MatrixIssue::kWarpgroup ? Overlap{3, 4} : Overlap{4, 3};
}

}  // namespace orrery
