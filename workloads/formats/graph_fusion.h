// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "sim/graph/imported_graph.h"

namespace orrery {

/// Lets kernels of a graph run with the ones behind them, by the rules of fusion.h: where a product
/// or convolution is followed by one elementwise kernel, norm or quantisation on its stream and by
/// nothing else, and that one reads at least what the product writes, the two are one kernel that
/// stands where the second stood; the first becomes a marker. Dependencies are taken for data, so
/// that this is for files which say what nodes need (Chakra), and for kernels whose bytes read and
/// written are known apart. Recorded times add up: only the model makes a fused kernel shorter.
/// @returns kernels that have become part of another
std::uint64_t fuse_kernels(ImportedGraph& graph);

}  // namespace orrery
