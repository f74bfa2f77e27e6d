// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "sim/config/fact.h"
#include "sim/config/schema.h"
#include "sim/units/units.h"

namespace orrery {

/// The block of a product that one instruction of a matrix unit works on, for 16-bit operands:
/// rows x columns of results, summed over `depth`. wgmma 64 x 256 x 16, a systolic array
/// 128 x 128 x 128. Depth in bytes is the same for other widths: 8-bit operands have twice it.
struct MatrixTileConfig {
  int rows = 0;
  int columns = 0;
  int depth = 0;
  std::string source;
  static const config::Schema<MatrixTileConfig>& schema();
};

/// One unit of the package as kernels see it: an SM, an AI core, a TensorCore, a processor core.
struct CoreConfig {
  /// Register file that blocks share; absent: not a limit that software knows.
  std::optional<Fact<Bytes>> registers;
  /// Memory of matrix results apart from the registers (tensor memory, L0C); absent: results stay
  /// in registers, or in the shared memory where there are none.
  std::optional<Fact<Bytes>> accumulators;
  /// The most that one block can have: shared memory of a thread block, or the buffer that software
  /// manages.
  Fact<Bytes> shared_memory;
  Fact<BytesPerSecond> shared_bandwidth;  ///< of one unit, at `compute.clock`
  Fact<int> max_blocks{.value = 1};       ///< resident at a time
  Fact<int> max_warps{.value = 1};        ///< resident at a time; 1: a single instruction stream
  Fact<int> max_cluster{.value = 1};      ///< blocks that reach each other's shared memory
  /// Absent: no matrix unit, products run on the vector lanes.
  std::optional<MatrixTileConfig> matrix_tile;
  static const config::Schema<CoreConfig>& schema();
};

/// The last cache before the memory, shared by all units.
struct CacheConfig {
  Fact<Bytes> capacity;
  /// Parts with a nearest unit each; a unit reads the other parts over a slower way.
  Fact<int> partitions{.value = 1};
  Fact<BytesPerSecond> bandwidth;  ///< of all parts together, reads
  static const config::Schema<CacheConfig>& schema();
};

/// How a step's kernels get to the device. `graph`: replayed as one graph, as kernels are measured.
/// `stream`: the host enqueues one after the other; where kernels are shorter than that takes, the
/// device waits for it.
enum class LaunchMode : std::uint8_t { kGraph, kStream };

/// The way of a kernel to the device.
struct LaunchConfig {
  LaunchMode mode = LaunchMode::kGraph;
  Fact<Seconds> host;                  ///< the host's work to enqueue one kernel
  Fact<Seconds> stream;                ///< from one kernel of a stream to the next, on the device
  std::optional<Fact<Seconds>> graph;  ///< per node of a replayed graph; absent: no graphs
  static const config::Schema<LaunchConfig>& schema();
};

/// A part of a device with units and memory of its own, such as a MIG instance: `units` of the
/// device's units and `memory_slices` of its `all_slices` equal shares of memory and cache.
struct PartitionConfig {
  Fact<int> units;
  Fact<int> memory_slices;
  Fact<int> all_slices;
  double memory_share() const {
    return static_cast<double>(memory_slices.value) / all_slices.value;
  }
  static const config::Schema<PartitionConfig>& schema();
};

}  // namespace orrery

namespace orrery::config {

template <>
struct EnumNames<LaunchMode> {
  static constexpr std::pair<LaunchMode, const char*> values[] = {
      {LaunchMode::kGraph, "graph"},
      {LaunchMode::kStream, "stream"},
  };
};

}  // namespace orrery::config
