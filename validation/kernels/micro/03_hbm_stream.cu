// SPDX-License-Identifier: Apache-2.0
// Kernel 3: streaming through HBM with reads and writes in four ratios (after McCalpin's STREAM).
#include <algorithm>
#include <array>
#include <string>

#include "device/timing.cuh"
#include "device/words.cuh"
#include "host/sweeps.h"

namespace orrery::measure::hbm_stream {
namespace {

constexpr int kThreads = 256;  // four blocks of it on a multiprocessor leave 64 registers a thread

/// Vectors a thread works on at once: eight accesses in flight whatever the mix.
template <int kReads>
constexpr int kVectors = kReads == 2 ? 4 : 8;

__device__ uint4 plus(const uint4& a, const uint4& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

/// Input arrays are `vectors` apart in one buffer, as the output is in its own.
struct Arrays {
  const uint4* in = nullptr;
  uint4* out = nullptr;
  std::size_t vectors = 0;  ///< of 16 bytes, in each array
  std::uint32_t* sum = nullptr;
};

/// Value that a kernel with kReads inputs makes of vector i: their sum, or without inputs i itself.
template <int kReads>
__device__ uint4 value_of(const Arrays& arrays, std::size_t i) {
  if constexpr (kReads == 0) {
    const auto low = static_cast<std::uint32_t>(i);
    return {low, ~low, low * 3u, low ^ 0x5A5A5A5Au};
  } else if constexpr (kReads == 1) {
    return arrays.in[i];
  } else {
    return plus(arrays.in[i], arrays.in[arrays.vectors + i]);
  }
}

/// Writes value_of() to the output, or adds the sum of all its words to *sum.
template <int kReads, bool kWrites>
__global__ void __launch_bounds__(kThreads, 4) stream_kernel(Arrays arrays) {
  constexpr int kUnroll = kVectors<kReads>;
  const std::size_t step = std::size_t{gridDim.x} * kThreads;
  std::uint32_t mine = 0;
  std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
  for (; i + (kUnroll - 1) * step < arrays.vectors; i += kUnroll * step) {
    uint4 v[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) v[u] = value_of<kReads>(arrays, i + u * step);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if constexpr (kWrites) {
        arrays.out[i + u * step] = v[u];
      } else {
        mine += sum_of(v[u]);
      }
    }
  }
  for (; i < arrays.vectors; i += step) {
    const uint4 v = value_of<kReads>(arrays, i);
    if constexpr (kWrites) {
      arrays.out[i] = v;
    } else {
      mine += sum_of(v);
    }
  }
  if constexpr (!kWrites) {
    mine = warp_sum(mine);
    if (threadIdx.x % 32 == 0) atomicAdd(arrays.sum, mine);
  }
}

struct Mix {
  int reads, writes;

  int streams() const { return reads + writes; }
  double read_share() const { return static_cast<double>(reads) / streams(); }
};
constexpr std::array kMixes = {Mix{1, 0}, Mix{2, 1}, Mix{1, 1}, Mix{0, 1}};

void enqueue(const Mix& mix, const Arrays& arrays, std::int64_t ctas, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(ctas);
  if (mix.writes == 0) {
    stream_kernel<1, false><<<blocks, kThreads, 0, stream>>>(arrays);
  } else if (mix.reads == 0) {
    stream_kernel<0, true><<<blocks, kThreads, 0, stream>>>(arrays);
  } else if (mix.reads == 1) {
    stream_kernel<1, true><<<blocks, kThreads, 0, stream>>>(arrays);
  } else {
    stream_kernel<2, true><<<blocks, kThreads, 0, stream>>>(arrays);
  }
  ORRERY_CUDA(cudaGetLastError());
}

/// Word w of what the kernel writes, or sums, for arrays of `words` words from the buffer's start.
std::uint32_t expected_word(const Mix& mix, std::uint64_t seed, std::uint64_t w,
                            std::uint64_t words) {
  if (mix.reads == 1) return random_word(seed, w);
  if (mix.reads == 2) return random_word(seed, w) + random_word(seed, words + w);
  const auto low = static_cast<std::uint32_t>(w / 4);
  const std::uint32_t parts[4] = {low, ~low, low * 3u, low ^ 0x5A5A5A5Au};
  return parts[w % 4];
}

class HbmStream {
 public:
  HbmStream(const Context& context, Table& table, std::size_t bytes)
      : context_(context), table_(table), in_(bytes), out_(bytes), sum_(sizeof(std::uint32_t)) {
    fill_words(in_.as<std::uint32_t>(), bytes / sizeof(std::uint32_t), context.seed);
  }

  /// Every word of a small run; the size is no multiple of what the blocks take at a time.
  void check(const Mix& mix, std::size_t vectors, std::int64_t ctas) const {
    const std::size_t words = 4 * vectors;
    ORRERY_CUDA(cudaMemset(out_.as(), 0xA5, 16 * vectors));
    ORRERY_CUDA(cudaMemset(sum_.as(), 0, sizeof(std::uint32_t)));
    enqueue(mix, arrays(mix, 16 * vectors * static_cast<std::size_t>(mix.streams()), 0), ctas,
            nullptr);
    const auto got =
        copy_words(mix.writes > 0 ? out_.as<std::uint32_t>() : sum_.as<std::uint32_t>(),
                   mix.writes > 0 ? words : 1);
    std::uint32_t sum = 0;
    bool right = true;
    for (std::size_t w = 0; w < words; ++w) {
      const std::uint32_t expected = expected_word(mix, context_.seed, w, words);
      sum += expected;
      right = right && (mix.writes == 0 || got[w] == expected);
    }
    if (!right || (mix.writes == 0 && got[0] != sum)) {
      throw WrongResult("HBM stream " + std::to_string(mix.reads) + ":" +
                        std::to_string(mix.writes) + ": a word is not the reference's");
    }
  }

  /// `bytes` is what one launch reads and writes together.
  void time(const Mix& mix, std::int64_t bytes, std::int64_t ctas) {
    TimingOptions options;
    options.repeats = bytes >= kGiB ? 5 : 9;
    options.copies = rotation(context_.device, static_cast<std::size_t>(bytes), in_.bytes());
    const int copies = options.copies;
    const Launch launch = [&](cudaStream_t stream, int i) {
      enqueue(mix, arrays(mix, static_cast<std::size_t>(bytes), i % copies), ctas, stream);
    };
    const Timing timing = time_graph(context_, launch, options);
    const Arrays one = arrays(mix, static_cast<std::size_t>(bytes), 0);
    const auto moved = static_cast<std::int64_t>(16 * one.vectors) *
                       mix.streams();  // without what does not divide
    table_.add_row(with_timing({context_.system, mix.read_share(), moved, ctas,
                                static_cast<double>(moved) / (1e-6 * timing.us.median)},
                               timing));
  }

 private:
  /// The arrays of copy `copy`: inputs of one copy follow one another, as do the copies.
  Arrays arrays(const Mix& mix, std::size_t bytes, int copy) const {
    const std::size_t vectors = bytes / 16 / static_cast<std::size_t>(mix.streams());
    const auto at = static_cast<std::size_t>(copy);
    return {in_.as<const uint4>() + at * vectors * static_cast<std::size_t>(mix.reads),
            out_.as<uint4>() + at * vectors * static_cast<std::size_t>(mix.writes), vectors,
            sum_.as<std::uint32_t>()};
  }

  const Context& context_;
  Table& table_;
  DeviceBuffer in_, out_, sum_;
};

void run(const Context& context, Table& table) {
  const bool quick = context.depth == Depth::kQuick;
  const std::int64_t most = std::min(quick ? 4 * kGiB : 16 * kGiB, context.device.memory_bytes / 4);
  HbmStream stream(context, table, static_cast<std::size_t>(most));
  const std::int64_t full = 4 * std::int64_t{context.device.sms};
  for (const Mix& mix : kMixes) {
    for (const std::int64_t ctas : {std::int64_t{1}, std::int64_t{7}, full}) {
      stream.check(mix, 1000003, ctas);
      stream.check(mix, 257, ctas);
    }
  }
  const std::vector<std::int64_t> sizes = octaves(kMiB, most, 1, kMiB);
  const std::int64_t knee = std::min(kGiB, most);  // the size that saturation is read from
  for (const Mix& mix : kMixes) {
    for (const std::int64_t ctas : cta_counts(context.device.sms, context.depth)) {
      if (context.out_of_time()) return;
      // A few blocks take long over a gigabyte, and tell as much over less.
      const bool few = 8 * ctas < context.device.sms;
      stream.time(mix, few ? knee / 16 : knee, ctas);
    }
    for (std::size_t s = 0; s < sizes.size(); s += quick ? 3 : 1) {
      if (context.out_of_time()) return;
      stream.time(mix, sizes[s], full);
      if (!quick) stream.time(mix, sizes[s], context.device.sms);
    }
  }
}

const Registration kHbmStream(
    {3, "hbm_stream", "HBM bandwidth over read share, size and thread blocks in flight", 8, 8, 30,
     with_timing_columns({"system", "read_share", "bytes", "ctas", "bytes_per_s"}), run});

}  // namespace
}  // namespace orrery::measure::hbm_stream
