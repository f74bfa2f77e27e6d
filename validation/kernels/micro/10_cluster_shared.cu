// SPDX-License-Identifier: Apache-2.0
// Kernel 10, first part: shared memory of another thread block of the cluster: latency of dependent
// loads and bandwidth of a ring (method of Luo et al., arXiv 2402.13499, section on DSMEM).
#include <string>

#include "device/clock.cuh"
#include "device/cluster_launch.cuh"
#include "device/permutation.h"
#include "device/timing.cuh"
#include "device/words.cuh"
#include "host/sweeps.h"

namespace orrery::measure::cluster_shared {
namespace {

constexpr int kThreads = 512;
constexpr std::uint32_t kEntries = 256;  ///< of the cycle that is chased
constexpr int kHops = 4095;              ///< twice as many end elsewhere than where they start
constexpr std::uint32_t kRingBytes = 64 * 1024;
constexpr int kRingPasses = 64;

#if __CUDA_ARCH__ >= 900
/// PTX ISA, "mapa", "barrier.cluster" and "Special Registers".
__device__ std::uint32_t rank_in_cluster() {
  std::uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ std::uint32_t cluster_size() {
  std::uint32_t size;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}
/// The address, in the cluster's window, of what is at `shared` in block `rank`.
__device__ std::uint32_t mapped(std::uint32_t shared, std::uint32_t rank) {
  std::uint32_t address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared), "r"(rank));
  return address;
}
/// All threads of the cluster; shared memory written before is seen by all after.
__device__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}
__device__ std::uint32_t load_cluster(std::uint32_t address) {
  std::uint32_t value;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}
__device__ uint4 load_cluster_vector(std::uint32_t address) {
  uint4 v;
  asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}
__device__ std::uint32_t follow(std::uint32_t at, int hops) {
#pragma unroll 16
  for (int hop = 0; hop < hops; ++hop) at = load_cluster(at);
  return at;
}
#endif

struct HopResult {
  std::uint64_t cycles, nanoseconds;
  std::uint32_t last;  ///< entry where the chase ended
};

/// Every block lays a cycle of addresses into its own shared memory; thread 0 of rank 0 follows
/// that of rank `target`.
__global__ void __launch_bounds__(kThreads)
    hop_kernel(std::uint32_t target, std::uint32_t seed, HopResult* result) {
#if __CUDA_ARCH__ >= 900
  __shared__ std::uint32_t entries[kEntries];
  const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(entries));
  const std::uint32_t own = mapped(base, rank_in_cluster());
  for (std::uint32_t i = threadIdx.x; i < kEntries; i += blockDim.x) {
    entries[place(i, kEntries, seed)] = own + 4 * place((i + 1) % kEntries, kEntries, seed);
  }
  cluster_barrier();
  if (rank_in_cluster() == 0 && threadIdx.x == 0) {
    const std::uint32_t there = mapped(base, target);
    std::uint32_t at = follow(there + 4 * place(0, kEntries, seed), kHops);
    const std::uint64_t start_ns = nanoseconds_now();
    const std::uint64_t start = cycles_now();
    at = follow(at, kHops);
    result->last = (at - there) / 4;  // in order: waits for the last load
    const std::uint64_t stop = cycles_now();
    result->cycles = stop - start;
    result->nanoseconds = nanoseconds_now() - start_ns;
  }
  cluster_barrier();  // no block may leave while its shared memory is read
#endif
}

/// Every block reads the shared memory of the block `shift` ranks on, kRingPasses times, and writes
/// the sum of the words to sums[block].
__global__ void __launch_bounds__(kThreads)
    ring_kernel(std::uint32_t shift, std::uint64_t seed, std::uint32_t* sums) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ uint4 vectors[];
  __shared__ std::uint32_t total;
  auto* const words = reinterpret_cast<std::uint32_t*>(vectors);
  for (std::uint32_t w = threadIdx.x; w < kRingBytes / 4; w += blockDim.x) {
    words[w] = random_word(seed + blockIdx.x, w);
  }
  if (threadIdx.x == 0) total = 0;
  cluster_barrier();
  const std::uint32_t rank = (rank_in_cluster() + shift) % cluster_size();
  const std::uint32_t there =
      mapped(static_cast<std::uint32_t>(__cvta_generic_to_shared(vectors)), rank);
  constexpr int kUnroll = kRingBytes / 16 / kThreads;
  std::uint32_t mine = 0;
  for (int pass = 0; pass < kRingPasses; ++pass) {
    uint4 v[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      v[u] = load_cluster_vector(there + 16 * (threadIdx.x + u * kThreads));
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) mine += sum_of(v[u]);
  }
  mine = warp_sum(mine);
  if (threadIdx.x % 32 == 0) atomicAdd(&total, mine);
  cluster_barrier();
  if (threadIdx.x == 0) sums[blockIdx.x] = total;
#endif
}

void measure_hops(const Context& context, Table& table, int cluster, int target,
                  const DeviceBuffer& result) {
  const ClusterGrid grid{cluster, cluster, kThreads, 0};
  const auto seed = static_cast<std::uint32_t>(context.seed);
  std::vector<double> clk, us;
  DeviceState state;
  for (int r = 0; r <= 5; ++r) {
    ORRERY_CUDA(cudaMemset(result.as(), 0xFF, sizeof(HopResult)));
    launch_grid(grid, nullptr, hop_kernel, static_cast<std::uint32_t>(target), seed,
                result.as<HopResult>());
    state = context.state();
    HopResult one{};
    ORRERY_CUDA(cudaMemcpy(&one, result.as(), sizeof one, cudaMemcpyDeviceToHost));
    if (one.last != place(2 * kHops % kEntries, kEntries, seed)) {
      throw WrongResult("cluster shared memory: the chase ended at another entry");
    }
    if (r == 0) continue;
    clk.push_back(static_cast<double>(one.cycles) / kHops);
    us.push_back(1e-3 * static_cast<double>(one.nanoseconds) / kHops);
  }
  constexpr double kNotMeasured = 0;
  table.add_row(with_timing(
      {context.system, std::string("latency"), std::int64_t{cluster}, std::int64_t{cluster},
       std::int64_t{target}, summarise(std::move(clk)).median, std::int64_t{0}, kNotMeasured},
      {summarise(std::move(us)), state}));
}

void check_ring(const ClusterGrid& grid, std::uint32_t shift, std::uint64_t seed,
                const DeviceBuffer& sums) {
  ORRERY_CUDA(cudaMemset(sums.as(), 0, sums.bytes()));
  launch_grid(grid, nullptr, ring_kernel, shift, seed, sums.as<std::uint32_t>());
  const auto got = copy_words(sums.as<std::uint32_t>(), static_cast<std::size_t>(grid.grid));
  const auto size = static_cast<std::uint32_t>(grid.cluster);
  for (std::uint32_t block = 0; block < got.size(); ++block) {
    const std::uint32_t other = block / size * size + (block % size + shift) % size;
    if (got[block] != kRingPasses * sum_of_words(seed + other, 0, kRingBytes / 4)) {
      throw WrongResult("cluster shared memory: the ring of " + std::to_string(size) +
                        " summed other words");
    }
  }
}

void measure_ring(const Context& context, Table& table, int cluster, std::uint32_t shift) {
  ClusterGrid grid{cluster, cluster, kThreads, kRingBytes};
  // One block per multiprocessor: two would share the path that is measured.
  grid.shared_bytes = static_cast<std::size_t>(context.device.shared_bytes_per_block) - 2 * kKiB;
  const std::int64_t clusters = most_clusters(grid, ring_kernel);
  if (clusters == 0) return;
  grid.grid = clusters * cluster;
  const DeviceBuffer sums(static_cast<std::size_t>(grid.grid) * sizeof(std::uint32_t));
  check_ring(grid, shift, context.seed, sums);
  const Timing timing = time_graph(context, [&](cudaStream_t stream, int) {
    launch_grid(grid, stream, ring_kernel, shift, context.seed, sums.as<std::uint32_t>());
  });
  const std::int64_t bytes = grid.grid * kRingBytes * kRingPasses;
  constexpr double kNotMeasured = 0;
  table.add_row(with_timing({context.system, std::string("bandwidth"), std::int64_t{cluster},
                             grid.grid, std::int64_t{shift}, kNotMeasured, bytes,
                             static_cast<double>(bytes) / (1e-6 * timing.us.median)},
                            timing));
}

void run(const Context& context, Table& table) {
  allow_all(hop_kernel, context.device);
  allow_all(ring_kernel, context.device);
  keep_busy(context.device, 0.05);
  const DeviceBuffer result(sizeof(HopResult));
  for (const int cluster : {2, 4, 8, 16}) {
    if (most_clusters({cluster, cluster, kThreads, 0}, hop_kernel) == 0) continue;
    for (int target = 0; target < cluster && !context.out_of_time(); ++target) {
      measure_hops(context, table, cluster, target, result);
    }
    for (const std::uint32_t shift : {0u, 1u}) {
      if (!context.out_of_time()) measure_ring(context, table, cluster, shift);
    }
  }
}

// distance_ranks: 0 is the block's own shared memory, through the same instructions. latency_us is
// of one hop in a latency row, of the launch in a bandwidth row; what a row does not measure is 0.
const Registration kClusterShared(
    {10, "cluster_shared", "latency and bandwidth of shared memory across a cluster", 9, 2, 5,
     with_timing_columns({"system", "test", "cluster", "ctas", "distance_ranks", "latency_clk",
                          "bytes", "bytes_per_s"}),
     run});

}  // namespace
}  // namespace orrery::measure::cluster_shared
