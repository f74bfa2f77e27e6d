// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "models/kernels/device/family.h"
#include "models/kernels/device/tile_menu.h"
#include "models/kernels/tiles/resident_blocks.h"
#include "sim/graph/kernel.h"
#include "sim/machine/accelerator_config.h"

namespace orrery {

/// Parameters of matrix products, in the order of GemmFamily::parameters().
enum class GemmParameter : std::size_t {
  kLaunch,            ///< us of the launch
  kMemoryEfficiency,  ///< share of the memory bandwidth
  kCacheShare,        ///< share of the L2 that holds operands from launch to launch
  kMemoryLatency,     ///< us that a product pays once when its operands come from memory
  kEfficiency,        ///< share of the matrix peak of a short product
  kThrottle,          ///< how much longer a long product takes under the power limit
  kThrottleTime,      ///< us of ideal time after which the power limit acts
  kStepLatency,       ///< ns for each element of the summed dimension, however small the tile
  kFill,              ///< us until the first step of a tile
  kEpilogue,          ///< us to write out 128 x 128 results
  kOverlapLoss,       ///< share of the shorter of main loop and epilogue that is not hidden
  kWaves,         ///< 1: a last wave takes as long as a full one, 0: as long as its tiles fill it
  kSplit,         ///< us of adding up a split product
  kSplitTraffic,  ///< factor of the ideal time of its partial sums in the L2
  // Block-scaled products of warpgroups alone (block_scaled_gemm.h).
  kWriteEfficiency,  ///< share of the memory bandwidth of results
  kSwappedStep,      ///< factor of the step latency when features take the rows
  kPadding,          ///< us a step for 1000 rows beyond the product in the tiles that run
  kPaddingFree,      ///< 1000s of such rows that cost half of that
};

/// Values by parameter.
struct GemmValues {
  const double* values;
  double operator[](GemmParameter p) const { return values[static_cast<std::size_t>(p)]; }
};

/// What of a product runs at once on a unit, by who starts its matrix instructions. Exponents are
/// those of p-norms: times that add up at 1 and hide each other wholly at infinity.
struct ProductOverlap {
  int step = 0;    ///< exponent of instructions, loads and latencies in a step of the main loop
  int stream = 0;  ///< exponent of computing and streaming from memory
  /// GemmParameter::kWaves of a fit that moves to a device with other instructions.
  double last_wave = 0;
  double memory_exponent = 0, cache_exponent = 0;  ///< where blocks are played (BlockMachine)
  double cache_bytes = 0;                          ///< bytes that the L2 delivers in a clock
};

/// Wavefronts and queues of NPUs as warps, systolic arrays as tcgen05: assumptions, as no product
/// of them has been fitted.
ProductOverlap product_overlap(MatrixIssue issue);

/// What products are taken to run on where nothing is known of the matrix unit. An assumption.
inline constexpr MatrixIssue kUnknownIssue = MatrixIssue::kWarpgroup;

/// A device as tiles see it; us and bytes.
struct TileDevice {
  double units = 0, rate = 0;  ///< FLOP/us of all units at the peak of the kernel's operands
  double vector_rate = 0;      ///< FLOP/us of one unit
  double memory = 0, cache = 0, cache_rate = 0, unit_load = 0;
  double multicast = 0;  ///< units that a byte read from the L2 serves
  LoadHiding hiding;
  MatrixIssue issue = kUnknownIssue;
  ProductOverlap overlap;
};

/// Bytes/us that the L2 of one rank gives all units together: 5,120 a clock (NVIDIA A100
/// whitepaper), twice that where the chip is two dies, an assumption; less where what lies between
/// its parts lets no more through.
double cache_rate(const AcceleratorConfig& accelerator);

/// Numbers of the device. Where clusters are asked for, only units count that they can fill.
/// @throws config::ConfigError for larger clusters than the device has.
TileDevice tile_device(const AcceleratorConfig& accelerator, const Kernel& kernel);

/// Clusters read a byte of the L2 once for several units: the mean that fits want of the clusters
/// that libraries choose, on Ampere too, where the L1 does a part of it.
inline constexpr double kMulticast = 3;
/// Units that a byte serves on its way through the L2, when fits say nothing: clusters of 2 x 2, or
/// pairs and a part of the L1. The 3 above have what hides loads in them.
inline constexpr double kServed = 2;
/// Units that a byte serves in a cluster of r x c blocks, as square as it can be: rows are read
/// once for c, columns once for r, on the mean 2 / (1 / r + 1 / c) for square tiles. Fits that want
/// kMulticast do not say how much of it is the cluster's.
double multicast_of(std::int64_t cluster);

/// What passes the L2 over what the multicast of fits leaves; 1 for clusters that are asked for.
inline double served(const Kernel& kernel, const TileDevice& device) {
  return kernel.cluster > 0 ? 1 : device.multicast / kServed;
}

/// A product beside its tiles.
struct MatrixProduct {
  Precision precision = Precision::kBf16;
  double batch = 1, m = 0, n = 0, k = 0;
  OperandBytes bytes;      ///< bytes of an element where it is stored
  double widening_us = 0;  ///< us of one unit, for each element of narrower weights
};

/// @throws config::ConfigError for weights that are wider than the operands.
MatrixProduct matrix_product(const Kernel& kernel, const TileDevice& device);

/// Operands and results at the memory.
struct Streaming {
  double time_us = 0;  ///< waiting for the first byte included
  double wait_us = 0;  ///< part of it spent waiting
  double bytes = 0;    ///< bytes that do not come from, or stay in, the L2
};

/// The memory delivers what the L2 does not hold from the launch before: measured tables rotate
/// five copies of the weights and none of the activations. In a step weights stay only where all
/// that lies between two uses of them fits (Kernel::reuse); activations have just been written.
Streaming streaming(const MatrixProduct& product, const Kernel& kernel, const TileDevice& device,
                    GemmValues v, double write_efficiency);

/// Boost clock over that of the product: long ones lose clock to the power limit.
double clock_loss(const MatrixProduct& product, const TileDevice& device,
                  const AcceleratorConfig& accelerator, GemmValues v);
/// FLOP/us of one unit at that clock.
double unit_rate(const MatrixProduct& product, const TileDevice& device,
                 const AcceleratorConfig& accelerator, GemmValues v);

/// Waves of `tiles` on `units`, at least one; a share of the last one counts as full.
inline double counted_waves(double tiles, double units, GemmValues v) {
  const double waves = tiles / units, whole = v[GemmParameter::kWaves];
  return std::max(1.0, whole * std::ceil(waves) + (1 - whole) * waves);
}

/// Bytes/us that a tile loads at, `active` of them running on average: what L2 and multicast give
/// all of them together, or what a unit takes in.
inline double loading_rate(const TileDevice& d, double active) {
  return std::min(d.unit_load, d.multicast * d.cache_rate / active);
}

/// A tile between others on one unit: while one computes its main loop, the results of the one
/// before are written.
inline double steady_us(double loop, double epilogue, GemmValues v) {
  return std::max(loop, epilogue) + v[GemmParameter::kOverlapLoss] * std::min(loop, epilogue);
}

/// A tile after the other on one unit.
inline double tiles_us(double loop, double epilogue, double waves, GemmValues v) {
  return v[GemmParameter::kFill] + loop + epilogue + (waves - 1) * steady_us(loop, epilogue, v);
}

}  // namespace orrery
