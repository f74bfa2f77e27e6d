// SPDX-License-Identifier: Apache-2.0
// Kernels of recurrences over tokens, in class `scan`, whichever recurrence it is.
#pragma once

#include <cstdint>

#include "workloads/ops/kernels.h"

namespace orrery {

/// A kernel of Mamba-2 that streams [rows, width] elements.
Kernel scan_pass(const char* name, std::int64_t rows, std::int64_t width, StreamCost cost);
/// A kernel that streams such elements and what sequences keep of earlier ones.
Kernel window_pass(const char* name, std::int64_t rows, std::int64_t width, StreamCost cost);

/// FLOPs that vector lanes spend on an element of a short causal convolution with SiLU. Most of
/// them compute addresses and masks and shift the window; the multiply-adds of the taps are few.
double convolution_flops(std::int64_t taps);

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
