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

/// FLOPs of an element of a short causal convolution with SiLU: its multiply-adds, and the
/// addresses, masks and shifts of the window that lanes compute beside them.
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
