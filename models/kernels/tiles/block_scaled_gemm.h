// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/kernels/device/family.h"
#include "models/kernels/tiles/matrix_product.h"

namespace orrery {

/// Whether a product runs by the rule below: fp8_block, stored as such, on matrix instructions
/// that warpgroups start (Hopper).
bool runs_block_scaled(const Kernel& kernel, const AcceleratorConfig& accelerator);

/// DeepGEMM's kernel for FP8 with a scale per block (github.com/deepseek-ai/DeepGEMM), persistent,
/// with one rule instead of a library's menu. Products of fewer than 48 tokens swap the operands,
/// features take the rows of the instruction. A tile has 64 rows for up to 64 tokens, else 128; its
/// columns, a multiple of 8 up to 128, make the fewest waves, then the fullest last wave. Every 128
/// elements of the sum are a step: matrix instructions, loads and a latency, for the partial sums
/// are scaled between. Rows of running tiles that lie beyond the product slow the steps: our
/// finding on the tables of H100 and H200, where times jump from 64 to 65, 128 to 129, ... tokens.
KernelTime block_scaled_time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                             GemmValues v);

/// The tile of that rule for `rows` x `columns` of results on `units`.
Tile block_scaled_tile(double rows, double columns, double batch, double tile_rows, double units);

}  // namespace orrery
