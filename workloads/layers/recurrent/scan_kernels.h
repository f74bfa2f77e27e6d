// SPDX-License-Identifier: Apache-2.0
// Kernels of recurrences over tokens, in class `scan`, whichever recurrence it is.
#pragma once

#include <cstdint>

#include "workloads/ops/kernels.h"

namespace orrery {

/// A kernel that streams [rows, width] elements.
Kernel scan_pass(const char* name, std::int64_t rows, std::int64_t width, StreamCost cost);

/// Products of tiles of [m, n] over k, `batch` of them.
struct ScanProducts {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
};

/// A kernel of products whose operands and results are counted by the caller.
/// @param read, written bytes
Kernel scan_products(const char* name, ScanProducts p, double flops, double read, double written);

/// The same in the small thread blocks of flash-linear-attention, 64 tokens and 64 columns
/// (models/kernels/tiles/scan.cpp).
Kernel block_pass(const char* name, std::int64_t rows, std::int64_t width, StreamCost cost);
Kernel block_products(const char* name, ScanProducts p, double flops, double read, double written);

}  // namespace orrery
