// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "models/kernels/tiles/resident_blocks.h"
#include "sim/graph/kernel.h"
#include "sim/machine/accelerator_config.h"

namespace orrery {

/// Parameters of products of experts, in the order of GroupedGemmFamily::parameters().
enum class GroupedParameter : std::size_t {
  kLaunch,            ///< us of the launch
  kMemoryEfficiency,  ///< share of the memory bandwidth
  kCacheShare,        ///< share of the L2 that holds weights and rows from launch to launch
  kEfficiency,        ///< share of the matrix peak of a short product
  kThrottle,          ///< how much longer a long product takes under the power limit
  kThrottleTime,      ///< us of ideal time after which the power limit acts
  kLoad,              ///< bytes that a unit loads into its shared memory in a clock
  kStepLatency,       ///< ns for each byte of depth, however small the tile
  kFill,              ///< us until the first tile computes
  kEpilogue,          ///< us to write out 128 x 128 results into the experts' width
  kOverlapLoss,       ///< share of the shorter of main loop and epilogue that is not hidden
  kWaves,     ///< 1: a last wave takes as long as a full one, 0: as long as its tiles fill it
  kTail,      ///< streaming in the last wave: 1 as long as in a full one, 0 as its tiles fill it
  kReread,    ///< share of the weights that come from memory again for further blocks of an expert
  kExponent,  ///< p of computing beside streaming
  kExpert,    ///< us for each expert of the rank, active or not
  kInputs,    ///< 16-bit passes over the inputs beside the kernels of the graph (quantising, ...)
  kOutputs,   ///< 16-bit passes over the outputs beside those kernels
  kSortCopies,    ///< ns to sort a copy by its expert
  kSortChoices,   ///< ns for each expert of the rank and token that is sorted
  kSortRows,      ///< ns for each row of the rank
  kSortPasses,    ///< us more where sorting takes three kernels instead of one
  kDownEpilogue,  ///< us to add 128 x 128 results up for their tokens
  kTile,          ///< us of each tile beside computing and writing: taking up its expert's operands
  kUnits,         ///< units of the device that was fitted
};

/// Values by parameter.
struct GroupedValues {
  const double* values;
  double operator[](GroupedParameter p) const { return values[static_cast<std::size_t>(p)]; }
};

/// Bytes of the summed dimension that a step takes.
inline constexpr double kGroupedStepBytes = 128;

/// A device as tiles see it; us and bytes.
struct GroupedDevice {
  double units = 0, ideal_rate = 0, memory = 0, cache = 0, unit_load = 0;
  LoadHiding hiding;
};

/// One product and the rows of its experts.
struct GroupedProduct {
  double n = 0, k = 0, element = 2;
  double weight = 2;  ///< bytes of a stored weight, which may be narrower than an operand
  double active = 1, rows = 1, more_bytes = 0;
  bool back = false;  ///< the product comes from the experts' width; false: goes into it
  double reuse = 0;   ///< bytes of Kernel::reuse
  double rate = 0;    ///< FLOP/us of a unit
};

/// A tile of a product, in us.
struct GroupedTile {
  double matrix = 0, load = 0, latency = 0;  ///< parts of a step
  double loop = 0, epilogue = 0;
  double exposed = 0;  ///< loads of the main loop that nothing hides
  double steady = 0;   ///< time of a tile between others
};

/// @param rows of tokens that the tile loads
GroupedTile grouped_tile(const GroupedProduct& p, const GroupedDevice& d, double height,
                         double width, double rows, GroupedValues v);

/// Bytes through the memory.
struct GroupedTraffic {
  double weights = 0;  ///< again for further blocks of an expert included
  double rows = 0;     ///< rows in and out
  double all = 0;      ///< what the kernel moves beside both included
};

/// Traffic of a product whose rows fill `blocks`.
GroupedTraffic grouped_traffic(const GroupedProduct& p, const GroupedDevice& d, double blocks,
                               GroupedValues v);

/// us without launch; what the memory takes of the body by itself.
struct GroupedTime {
  double body = 0, memory = 0;
};

/// The tile that a library most likely takes, its time, and the mean over what it may take.
struct GroupedChoice {
  double height = 0, width = 0, blocks = 0;
  GroupedTime of_tile, expected;
};

/// What a kernel is, and how it runs.
struct GroupedJob {
  GroupedDevice device;
  ExpertLoad load;
  GroupedProduct product;
  GroupedChoice choice;
  double passes = 0, sorting = 0;  ///< us beside the product
};

/// @throws config::ConfigError when the accelerator has no rate for the kernel's precision.
GroupedJob grouped_job(const Kernel& kernel, const AcceleratorConfig& accelerator, GroupedValues v);

/// Rows of the experts; kernels that do not say how they are dealt out: evenly.
ExpertLoad grouped_load(const Kernel& kernel);

}  // namespace orrery
