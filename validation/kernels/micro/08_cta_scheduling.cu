// SPDX-License-Identifier: Apache-2.0
// Kernel 8: how thread blocks are handed to multiprocessors: waves, tails, occupancy, clusters.
// Blocks only wait, so that nothing but the schedule decides how long a grid takes.
#include <algorithm>
#include <limits>
#include <string>

#include "device/clock.cuh"
#include "device/cluster_launch.cuh"
#include "device/timing.cuh"
#include "host/sweeps.h"

namespace orrery::measure::cta_scheduling {
namespace {

constexpr int kThreads = 128;
constexpr std::int64_t kShort_cycles = 8000;

/// Cycles that a block waits. Bimodal: every eighth block, evenly mixed into the grid, four times
/// as long, as the long rows of causal attention do.
__host__ __device__ inline std::int64_t cycles_of(std::uint32_t block, bool bimodal) {
  const bool is_long = bimodal && (block * 2654435761u) >> 29 == 0;
  return is_long ? 4 * kShort_cycles : kShort_cycles;
}

/// Where and when a block ran.
struct Place {
  std::uint64_t start_ns, stop_ns;
  std::uint32_t sm, runs;
};

__global__ void __launch_bounds__(kThreads) wait_kernel(bool bimodal) {
  spin(static_cast<std::uint64_t>(cycles_of(blockIdx.x, bimodal)));
}

__global__ void __launch_bounds__(kThreads) note_kernel(bool bimodal, Place* places) {
  const std::uint64_t start = nanoseconds_now();
  spin(static_cast<std::uint64_t>(cycles_of(blockIdx.x, bimodal)));
  if (threadIdx.x != 0) return;
  Place& place = places[blockIdx.x];
  place.start_ns = start;
  place.stop_ns = nanoseconds_now();
  place.sm = multiprocessor();
  atomicAdd(&place.runs, 1u);
}

__global__ void empty_kernel() {}

/// Shared memory that lets `occupancy` blocks onto a multiprocessor and no more: more than what
/// one block more would leave to each. A block has 1 KiB besides (CUDA C Programming Guide,
/// "Compute Capabilities"); the multiprocessor's whole is 1 KiB above one block's most.
std::size_t shared_for(int occupancy, const DeviceInfo& device) {
  const std::int64_t whole = device.shared_bytes_per_block + kKiB;
  const std::int64_t share = whole / occupancy - kKiB;
  return static_cast<std::size_t>(std::min(share, device.shared_bytes_per_block) / 128 * 128);
}

ClusterGrid grid_of(const GridPoint& point, const DeviceInfo& device) {
  return {point.grid, point.cluster, kThreads, shared_for(point.occupancy, device)};
}

/// What one noted run of a grid shows.
struct Schedule {
  std::int64_t sms_used = 0;
  std::int64_t most_per_sm = 0;  ///< blocks on one multiprocessor at the same time
  double dispatch_us = 0;        ///< from the first block's start to the first wave's last
};

/// Most intervals [start, stop) that overlap.
std::int64_t most_at_once(const std::vector<const Place*>& places) {
  std::vector<std::pair<std::uint64_t, int>> steps;  // an end sorts before a start
  for (const Place* place : places) {
    steps.emplace_back(place->start_ns, 1);
    steps.emplace_back(place->stop_ns, -1);
  }
  std::sort(steps.begin(), steps.end());
  std::int64_t now = 0, most = 0;
  for (const auto& step : steps) most = std::max(most, now += step.second);
  return most;
}

/// Runs the grid once with notes, and checks that every block ran once and no multiprocessor held
/// more blocks than the shared memory allows.
Schedule check_schedule(const GridPoint& point, const DeviceInfo& device) {
  const auto blocks = static_cast<std::size_t>(point.grid);
  const DeviceBuffer noted(blocks * sizeof(Place));
  ORRERY_CUDA(cudaMemset(noted.as(), 0, noted.bytes()));
  launch_grid(grid_of(point, device), nullptr, note_kernel, point.bimodal, noted.as<Place>());
  std::vector<Place> places(blocks);
  ORRERY_CUDA(cudaMemcpy(places.data(), noted.as(), noted.bytes(), cudaMemcpyDeviceToHost));
  std::vector<std::vector<const Place*>> of_sm(static_cast<std::size_t>(device.sms));
  std::vector<std::uint64_t> starts;
  for (const Place& place : places) {
    if (place.runs != 1 || place.sm >= of_sm.size()) {
      throw WrongResult("CTA scheduling: a block ran " + std::to_string(place.runs) +
                        " times, on multiprocessor " + std::to_string(place.sm));
    }
    of_sm[place.sm].push_back(&place);
    starts.push_back(place.start_ns);
  }
  Schedule schedule;
  for (const auto& own : of_sm) {
    if (!own.empty()) ++schedule.sms_used;
    schedule.most_per_sm = std::max(schedule.most_per_sm, most_at_once(own));
  }
  if (schedule.most_per_sm > point.occupancy) {
    throw WrongResult("CTA scheduling: " + std::to_string(schedule.most_per_sm) +
                      " blocks on a multiprocessor that should hold " +
                      std::to_string(point.occupancy));
  }
  std::sort(starts.begin(), starts.end());
  const std::size_t wave =
      std::min<std::size_t>(blocks, static_cast<std::size_t>(schedule.sms_used) *
                                        static_cast<std::size_t>(point.occupancy));
  schedule.dispatch_us = 1e-3 * static_cast<double>(starts[wave - 1] - starts[0]);
  return schedule;
}

void add_row(const Context& context, Table& table, const GridPoint& point, const char* length,
             const Schedule& schedule, std::int64_t clusters, const Timing& timing) {
  std::int64_t work = 0;
  const bool empty = std::string(length) == "empty";
  for (std::int64_t block = 0; !empty && block < point.grid; ++block) {
    work += cycles_of(static_cast<std::uint32_t>(block), point.bimodal);
  }
  table.add_row(
      with_timing({context.system, std::string(length), point.grid, std::int64_t{point.occupancy},
                   std::int64_t{point.cluster}, empty ? std::int64_t{0} : kShort_cycles, work,
                   schedule.sms_used, schedule.most_per_sm, clusters, schedule.dispatch_us},
                  timing));
}

/// Grids of blocks that end at once: the rate at which blocks are handed out.
void empty_grids(const Context& context, Table& table) {
  for (std::int64_t grid = 1; grid <= (std::int64_t{1} << 18); grid *= 4) {
    const Timing timing = time_graph(context, [grid](cudaStream_t stream, int) {
      empty_kernel<<<static_cast<unsigned>(grid), kThreads, 0, stream>>>();
      ORRERY_CUDA(cudaGetLastError());
    });
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    add_row(context, table, {grid, 16, 1, false}, "empty", {0, 0, kUnknown}, 0, timing);
  }
}

void run(const Context& context, Table& table) {
  allow_all(wait_kernel, context.device);
  allow_all(note_kernel, context.device);
  keep_busy(context.device, 0.05);
  empty_grids(context, table);
  for (const GridPoint& point : grid_points(context.device, context.depth)) {
    if (context.out_of_time()) return;
    const ClusterGrid grid = grid_of(point, context.device);
    const std::int64_t clusters = point.cluster > 1 ? most_clusters(grid, wait_kernel) : 0;
    if (point.cluster > 1 && clusters == 0) continue;
    const Schedule schedule = check_schedule(point, context.device);
    TimingOptions options;
    options.repeats = 5;
    const Timing timing = time_graph(
        context,
        [&](cudaStream_t stream, int) { launch_grid(grid, stream, wait_kernel, point.bimodal); },
        options);
    add_row(context, table, point, point.bimodal ? "bimodal" : "constant", schedule, clusters,
            timing);
  }
}

const Registration kCtaScheduling(
    {8, "cta_scheduling", "hand-out of thread blocks: waves, tails, occupancy, clusters", 8, 6, 20,
     with_timing_columns({"system", "length", "grid", "ctas_per_sm", "cluster", "cta_cycles",
                          "work_cycles", "sms_used", "most_ctas_per_sm", "most_clusters",
                          "dispatch_us"}),
     run});

}  // namespace
}  // namespace orrery::measure::cta_scheduling
