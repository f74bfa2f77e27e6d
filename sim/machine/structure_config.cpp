// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/structure_config.h"

#include "sim/config/schema.h"
#include "sim/machine/common_bounds.h"

namespace orrery {
namespace {

using config::between;
using config::Bounds;
using config::Schema;
using namespace literals;

// Wider than any part on sale, narrow enough to catch a wrong prefix or a forgotten one.
const Bounds kTile = between(1, 4096);
const Bounds kBuffer = between(Bytes(64), 1_GB);
const Bounds kLevelCapacity = between(1_KB, 100_GB);
const Bounds kLevelBandwidth = between(BytesPerSecond(1e6), BytesPerSecond(1e15));

}  // namespace

const Schema<MatrixTileConfig>& MatrixTileConfig::schema() {
  using C = MatrixTileConfig;
  static const auto schema =
      Schema<C>("matrix_tile", "block of a product that one matrix instruction works on")
          .required("rows", &C::rows, "rows of results", kTile)
          .required("columns", &C::columns, "columns of results", kTile)
          .optional("issue", &C::issue,
                    "who starts a matrix instruction: quad_pair (mma.sync of Volta), warp "
                    "(mma.sync since), wavefront (mfma), warpgroup (wgmma), thread (tcgen05, "
                    "results in tensor memory), queue (cube of an NPU), array (systolic array that "
                    "holds the weights); absent: not known")
          .required("source", &C::source, "document that says so");
  return schema;
}

const Schema<ArraysConfig>& ArraysConfig::schema() {
  using C = ArraysConfig;
  static const auto schema =
      Schema<C>("arrays", "systolic arrays that hold weights while inputs stream past")
          .required("per_unit", &C::per_unit, "arrays of a unit", kCountLimits)
          .required("rows", &C::rows, "inputs that a result is summed over", kTile)
          .required("columns", &C::columns, "results that it makes at a time", kTile)
          .required("load", &C::load, "clocks in which an array takes the next weights", kTile)
          .required("fill", &C::fill,
                    "clocks from the first input of a product to its first whole result", kTile)
          .optional("mapping", &C::mapping,
                    "what arrays of inference work on: temporal (one layer after the other, each "
                    "on all of them) or spatial (all layers at once, each on arrays of its own, in "
                    "steps of lists of layers)");
  return schema;
}

double UnitGroupsConfig::filled(std::int64_t cluster) const {
  if (cluster <= 1) return 1;
  std::int64_t all = 0, places = 0;
  for (const int size : sizes) {
    all += size;
    places += size / cluster * cluster;
  }
  return static_cast<double>(places) / static_cast<double>(all);
}

const Schema<UnitGroupsConfig>& UnitGroupsConfig::schema() {
  using C = UnitGroupsConfig;
  static const auto schema =
      Schema<C>("groups", "groups of units that a cluster of blocks stays within")
          .required("sizes", &C::sizes, "units of each group", kCountLimits)
          .required("source", &C::source, "document that says so")
          .check(
              "at least one group is needed", [](const C& c) { return !c.sizes.empty(); }, "sizes");
  return schema;
}

const Schema<CoreConfig>& CoreConfig::schema() {
  using C = CoreConfig;
  static const auto schema =
      Schema<C>("core", "one unit of the package: SM, AI core, processor core")
          .optional("registers", &C::registers,
                    "register file that blocks share; absent: no limit that software knows [KiB]",
                    kBuffer)
          .optional("accumulators", &C::accumulators,
                    "memory of matrix results alone (tensor memory, L0C); absent: registers [KiB]",
                    kBuffer)
          .required("shared_memory", &C::shared_memory,
                    "the most that one block can have, or the software-managed buffer [KiB]",
                    kBuffer)
          .required("shared_bandwidth", &C::shared_bandwidth,
                    "rate of the shared memory of one unit at the boost clock [GB/s]",
                    kLevelBandwidth)
          .optional("max_blocks", &C::max_blocks, "blocks resident at a time", kCountLimits)
          .optional("max_warps", &C::max_warps,
                    "warps resident at a time; 1: a single instruction stream", kCountLimits)
          .optional("max_cluster", &C::max_cluster,
                    "blocks that reach each other's shared memory; 1: none", kCountLimits)
          .optional("groups", &C::groups,
                    "groups that a cluster stays within (GPCs); absent: clusters fill all units")
          .optional("async_copy", &C::async_copy,
                    "loads into shared memory run beside the block that asked for them; false: "
                    "only other blocks of the unit compute meanwhile")
          .optional("matrix_tile", &C::matrix_tile,
                    "block of one matrix instruction; absent: no matrix unit");
  return schema;
}

const Schema<CacheConfig>& CacheConfig::schema() {
  using C = CacheConfig;
  static const auto schema =
      Schema<C>("cache", "the last cache before the memory")
          .required("capacity", &C::capacity, "size of all parts together [MiB]", kLevelCapacity)
          .optional("partitions", &C::partitions, "parts that are nearest to some of the units",
                    kCountLimits)
          .required("bandwidth", &C::bandwidth, "reads, of all parts together [TB/s]",
                    kLevelBandwidth)
          .optional("far_bandwidth", &C::far_bandwidth,
                    "rate between the parts, all ways together; absent: it holds nothing up [TB/s]",
                    kLevelBandwidth)
          .optional("far_latency", &C::far_latency,
                    "time by which a hit in another part takes longer [ns]", kLatencyLimits)
          .optional("duplicated", &C::duplicated,
                    "each part keeps copies of what its units read from the others");
  return schema;
}

const Schema<CopyEngineConfig>& CopyEngineConfig::schema() {
  using C = CopyEngineConfig;
  static const auto schema =
      Schema<C>("copy_engines", "engines that copy between memories beside the units")
          .optional("count", &C::count, "number of copy engines", kCountLimits)
          .optional("directions", &C::directions,
                    "kinds of copies that engines are dealt out to: to the host, from it, others; "
                    "1: any engine takes any copy",
                    between(1, 3))
          .required("bandwidth", &C::bandwidth, "rate of one engine, bytes copied [GB/s]",
                    kLevelBandwidth);
  return schema;
}

const Schema<LaunchConfig>& LaunchConfig::schema() {
  using C = LaunchConfig;
  static const auto schema =
      Schema<C>("launch", "the way of a kernel to the device")
          .optional("mode", &C::mode,
                    "graph: steps are replayed as one graph; stream: the host enqueues kernel by "
                    "kernel")
          .required("host", &C::host, "the host's work to enqueue one kernel [us]", kLatencyLimits)
          .required("stream", &C::stream, "time from one kernel of a stream to the next [us]",
                    kLatencyLimits)
          .optional("graph", &C::graph, "time per node of a replayed graph; absent: no graphs [us]",
                    kLatencyLimits)
          .optional("dependent", &C::dependent,
                    "time of a launch that the kernel before hides, by programmatic dependent "
                    "launch; absent: it hides none [us]",
                    kLatencyLimits);
  return schema;
}

const Schema<PartitionConfig>& PartitionConfig::schema() {
  using C = PartitionConfig;
  static const auto schema =
      Schema<C>("partition", "the part of a device that this one is, such as a MIG instance")
          .required("units", &C::units, "units of the part", kCountLimits)
          .required("memory_slices", &C::memory_slices, "memory and cache slices of the part",
                    kCountLimits)
          .required("all_slices", &C::all_slices, "slices of the whole device", kCountLimits)
          .check(
              "a part has no more memory slices than the device",
              [](const C& c) { return c.memory_slices.value <= c.all_slices.value; },
              "memory_slices");
  return schema;
}

}  // namespace orrery
