// SPDX-License-Identifier: Apache-2.0
// Kernel 2: read bandwidth against footprint, from the L2 to where it no longer holds it.
#include <algorithm>
#include <string>

#include "device/timing.cuh"
#include "device/words.cuh"
#include "host/sweeps.h"

namespace orrery::measure::l2_read {
namespace {

constexpr int kThreads = 512, kUnroll = 8;
/// What a thread block reads between two moves to another block's part.
constexpr std::int64_t kChunk_bytes = kThreads * kUnroll * std::int64_t{sizeof(uint4)};

/// Past the L1, which would answer for its 256 KB otherwise.
__device__ uint4 load_past_l1(const uint4* at) {
  uint4 v;
  asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at));
  return v;
}

/// Each block reads its window_of() the chunks and adds the sum of all words to *sum.
__global__ void __launch_bounds__(kThreads)
    read_windows(const uint4* data, std::uint32_t chunks, std::uint32_t least, std::uint32_t* sum) {
  const Window window = window_of(blockIdx.x, gridDim.x, chunks, least);
  std::uint32_t mine = 0;
  std::uint32_t chunk = window.first;
  for (std::uint32_t j = 0; j < window.count; ++j) {
    const uint4* at = data + std::size_t{chunk} * kThreads * kUnroll + threadIdx.x;
    uint4 v[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) v[u] = load_past_l1(at + u * kThreads);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) mine += sum_of(v[u]);
    chunk = chunk + 1 == chunks ? 0 : chunk + 1;
  }
  mine = warp_sum(mine);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}

/// Chunks that each block reads at least, 4 MiB: launching and the end do not show.
constexpr std::uint32_t kLeast = 4 * kMiB / kChunk_bytes;

struct Point {
  std::int64_t footprint = 0, ctas = 0;

  std::uint32_t chunks() const { return static_cast<std::uint32_t>(footprint / kChunk_bytes); }
  std::uint32_t blocks() const { return static_cast<std::uint32_t>(ctas); }
  /// Read by all blocks together, bytes.
  std::int64_t bytes() const {
    return ctas * kChunk_bytes * std::int64_t{window_of(0, blocks(), chunks(), kLeast).count};
  }
};

void enqueue(const Point& point, const DeviceBuffer& data, const DeviceBuffer& sum,
             cudaStream_t stream) {
  read_windows<<<point.blocks(), kThreads, 0, stream>>>(data.as<const uint4>(), point.chunks(),
                                                        kLeast, sum.as<std::uint32_t>());
  ORRERY_CUDA(cudaGetLastError());
}

/// Sum of all words that the windows cover, each as often as it is covered.
std::uint32_t expected_sum(const Point& point, std::uint64_t seed) {
  constexpr std::uint64_t kWords = kChunk_bytes / sizeof(std::uint32_t);
  std::vector<std::uint32_t> sums(point.chunks());
  for (std::uint64_t c = 0; c < sums.size(); ++c) {
    sums[c] = sum_of_words(seed, c * kWords, (c + 1) * kWords);
  }
  std::uint32_t expected = 0;
  for (std::uint32_t block = 0; block < point.blocks(); ++block) {
    const Window window = window_of(block, point.blocks(), point.chunks(), kLeast);
    for (std::uint32_t j = 0; j < window.count; ++j) {
      expected += sums[(window.first + j) % sums.size()];
    }
  }
  return expected;
}

void check_sum(const Point& point, std::uint64_t seed, const DeviceBuffer& data,
               const DeviceBuffer& sum) {
  ORRERY_CUDA(cudaMemset(sum.as(), 0, sizeof(std::uint32_t)));
  enqueue(point, data, sum, nullptr);
  if (copy_words(sum.as<std::uint32_t>(), 1)[0] != expected_sum(point, seed)) {
    throw WrongResult("L2 read: the sum over " + std::to_string(point.footprint) +
                      " bytes is not the reference's");
  }
}

void run(const Context& context, Table& table) {
  const auto footprints = l2_footprints(context.device.l2_bytes, context.depth);
  const DeviceBuffer data(static_cast<std::size_t>(footprints.back()));
  const DeviceBuffer sum(sizeof(std::uint32_t));
  fill_words(data.as<std::uint32_t>(), data.bytes() / sizeof(std::uint32_t), context.seed);
  for (const std::int64_t footprint : {footprints.front(), 3 * kMiB}) {
    check_sum({footprint, context.device.sms}, context.seed, data, sum);
    check_sum({footprint, 1}, context.seed, data, sum);
  }
  const std::vector<std::int64_t> ctas = cta_counts(context.device.sms, context.depth);
  for (const std::int64_t footprint : footprints) {
    for (const std::int64_t count : ctas) {
      if (context.out_of_time()) return;
      const Point point{footprint, count};
      TimingOptions options;
      options.repeats = 5;
      const Timing timing = time_graph(
          context, [&](cudaStream_t stream, int) { enqueue(point, data, sum, stream); }, options);
      table.add_row(with_timing({context.system, footprint, count, point.bytes(),
                                 static_cast<double>(point.bytes()) / (1e-6 * timing.us.median)},
                                timing));
    }
  }
}

const Registration kL2Read(
    {2, "l2_read", "read bandwidth over footprint and thread blocks: L2, its effective capacity", 8,
     8, 25, with_timing_columns({"system", "footprint_bytes", "ctas", "bytes", "bytes_per_s"}),
     run});

}  // namespace
}  // namespace orrery::measure::l2_read
