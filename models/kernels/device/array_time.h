// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/graph/kernel.h"
#include "sim/machine/accelerator_config.h"

namespace orrery {

/// Clocks in which `count` systolic arrays run a product. The k x n weights are cut into tiles of
/// rows x columns that one array holds; the m inputs stream past, one a clock, while the next tile
/// is loaded:
///
///     clocks = rounds x max(inputs, load) + fill,   rounds = ceil(tiles x parts / count)
///
/// where the inputs are dealt out over as many `parts` as take the least time. Weights that a
/// fraction of an array holds are there several times, on its diagonal, each for inputs of its own,
/// or beside those of other groups of the product.
double array_clocks(const Kernel& kernel, const ArraysConfig& arrays, double count);

/// Time of a product on the arrays of a die: array_clocks() at compute.clock, of precisions in
/// which the matrix units are slower than their multiply-adds in proportion.
/// @throws config::ConfigError when the accelerator has no rate for the kernel's precision
Seconds array_time(const Kernel& kernel, const AcceleratorConfig& accelerator);

/// Whether a kernel multiplies matrices whose sizes it tells: products, of experts and adapters
/// too, and convolutions.
bool is_product(const Kernel& kernel);

/// FLOPs of batch x m x n x k multiply-adds.
Flops multiply_add_flops(const Kernel& kernel);

/// Arrays that are mapped in space: each product of an inference has whole ones of its own, in a
/// share that makes the slowest as fast as can be, and images follow each other without end. A
/// kernel then stands for the array time of its layer, waiting for the slowest one included: its
/// arrays over all of them, times that of the slowest. What has more products than there are arrays
/// runs in parts, one after the other (contexts). Changes the rates of `kernels`, in order.
void map_in_space(const ComputeConfig& compute, std::vector<Kernel>& kernels);

}  // namespace orrery
