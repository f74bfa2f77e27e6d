// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/declared.h"
#include "sim/config/fact.h"
#include "sim/units/units.h"

namespace orrery {

/// Who starts an instruction of a matrix unit, which tells generations of GPUs apart: kernels of
/// one are written anew for the next.
enum class MatrixIssue : std::uint8_t {
  kQuadPair,   ///< two groups of four threads together: mma.sync m8n8k4 of Volta
  kWarp,       ///< a warp, which waits for the results: mma.sync from Turing on
  kWavefront,  ///< a wavefront of 64 lanes: mfma
  kWarpgroup,  ///< four warps together, operands in the shared memory: wgmma
  kThread,     ///< one thread, results in tensor memory: tcgen05.mma
  kQueue,      ///< an instruction queue of the unit's own: the cube of an NPU
  kArray,      ///< the instruction stream that feeds a systolic array which holds the weights
};

/// The block of a product that one instruction of a matrix unit works on, rows x columns of
/// results: 64 x 256 of wgmma, 128 x 128 of a systolic array.
struct MatrixTileConfig {
  int rows = 0;
  int columns = 0;
  /// Absent: nothing is known, as of a device without a core.
  std::optional<MatrixIssue> issue;
  std::string source;
  static const config::Schema<MatrixTileConfig>& schema();
};

/// What arrays work on in inference: the layers of a network one after the other, each on all of
/// them, or all layers at once, each on arrays of its own that images pass one after the other.
enum class ArrayMapping : std::uint8_t { kTemporal, kSpatial };

/// Systolic arrays of multiply-adds that hold a tile of the weights each while inputs stream past:
/// a row takes an input, a column gives a result (Kung and Leiserson 1979; TPU, ISCA 2017).
struct ArraysConfig {
  Fact<int> per_unit;
  Fact<int> rows;
  Fact<int> columns;
  Fact<int> load;  ///< clocks in which an array takes the next tile of weights
  Fact<int> fill;  ///< clocks from the first input of a product to its first whole result
  ArrayMapping mapping = ArrayMapping::kTemporal;
  static const config::Schema<ArraysConfig>& schema();
};

/// Groups of units with a network of their own, such as GPCs: all blocks of a cluster run in one of
/// them, so what a cluster's size does not divide stays empty.
struct UnitGroupsConfig {
  std::vector<int> sizes;  ///< units of each group
  std::string source;
  /// Share of the units that clusters of so many blocks, a block on each unit, can fill. 1 without
  /// groups. With other units than the groups have together, each has its share of them.
  double filled(std::int64_t cluster) const;
  static const config::Schema<UnitGroupsConfig>& schema();
};

/// One unit of the package as kernels see it: an SM, an AI core, a TensorCore, a processor core.
struct CoreConfig {
  std::optional<Fact<Bytes>> registers;
  std::optional<Fact<Bytes>> accumulators;
  Fact<Bytes> shared_memory;
  Fact<BytesPerSecond> shared_bandwidth;  ///< rate of one unit, at the boost clock
  Fact<int> max_blocks{.value = 1};       ///< resident at a time
  Fact<int> max_warps{.value = 1};        ///< resident at a time; 1: a single instruction stream
  Fact<int> max_cluster{.value = 1};      ///< blocks that reach each other's shared memory
  std::optional<UnitGroupsConfig> groups;
  /// Whether loads into the shared memory run beside the block that asked for them (cp.async, TMA,
  /// the DMA of an NPU). Where they do not, only other blocks of the unit compute meanwhile.
  Fact<bool> async_copy{.value = true};
  /// Absent: no matrix unit, products run on the vector lanes.
  std::optional<MatrixTileConfig> matrix_tile;
  static const config::Schema<CoreConfig>& schema();
};

/// The last cache before the memory, shared by all units.
struct CacheConfig {
  Fact<Bytes> capacity;
  /// Parts with a nearest unit each; a unit reads the other parts over a slower way.
  Fact<int> partitions{.value = 1};
  Fact<BytesPerSecond> bandwidth;  ///< bytes/s of all parts together, reads
  std::optional<Fact<BytesPerSecond>> far_bandwidth;
  Fact<Seconds> far_latency;  ///< time by which a hit in another part takes longer
  /// Whether each part keeps copies of what its units read from the others: reads of the same data
  /// cross once, and every part holds the same.
  Fact<bool> duplicated{.value = false};

  /// Share of reads that go to another part, for reads that know no part: (p - 1) / p.
  double far_share() const { return 1 - 1.0 / partitions.value; }
  /// How often data that all units read lie in the cache.
  double copies() const { return duplicated.value ? partitions.value : 1; }
  static const config::Schema<CacheConfig>& schema();
};

/// Engines that copy between memories while the units compute.
struct CopyEngineConfig {
  Fact<int> count{.value = 1};
  Fact<int> directions{.value = 1};
  Fact<BytesPerSecond> bandwidth;  ///< bytes/s of one engine: what it has copied, read and written
  /// Engines that copies of one direction find.
  int of_direction() const { return std::max(1, count.value / directions.value); }
  static const config::Schema<CopyEngineConfig>& schema();
};

/// How a step's kernels get to the device. `graph`: replayed as one graph, as kernels are measured.
/// `stream`: the host enqueues one after the other; where kernels are shorter than that takes, the
/// device waits for it.
enum class LaunchMode : std::uint8_t { kGraph, kStream };

/// The way of a kernel to the device.
struct LaunchConfig {
  LaunchMode mode = LaunchMode::kGraph;
  Fact<Seconds> host;    ///< the host's work to enqueue one kernel
  Fact<Seconds> stream;  ///< time from one kernel of a stream to the next, on the device
  std::optional<Fact<Seconds>> graph;  ///< time per node of a replayed graph; absent: no graphs
  std::optional<Fact<Seconds>> dependent;
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

namespace config {

template <>
struct EnumNames<ArrayMapping> {
  using enum ArrayMapping;
  static constexpr std::pair<ArrayMapping, const char*> values[] = {{kTemporal, "temporal"},
                                                                    {kSpatial, "spatial"}};
};

template <>
struct EnumNames<MatrixIssue> {
  using enum MatrixIssue;
  static constexpr std::pair<MatrixIssue, const char*> values[] = {
      {kQuadPair, "quad_pair"},  {kWarp, "warp"},     {kWavefront, "wavefront"},
      {kWarpgroup, "warpgroup"}, {kThread, "thread"}, {kQueue, "queue"},
      {kArray, "array"}};
};

template <>
struct EnumNames<LaunchMode> {
  using enum LaunchMode;
  static constexpr std::pair<LaunchMode, const char*> values[] = {{kGraph, "graph"},
                                                                  {kStream, "stream"}};
};

}  // namespace config

}  // namespace orrery
