// SPDX-License-Identifier: Apache-2.0
// Kernel 1: latency of dependent loads. One thread follows pointers around a random cycle, so that
// no two loads overlap and none can be guessed (Saavedra and Smith, IEEE Trans. Computers 1995;
// for GPUs: Wong et al., ISPASS 2010).
#include <algorithm>
#include <string>

#include "device/clock.cuh"
#include "device/permutation.h"
#include "device/timing.cuh"
#include "host/sweeps.h"

namespace orrery::measure::pointer_chase {
namespace {

/// ld.global.ca keeps a line in L1 and L2, .cg in L2 only (PTX ISA, "Cache Operators").
enum class Cache { kAll, kGlobal };

const char* name_of(Cache cache) { return cache == Cache::kAll ? "ca" : "cg"; }

template <Cache kCache>
__device__ const void* next_of(const void* at) {
  std::uint64_t next;
  if constexpr (kCache == Cache::kAll) {
    asm volatile("ld.global.ca.u64 %0, [%1];" : "=l"(next) : "l"(at) : "memory");
  } else {
    asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(next) : "l"(at) : "memory");
  }
  return reinterpret_cast<const void*>(next);
}

/// A cycle through `elements` pointers, `stride` bytes apart, in the random order of `seed`.
struct Cycle {
  char* base = nullptr;
  std::uint32_t elements = 0;
  std::uint64_t stride = 0;
  std::uint32_t seed = 0;

  /// Address of the element that comes after `hops` hops from the first.
  __host__ __device__ char* after(std::uint64_t hops) const {
    const auto i = static_cast<std::uint32_t>(hops % elements);
    return base + place(i, elements, seed) * stride;
  }
};

__global__ void link_cycle(Cycle cycle) {
  const std::uint32_t step = gridDim.x * blockDim.x;
  for (std::uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < cycle.elements; i += step) {
    *reinterpret_cast<const void**>(cycle.after(i)) = cycle.after(i + 1);
  }
}

struct ChaseResult {
  std::uint64_t cycles, nanoseconds;
  const void* last;
  std::uint32_t sm;
  int ran;
};

template <Cache kCache>
__device__ const void* follow(const void* at, int hops) {
#pragma unroll 16
  for (int hop = 0; hop < hops; ++hop) at = next_of<kCache>(at);
  return at;
}

/// The first block on `target_sm` (any multiprocessor when negative) chases: all its threads load
/// `warm` elements, then thread 0 follows `hops` pointers without and `hops` with the clock.
template <Cache kCache>
__global__ void __launch_bounds__(1024)
    chase(Cycle cycle, int hops, std::uint32_t warm, int target_sm, ChaseResult* result) {
  __shared__ bool mine;
  if (threadIdx.x == 0) {
    const bool here = target_sm < 0 || multiprocessor() == static_cast<std::uint32_t>(target_sm);
    mine = here && atomicExch(&result->ran, 1) == 0;
  }
  __syncthreads();
  if (!mine) return;
  for (std::uint32_t i = threadIdx.x; i < warm; i += blockDim.x) {
    next_of<kCache>(cycle.base + i * cycle.stride);
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  const void* at = follow<kCache>(cycle.after(0), hops);
  const std::uint64_t start_ns = nanoseconds_now();
  const std::uint64_t start = cycles_now();
  at = follow<kCache>(at, hops);
  result->last = at;  // in order: waits for the last load before the clock is read again
  const std::uint64_t stop = cycles_now();
  const std::uint64_t stop_ns = nanoseconds_now();
  result->cycles = stop - start;
  result->nanoseconds = stop_ns - start_ns;
  result->sm = multiprocessor();
}

/// What one chase is.
struct Chase {
  Cycle cycle;
  Cache cache = Cache::kAll;
  int hops = 0;
  std::uint32_t warm = 0;
  int target_sm = -1;
};

void launch(const Chase& what, unsigned blocks, ChaseResult* result) {
  ORRERY_CUDA(cudaMemset(result, 0, sizeof(ChaseResult)));
  if (what.cache == Cache::kAll) {
    chase<Cache::kAll><<<blocks, 1024>>>(what.cycle, what.hops, what.warm, what.target_sm, result);
  } else {
    chase<Cache::kGlobal>
        <<<blocks, 1024>>>(what.cycle, what.hops, what.warm, what.target_sm, result);
  }
  ORRERY_CUDA(cudaGetLastError());
}

/// Reads the result back and checks that the chase ended where the cycle says.
ChaseResult checked(const Chase& what, const ChaseResult* result) {
  ChaseResult copy{};
  ORRERY_CUDA(cudaMemcpy(&copy, result, sizeof copy, cudaMemcpyDeviceToHost));
  const auto hops = 2 * static_cast<std::uint64_t>(what.hops);
  if (copy.ran != 0 && copy.last != what.cycle.after(hops)) {
    throw WrongResult("pointer chase: ended at another element than the cycle's");
  }
  return copy;
}

/// `repeats` chases after one that does not count.
struct Samples {
  std::vector<double> clk, us;  ///< per hop
  std::uint32_t sm = 0;
  DeviceState state;
};

Samples repeat(const Context& context, const Chase& what, int repeats, unsigned blocks,
               ChaseResult* result) {
  Samples samples;
  for (int r = 0; r <= repeats; ++r) {
    launch(what, blocks, result);
    if (r == repeats) samples.state = context.state();  // while the last one runs
    const ChaseResult one = checked(what, result);
    if (r == 0 || one.ran == 0) continue;
    samples.clk.push_back(static_cast<double>(one.cycles) / what.hops);
    samples.us.push_back(1e-3 * static_cast<double>(one.nanoseconds) / what.hops);
    samples.sm = one.sm;
  }
  return samples;
}

void add_row(const Context& context, Table& table, const char* test, const Chase& what,
             std::int64_t offset, Samples samples) {
  if (samples.clk.empty()) return;  // no block came to run on that multiprocessor
  const auto bytes = static_cast<std::int64_t>(what.cycle.elements * what.cycle.stride);
  const Timing timing{summarise(std::move(samples.us)), samples.state};
  table.add_row(
      with_timing({context.system, std::string(test), std::string(name_of(what.cache)), bytes,
                   static_cast<std::int64_t>(what.cycle.stride), std::int64_t{what.hops}, offset,
                   std::int64_t{samples.sm}, summarise(std::move(samples.clk)).median},
                  timing));
}

/// The sweep over footprints and strides, from any multiprocessor.
void sweep(const Context& context, Table& table, const DeviceBuffer& memory, ChaseResult* result) {
  for (const ChasePoint& point : chase_points(context.device.memory_bytes, context.depth)) {
    if (point.bytes > static_cast<std::int64_t>(memory.bytes())) continue;
    const Cycle cycle{memory.as<char>(), static_cast<std::uint32_t>(point.bytes / point.stride),
                      static_cast<std::uint64_t>(point.stride),
                      static_cast<std::uint32_t>(context.seed)};
    const unsigned blocks = std::min((cycle.elements + 255) / 256, 4096u);
    link_cycle<<<blocks, 256>>>(cycle);
    ORRERY_CUDA(cudaGetLastError());
    // What exceeds the L2 twice is evicted before the chase comes to it again.
    const bool warm = point.bytes <= 2 * context.device.l2_bytes;
    // Short latencies are followed for longer: the nanosecond clock may tick once in 1 us.
    // Twice an odd number of hops does not end where it starts.
    const int hops = point.bytes <= 256 * kKiB ? 16383 : 4095;
    for (const Cache cache : {Cache::kAll, Cache::kGlobal}) {
      if (context.out_of_time()) return;
      const Chase what{cycle, cache, hops, warm ? cycle.elements : 0, -1};
      add_row(context, table, "sweep", what, 0, repeat(context, what, 5, 1, result));
    }
  }
}

/// Single lines from every multiprocessor in turn: the L2 that holds a line is near to some.
void per_multiprocessor(const Context& context, Table& table, const DeviceBuffer& memory,
                        ChaseResult* result) {
  const int lines = context.depth == Depth::kQuick ? 2 : 16;
  const auto blocks = 4 * static_cast<unsigned>(context.device.sms);
  for (int line = 0; line < lines; ++line) {
    // Lines of 128 bytes, anywhere in the first 16 MiB.
    const std::uint32_t offset = 128 * place(static_cast<std::uint32_t>(line), 1u << 17,
                                             static_cast<std::uint32_t>(context.seed));
    const Cycle cycle{memory.as<char>() + offset, 1, 128, 0};
    link_cycle<<<1, 32>>>(cycle);
    ORRERY_CUDA(cudaGetLastError());
    for (int sm = 0; sm < context.device.sms; ++sm) {
      if (context.out_of_time()) return;
      const Chase what{cycle, Cache::kGlobal, 1023, 1, sm};
      add_row(context, table, "per_multiprocessor", what, offset,
              repeat(context, what, 3, blocks, result));
    }
  }
}

void run(const Context& context, Table& table) {
  const auto points = chase_points(context.device.memory_bytes, context.depth);
  std::int64_t most = 0;
  for (const ChasePoint& point : points) most = std::max(most, point.bytes);
  const DeviceBuffer memory(static_cast<std::size_t>(most));
  const DeviceBuffer result(sizeof(ChaseResult));
  keep_busy(context.device, 0.05);
  per_multiprocessor(context, table, memory, result.as<ChaseResult>());
  sweep(context, table, memory, result.as<ChaseResult>());
}

// latency_us is the time of one hop.
const Registration kPointerChase(
    {1, "pointer_chase", "latency of L1, near and far L2, HBM and TLB: dependent loads", 8, 12, 40,
     with_timing_columns({"system", "test", "cache_operator", "bytes", "stride_bytes", "hops",
                          "offset_bytes", "sm", "latency_clk"}),
     run});

}  // namespace
}  // namespace orrery::measure::pointer_chase
