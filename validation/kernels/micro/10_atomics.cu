// SPDX-License-Identifier: Apache-2.0
// Kernel 10, second part: atomics in global memory under contention, the sum of partial tiles that
// split-K needs, and a barrier across the grid.
#include <limits>
#include <string>

#include "device/clock.cuh"
#include "device/timing.cuh"
#include "device/words.cuh"
#include "host/sweeps.h"

namespace orrery::measure::atomics {
namespace {

constexpr int kThreads = 256, kOps = 256, kBarriers = 64;
constexpr int kTile = 128 * 128;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// One thread of each block adds 1 to the same counter, each time after the last answer came.
/// Block 0 notes its cycles.
__global__ void chain_kernel(std::uint32_t* counter, std::uint64_t* cycles) {
  if (threadIdx.x != 0) return;
  const std::uint64_t start = cycles_now();
  std::uint32_t answer = 0;
  for (int op = 0; op < kOps; ++op) {
    // The top bit of a count is never set: the address stays, and waits for the answer.
    asm volatile("atom.global.add.u32 %0, [%1], 1;"
                 : "=r"(answer)
                 : "l"(counter + (answer >> 31))
                 : "memory");
  }
  if (answer >> 31) counter[1] = answer;  // waits for the last answer
  const std::uint64_t stop = cycles_now();
  if (blockIdx.x == 0) *cycles = stop - start;
}

/// Which counter a thread adds to.
enum class Target { kSame, kPerBlock, kPerThread };
constexpr int kBlockStride = 32;  ///< words between blocks' counters: a line each

__host__ __device__ inline std::uint32_t counter_of(Target target, std::uint32_t block,
                                                    std::uint32_t thread) {
  switch (target) {
    case Target::kSame:
      return 0;
    case Target::kPerBlock:
      return block * kBlockStride;
    case Target::kPerThread:
      break;
  }
  return block * kThreads + thread;
}

/// Every thread adds 1 kOps times and waits for no answer.
__global__ void __launch_bounds__(kThreads) add_kernel(std::uint32_t* counters, Target target) {
  std::uint32_t* const mine = counters + counter_of(target, blockIdx.x, threadIdx.x);
  for (int op = 0; op < kOps; ++op) {
    asm volatile("red.global.add.u32 [%0], 1;" ::"l"(mine) : "memory");
  }
}

/// `splits` blocks after one another in the grid add a tile of ones to the same tile.
__global__ void __launch_bounds__(kThreads) tile_kernel(float* tiles, int splits) {
  float* const tile = tiles + std::size_t{blockIdx.x} / static_cast<unsigned>(splits) * kTile;
  for (int i = static_cast<int>(threadIdx.x); i < kTile; i += kThreads) {
    asm volatile("red.global.add.f32 [%0], %1;" ::"l"(tile + i), "f"(1.0f) : "memory");
  }
}

/// Barrier state: blocks that have come, and barriers passed. Both survive a launch, as the last
/// block to come sets the first to 0.
struct Barrier {
  std::uint32_t arrived, passed;
};

__device__ void grid_barrier(Barrier* barrier) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const std::uint32_t before = *static_cast<volatile std::uint32_t*>(&barrier->passed);
    __threadfence();
    if (atomicAdd(&barrier->arrived, 1u) == gridDim.x - 1) {
      barrier->arrived = 0;
      __threadfence();
      atomicAdd(&barrier->passed, 1u);
    } else {
      while (*static_cast<volatile std::uint32_t*>(&barrier->passed) == before) {
      }
    }
    __threadfence();
  }
  __syncthreads();
}

/// kChecked: each block writes the number of the barrier before it, and counts in *wrong when the
/// next block's is not there after it; a second barrier parts reading from the next writing.
template <bool kChecked>
__global__ void barrier_kernel(Barrier* barrier, std::uint32_t* slots, std::uint32_t* wrong,
                               std::uint64_t* cycles) {
  const std::uint64_t start = cycles_now();
  for (std::uint32_t round = 1; round <= kBarriers; ++round) {
    if (kChecked && threadIdx.x == 0) {
      static_cast<volatile std::uint32_t*>(slots)[blockIdx.x] = round;
    }
    grid_barrier(barrier);
    if constexpr (kChecked) {
      const std::uint32_t next = (blockIdx.x + 1) % gridDim.x;
      if (threadIdx.x == 0 && static_cast<volatile std::uint32_t*>(slots)[next] != round) {
        atomicAdd(wrong, 1u);
      }
      grid_barrier(barrier);
    }
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) *cycles = cycles_now() - start;
}

class Atomics {
 public:
  Atomics(const Context& context, Table& table)
      : context_(context),
        table_(table),
        words_(std::size_t{4} * static_cast<std::size_t>(context.device.sms) * kTile *
               sizeof(float)),
        cycles_(sizeof(std::uint64_t)),
        barrier_(sizeof(Barrier)) {
    ORRERY_CUDA(cudaMemset(barrier_.as(), 0, sizeof(Barrier)));
  }

  void chain(std::int64_t ctas) {
    const auto blocks = static_cast<unsigned>(ctas);
    const Launch launch = [&](cudaStream_t stream, int) {
      chain_kernel<<<blocks, 32, 0, stream>>>(words(), cycles_.as<std::uint64_t>());
      ORRERY_CUDA(cudaGetLastError());
    };
    clear();
    launch(nullptr, 0);
    expect("chained atomics", copy_words(words(), 1)[0] == blocks * kOps);
    const double clk = static_cast<double>(noted_cycles()) / kOps;
    clear();  // or the count reaches its top bit
    add_row("chain_same", ctas, 1, ctas * kOps, clk, timed(launch));
  }

  void add(std::int64_t ctas, Target target, const char* test) {
    const auto blocks = static_cast<std::uint32_t>(ctas);
    const Launch launch = [&](cudaStream_t stream, int) {
      add_kernel<<<blocks, kThreads, 0, stream>>>(words(), target);
      ORRERY_CUDA(cudaGetLastError());
    };
    clear();
    launch(nullptr, 0);
    std::vector<std::uint32_t> expected(std::size_t{blocks} * kThreads);
    for (std::uint32_t block = 0; block < blocks; ++block) {
      for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
        expected[counter_of(target, block, thread)] += kOps;
      }
    }
    expect(test, copy_words(words(), expected.size()) == expected);
    add_row(test, ctas, 1, ctas * kThreads * kOps, kUnknown, timed(launch));
  }

  void tiles(int splits) {
    const std::int64_t ctas = context_.device.sms / splits * splits;
    if (ctas == 0) return;
    const Launch launch = [&](cudaStream_t stream, int) {
      tile_kernel<<<static_cast<unsigned>(ctas), kThreads, 0, stream>>>(words_.as<float>(), splits);
      ORRERY_CUDA(cudaGetLastError());
    };
    clear();
    launch(nullptr, 0);
    std::vector<float> got(static_cast<std::size_t>(ctas / splits * kTile));
    ORRERY_CUDA(
        cudaMemcpy(got.data(), words_.as(), got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    bool right = true;
    for (const float sum : got) right = right && sum == static_cast<float>(splits);
    expect("sum of tiles", right);
    add_row("split_k_tiles", ctas, splits, ctas * kTile, kUnknown, timed(launch));
  }

  void barriers(std::int64_t ctas) {
    clear();
    enqueue_barriers(barrier_kernel<true>, ctas, nullptr);
    ORRERY_CUDA(cudaDeviceSynchronize());
    expect("grid barrier", copy_words(words() + kWrong, 1)[0] == 0);
    const Launch launch = [&](cudaStream_t stream, int) {
      enqueue_barriers(barrier_kernel<false>, ctas, stream);
    };
    launch(nullptr, 0);
    const double clk = static_cast<double>(noted_cycles()) / kBarriers;
    add_row("grid_barrier", ctas, 1, kBarriers, clk, timed(launch));
  }

 private:
  static constexpr std::size_t kWrong = 1 << 16;  ///< word that counts errors, beyond the slots

  std::uint32_t* words() const { return words_.as<std::uint32_t>(); }
  void clear() const {
    ORRERY_CUDA(cudaMemset(words_.as(), 0, words_.bytes()));
    ORRERY_CUDA(cudaDeviceSynchronize());
  }
  static void expect(const char* test, bool right) {
    if (!right) throw WrongResult(std::string(test) + ": the counts are not the reference's");
  }
  std::uint64_t noted_cycles() const {
    std::uint64_t cycles = 0;
    ORRERY_CUDA(cudaMemcpy(&cycles, cycles_.as(), sizeof cycles, cudaMemcpyDeviceToHost));
    return cycles;
  }

  /// Cooperative: all blocks run at once, or the launch is refused.
  template <class Kernel>
  void enqueue_barriers(Kernel* kernel, std::int64_t ctas, cudaStream_t stream) const {
    auto* barrier = barrier_.as<Barrier>();
    auto* slots = words();
    auto* wrong = words() + kWrong;
    auto* cycles = cycles_.as<std::uint64_t>();
    void* arguments[] = {&barrier, &slots, &wrong, &cycles};
    ORRERY_CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel),
                                            dim3(static_cast<unsigned>(ctas)), dim3(kThreads),
                                            arguments, 0, stream));
  }

  Timing timed(const Launch& launch) const {
    TimingOptions options;
    options.repeats = 5;
    return time_graph(context_, launch, options);
  }

  void add_row(const char* test, std::int64_t ctas, int splits, std::int64_t ops, double clk,
               const Timing& timing) {
    table_.add_row(with_timing({context_.system, std::string(test), ctas, std::int64_t{splits}, ops,
                                clk, static_cast<double>(ops) / (1e-6 * timing.us.median)},
                               timing));
  }

  const Context& context_;
  Table& table_;
  DeviceBuffer words_, cycles_, barrier_;
};

void run(const Context& context, Table& table) {
  keep_busy(context.device, 0.05);
  Atomics atomics(context, table);
  for (const std::int64_t ctas : cta_counts(context.device.sms, context.depth)) {
    if (context.out_of_time()) return;
    atomics.chain(ctas);
    atomics.add(ctas, Target::kSame, "add_same");
    atomics.add(ctas, Target::kPerBlock, "add_per_block");
    atomics.add(ctas, Target::kPerThread, "add_per_thread");
    if (ctas <= context.device.sms) atomics.barriers(ctas);
  }
  for (int splits = 1; splits <= 32 && !context.out_of_time(); splits *= 2) {
    atomics.tiles(splits);
  }
}

// latency_clk is of one chained atomic, or of one barrier.
const Registration kAtomics(
    {10, "atomics", "global atomics under contention, split-K sums, grid barrier", 8, 4, 10,
     with_timing_columns({"system", "test", "ctas", "splits", "ops", "latency_clk", "ops_per_s"}),
     run});

}  // namespace
}  // namespace orrery::measure::atomics
