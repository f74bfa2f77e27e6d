// SPDX-License-Identifier: Apache-2.0
// Kernel 4: HBM bandwidth when chunks of 32 B to 4 KiB are read or written in random order: what
// DRAM pages and sectors cost.
#include <algorithm>
#include <string>

#include "device/permutation.h"
#include "device/timing.cuh"
#include "device/words.cuh"
#include "host/sweeps.h"

namespace orrery::measure::hbm_random {
namespace {

constexpr int kThreads = 256, kUnroll = 4;

/// Chunk number i of the random order is at scrambled(i, chunk_bits, seed); a launch visits those
/// from `first` on.
struct Region {
  uint4* data = nullptr;
  int chunk_bits = 0;   ///< the region has 2^chunk_bits chunks ...
  int vector_bits = 0;  ///< ... of 2^vector_bits vectors of 16 bytes
  std::uint32_t first = 0;
  std::uint32_t visited = 0;  ///< chunks that one launch reads or writes
  std::uint32_t seed = 0;

  __host__ __device__ std::uint64_t vectors() const {
    return std::uint64_t{visited} << vector_bits;
  }
};

/// A region of `bytes`, of which one chunk in `part` is visited.
Region region_of(const DeviceBuffer& data, std::int64_t bytes, std::uint32_t chunk_bytes,
                 std::uint32_t part, std::uint64_t seed) {
  const auto chunks = static_cast<std::uint32_t>(bytes / chunk_bytes);
  return {data.as<uint4>(),
          bits_for(chunks),
          bits_for(chunk_bytes / 16),
          0,
          chunks / part,
          static_cast<std::uint32_t>(seed)};
}

/// Vector v of all that is visited, in the region: neighbouring threads share a chunk.
__host__ __device__ inline std::size_t vector_at(const Region& region, std::uint64_t v) {
  const std::uint32_t chunk = region.first + static_cast<std::uint32_t>(v >> region.vector_bits);
  const std::uint64_t within = v & ((std::uint64_t{1} << region.vector_bits) - 1);
  return (std::uint64_t{scrambled(chunk, region.chunk_bits, region.seed)} << region.vector_bits) +
         within;
}

__device__ inline uint4 written_at(std::size_t at) {
  const auto low = static_cast<std::uint32_t>(at);
  return {low, ~low, low * 3u, low + 7u};
}

template <bool kWrite>
__global__ void __launch_bounds__(kThreads) visit(Region region, std::uint32_t* sum) {
  const std::uint64_t vectors = region.vectors();
  const std::uint64_t step = std::uint64_t{gridDim.x} * kThreads;
  std::uint32_t mine = 0;
  for (std::uint64_t v = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x; v < vectors;
       v += kUnroll * step) {
    uint4 values[kUnroll] = {};
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (v + u * step >= vectors) continue;
      const std::size_t at = vector_at(region, v + u * step);
      if constexpr (kWrite) {
        region.data[at] = written_at(at);
      } else {
        values[u] = region.data[at];
      }
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) mine += sum_of(values[u]);
  }
  if constexpr (!kWrite) {
    mine = warp_sum(mine);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
  }
}

void enqueue(const Region& region, bool write, std::int64_t ctas, std::uint32_t* sum,
             cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(ctas);
  if (write) {
    visit<true><<<blocks, kThreads, 0, stream>>>(region, sum);
  } else {
    visit<false><<<blocks, kThreads, 0, stream>>>(region, sum);
  }
  ORRERY_CUDA(cudaGetLastError());
}

/// Half of a small region: what was visited, and that nothing else was.
void check_region(std::uint32_t chunk_bytes, std::uint64_t seed, const DeviceBuffer& data,
                  std::uint32_t* sum) {
  const Region region = region_of(data, 8 * kMiB, chunk_bytes, 2, seed);
  const std::size_t words = 8 * kMiB / 4;
  fill_words(data.as<std::uint32_t>(), words, seed);
  ORRERY_CUDA(cudaMemset(sum, 0, sizeof(std::uint32_t)));
  enqueue(region, false, 37, sum, nullptr);
  const std::uint32_t got = copy_words(sum, 1)[0];
  enqueue(region, true, 37, sum, nullptr);
  const auto after = copy_words(data.as<std::uint32_t>(), words);
  std::vector<bool> visited(words / 4);
  std::uint32_t expected = 0;
  const std::uint64_t vectors = region.vectors();
  for (std::uint64_t v = 0; v < vectors; ++v) {
    const std::size_t at = vector_at(region, v);
    visited[at] = true;
    expected += sum_of_words(seed, 4 * at, 4 * at + 4);
  }
  bool right = got == expected;
  for (std::size_t at = 0; at < visited.size(); ++at) {
    const auto low = static_cast<std::uint32_t>(at);
    right = right && after[4 * at] == (visited[at] ? low : random_word(seed, 4 * at)) &&
            after[4 * at + 3] == (visited[at] ? low + 7u : random_word(seed, 4 * at + 3));
  }
  if (!right) {
    throw WrongResult("random chunks of " + std::to_string(chunk_bytes) +
                      " bytes: not the reference's words");
  }
}

void time_chunks(const Context& context, Table& table, const DeviceBuffer& data,
                 std::uint32_t chunk_bytes, bool write, std::int64_t ctas) {
  constexpr int kParts = 8;  // of the region, each larger than any L2, in turn
  const auto bytes = static_cast<std::int64_t>(data.bytes());
  const Region region = region_of(data, bytes, chunk_bytes, kParts, context.seed);
  const DeviceBuffer sum(sizeof(std::uint32_t));
  const Launch launch = [&](cudaStream_t stream, int i) {
    Region part = region;
    part.first = static_cast<std::uint32_t>(i % kParts) * region.visited;
    enqueue(part, write, ctas, sum.as<std::uint32_t>(), stream);
  };
  TimingOptions options;
  options.repeats = 5;
  options.copies = kParts;
  const Timing timing = time_graph(context, launch, options);
  const std::int64_t moved = std::int64_t{region.visited} * chunk_bytes;
  table.add_row(
      with_timing({context.system, std::string(write ? "write" : "read"), std::int64_t{chunk_bytes},
                   ctas, bytes, moved, static_cast<double>(moved) / (1e-6 * timing.us.median)},
                  timing));
}

void run(const Context& context, Table& table) {
  std::int64_t bytes = 4 * kGiB;
  while (bytes > context.device.memory_bytes / 2) bytes /= 2;
  const DeviceBuffer data(static_cast<std::size_t>(bytes));
  const DeviceBuffer sum(sizeof(std::uint32_t));
  for (const std::uint32_t chunk : {32u, 256u, 4096u}) {
    check_region(chunk, context.seed, data, sum.as<std::uint32_t>());
  }
  fill_words(data.as<std::uint32_t>(), data.bytes() / 4, context.seed);
  const std::vector<std::int64_t> all_per_sm = context.depth == Depth::kQuick
                                                   ? std::vector<std::int64_t>{8}
                                                   : std::vector<std::int64_t>{1, 2, 4, 8};
  for (const std::int64_t per_sm : all_per_sm) {
    for (std::uint32_t chunk = 32; chunk <= 4096; chunk *= 2) {
      for (const bool write : {false, true}) {
        if (context.out_of_time()) return;
        time_chunks(context, table, data, chunk, write, per_sm * context.device.sms);
      }
    }
  }
}

const Registration kHbmRandom({4, "hbm_random",
                               "HBM bandwidth over the size of chunks in random order: granularity",
                               8, 5, 15,
                               with_timing_columns({"system", "access", "chunk_bytes", "ctas",
                                                    "region_bytes", "bytes", "bytes_per_s"}),
                               run});

}  // namespace
}  // namespace orrery::measure::hbm_random
