// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/mbarrier.cuh"
#include "device/random.cuh"
#include "device/swizzle.h"
#include "device/wgmma.cuh"
#include "host/measurement.h"
#include "host/reference.h"

namespace orrery::measure::wgmma {
namespace {

constexpr int kMaxWarpgroups = 3;
constexpr int kRows = 64;  // of one wgmma

/// 128 accumulators and 16 registers of A leave no room for a third warpgroup on a multiprocessor.
constexpr int most_warpgroups(int n, bool from_registers) {
  return n == 256 && from_registers ? 2 : kMaxWarpgroups;
}

#ifdef ORRERY_HOPPER
/// Rows of 128 bytes from global memory into a swizzled tile, by all threads of the block.
__device__ void load_tile(std::uint8_t* tile, const std::uint8_t* source, int rows) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * 8; i += static_cast<int>(blockDim.x)) {
    const auto row = static_cast<std::uint32_t>(i / 8);
    const auto byte = static_cast<std::uint32_t>(i % 8 * 16);
    *reinterpret_cast<uint4*>(tile + tile_offset(row, byte)) =
        *reinterpret_cast<const uint4*>(source + row * kTileRowBytes + byte);
  }
}

/// The registers of A of all steps, from the warpgroup's 64 rows.
__device__ void load_fragments(std::uint32_t (&fragments)[kStepsPerTile][4],
                               const std::uint8_t* rows, int thread) {
#pragma unroll
  for (int step = 0; step < kStepsPerTile; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int byte = step * kStepBytes + fragment_byte(thread, i);
      fragments[step][i] = *reinterpret_cast<const std::uint32_t*>(
          rows + fragment_row(thread, i) * kTileRowBytes + byte);
    }
  }
}

/// `iterations` times the four steps of the tile. Back to back, one group of wgmma is always in
/// flight; in latency mode every instruction is waited for.
template <Format kFormat, int kN, bool kFromRegisters, bool kLatency>
__device__ void multiply(float (&sums)[kN / 2], const std::uint32_t (&fragments)[kStepsPerTile][4],
                         std::uint64_t a, std::uint64_t b, int iterations) {
  for (int iteration = 0; iteration < iterations; ++iteration) {
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < kStepsPerTile; ++step) {
      if constexpr (kFromRegisters) {
        Wgmma<kFormat, kN>::rs(sums, fragments[step], descriptor_of_step(b, step));
      } else {
        Wgmma<kFormat, kN>::ss(sums, descriptor_of_step(a, step), descriptor_of_step(b, step));
      }
      if constexpr (kLatency) {
        wgmma_commit();
        wgmma_wait<0>();
      }
    }
    if constexpr (!kLatency) {
      wgmma_commit();
      wgmma_wait<1>();
    }
  }
  wgmma_wait<0>();
}
#endif

/// Every warpgroup multiplies its own 64 x 128 B tile of A with the shared N x 128 B tile of B,
/// `iterations` times over, in registers: D = iterations * A B^T.
template <Format kFormat, int kN, bool kFromRegisters, bool kLatency>
__global__ void __launch_bounds__(most_warpgroups(kN, kFromRegisters) * 128, 1)
    wgmma_kernel([[maybe_unused]] const std::uint8_t* a, [[maybe_unused]] const std::uint8_t* b,
                 [[maybe_unused]] float* d, [[maybe_unused]] long long* cycles,
                 [[maybe_unused]] int iterations) {
#ifdef ORRERY_HOPPER
  extern __shared__ __align__(16) std::uint8_t dynamic[];
  std::uint8_t* const shared = align_shared<kSwizzlePeriodBytes>(dynamic);
  const int group = static_cast<int>(threadIdx.x) / 128,
            thread = static_cast<int>(threadIdx.x) % 128;
  const int rows = static_cast<int>(blockDim.x) / 128 * kRows;
  const int first_byte = group * kRows * kTileRowBytes;  // of the group's rows of A
  load_tile(shared, a, rows);
  load_tile(shared + rows * kTileRowBytes, b, kN);
  async_proxy_fence();
  __syncthreads();

  std::uint32_t fragments[kStepsPerTile][4] = {};
  if constexpr (kFromRegisters) load_fragments(fragments, a + first_byte, thread);
  float sums[kN / 2];
#pragma unroll
  for (float& sum : sums) sum = 0;
  const std::uint64_t a_tile = matrix_descriptor(shared_address(shared + first_byte));
  const std::uint64_t b_tile = matrix_descriptor(shared_address(shared + rows * kTileRowBytes));
  const long long start = clock64();
  multiply<kFormat, kN, kFromRegisters, kLatency>(sums, fragments, a_tile, b_tile, iterations);
  const long long stop = clock64();

  const int slot = static_cast<int>(blockIdx.x) * kMaxWarpgroups + group;
  if (thread == 0) cycles[slot] = stop - start;
#pragma unroll
  for (int i = 0; i < kN / 2; ++i) {
    const int row = slot * kRows + accumulator_row(thread, i);
    d[row * kN + accumulator_column(thread, i)] = sums[i];
  }
#endif
}

using Kernel = void (*)(const std::uint8_t*, const std::uint8_t*, float*, long long*, int);

struct Variant {
  Format format;
  int n;
  bool from_registers, latency;
  Kernel kernel;

  std::string label() const {
    return std::string("wgmma ") + name_of(format) + " n=" + std::to_string(n) +
           (from_registers ? " RS" : " SS") + (latency ? " latency" : "");
  }
};

template <Format kFormat, int kN>
void add_shapes(std::vector<Variant>& variants) {
  variants.push_back({kFormat, kN, false, false, wgmma_kernel<kFormat, kN, false, false>});
  variants.push_back({kFormat, kN, true, false, wgmma_kernel<kFormat, kN, true, false>});
  variants.push_back({kFormat, kN, false, true, wgmma_kernel<kFormat, kN, false, true>});
  variants.push_back({kFormat, kN, true, true, wgmma_kernel<kFormat, kN, true, true>});
}

template <Format kFormat, int... kNs>
void add_format(std::vector<Variant>& variants, std::integer_sequence<int, kNs...>) {
  (add_shapes<kFormat, kNs>(variants), ...);
}

std::vector<Variant> all_variants() {
  std::vector<Variant> variants;
  const std::integer_sequence<int, 8, 16, 32, 64, 96, 128, 192, 256> ns;
  add_format<Format::kBf16>(variants, ns);
  add_format<Format::kE4m3>(variants, ns);
  add_format<Format::kTf32>(variants, ns);
  return variants;
}

/// One variant with its operands on the device.
class Bench {
 public:
  Bench(const Context& context, const Variant& variant)
      : context_(context),
        variant_(variant),
        a_(kMaxWarpgroups * kRows * kTileRowBytes),
        b_(static_cast<std::size_t>(variant.n * kTileRowBytes)),
        d_(blocks() * kMaxWarpgroups * kRows * static_cast<std::size_t>(variant.n) * sizeof(float)),
        cycles_(blocks() * kMaxWarpgroups * sizeof(long long)) {
    ORRERY_CUDA(cudaFuncSetAttribute(variant.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(shared_bytes(kMaxWarpgroups))));
  }

  /// Checks the sum of one and of three passes for every entry of the first and the last block.
  void check(int groups) {
    load(Data::kRandom);
    for (const int iterations : {1, 3}) {
      ORRERY_CUDA(cudaMemset(d_.as(), 0xFF, d_.bytes()));
      launch(nullptr, groups, iterations);
      ORRERY_CUDA(cudaDeviceSynchronize());
      compare(0, groups, iterations);
      compare(static_cast<int>(blocks()) - 1, groups, iterations);
    }
  }

  void measure(Table& table, int groups, Data data, double steady_s) {
    load(data);
    // About 0.5 ms: an instruction takes some max(n / 2, 32) clocks, and the groups share the pipe.
    const int step_clocks = std::max(variant_.n / 2, 32) * groups * (variant_.latency ? 3 : 1);
    const int iterations = std::max(64, 900000 / (kStepsPerTile * step_clocks));
    TimingOptions options;
    options.steady_s = steady_s;
    const Timing timing = time_graph(
        context_, [&](cudaStream_t stream, int) { launch(stream, groups, iterations); }, options);
    const double instructions = static_cast<double>(iterations) * kStepsPerTile;
    const double k = kStepBytes / static_cast<double>(bytes_of(variant_.format));
    const double flops = instructions * groups * 2 * kRows * variant_.n * k;
    const double clocks = median_cycles(groups);
    table.add_row(with_timing(
        {context_.system, std::string(name_of(variant_.format)), std::int64_t{variant_.n},
         std::string(variant_.from_registers ? "registers" : "shared"), std::int64_t{groups},
         std::string(name_of(data)), std::string(variant_.latency ? "latency" : "throughput"),
         clocks / instructions, flops / clocks,
         flops * static_cast<double>(blocks()) / (timing.us.median * 1e-6),
         std::string(steady_s > 0 ? "steady" : "boost")},
        timing));
  }

 private:
  std::size_t blocks() const { return static_cast<std::size_t>(context_.device.sms); }
  std::size_t shared_bytes(int groups) const {
    return static_cast<std::size_t>((groups * kRows + variant_.n) * kTileRowBytes +
                                    kSwizzlePeriodBytes);
  }

  void load(Data data) {
    const std::size_t element = bytes_of(variant_.format);
    fill(variant_.format, a_.as(), a_.bytes() / element, context_.seed, data);
    fill(variant_.format, b_.as(), b_.bytes() / element, context_.seed + 1, data);
  }

  void launch(cudaStream_t stream, int groups, int iterations) {
    variant_
        .kernel<<<static_cast<unsigned>(blocks()), groups * 128, shared_bytes(groups), stream>>>(
            a_.as<std::uint8_t>(), b_.as<std::uint8_t>(), d_.as<float>(), cycles_.as<long long>(),
            iterations);
    ORRERY_CUDA(cudaGetLastError());
  }

  void compare(int block, int groups, int iterations) {
    const auto entries = static_cast<std::size_t>(groups * kRows * variant_.n);
    std::vector<float> got(entries);
    const std::size_t first = static_cast<std::size_t>(block * kMaxWarpgroups * kRows) *
                              static_cast<std::size_t>(variant_.n);
    ORRERY_CUDA(cudaMemcpy(got.data(), d_.as<float>() + first, entries * sizeof(float),
                           cudaMemcpyDeviceToHost));
    const RandomBuffer a{variant_.format, Data::kRandom, context_.seed};
    const RandomBuffer b{variant_.format, Data::kRandom, context_.seed + 1};
    const auto k = static_cast<std::int64_t>(kTileRowBytes / bytes_of(variant_.format));
    Comparison comparison;
    for (std::size_t i = 0; i < entries; ++i) {
      const auto row = static_cast<std::int64_t>(i) / variant_.n;
      const auto column = static_cast<std::int64_t>(i) % variant_.n;
      comparison.add(got[i], iterations * dot(a, row * k, b, column * k, k));
    }
    // Results stay in registers as fp32; only the fp8 accumulator rounds more (see gemm_tolerance).
    comparison.require(variant_.format == Format::kE4m3 ? 5e-3 : 1e-4, variant_.label());
  }

  double median_cycles(int groups) {
    std::vector<long long> cycles(blocks() * kMaxWarpgroups);
    ORRERY_CUDA(cudaMemcpy(cycles.data(), cycles_.as(), cycles_.bytes(), cudaMemcpyDeviceToHost));
    std::vector<double> slowest;
    for (std::size_t block = 0; block < blocks(); ++block) {
      const auto first = cycles.begin() + static_cast<std::ptrdiff_t>(block * kMaxWarpgroups);
      slowest.push_back(static_cast<double>(*std::max_element(first, first + groups)));
    }
    return summarise(slowest).median;
  }

  const Context& context_;
  const Variant& variant_;
  DeviceBuffer a_, b_, d_, cycles_;
};

void measure_variant(const Context& context, Table& table, const Variant& variant) {
  const bool quick = context.depth == Depth::kQuick;
  Bench bench(context, variant);
  const int most = variant.latency ? 1 : most_warpgroups(variant.n, variant.from_registers);
  for (int groups = 1; groups <= most; ++groups) {
    if (context.out_of_time()) return;
    bench.check(groups);
    bench.measure(table, groups, Data::kRandom, 0);
    if (!variant.latency) bench.measure(table, groups, Data::kZeros, 0);
  }
  const bool widest = variant.n == 256 && !variant.from_registers && !variant.latency;
  if (widest && !quick && !context.out_of_time()) {
    bench.measure(table, 2, Data::kRandom, 2.0);
    bench.measure(table, 2, Data::kZeros, 2.0);
  }
}

void run(const Context& context, Table& table) {
  if (context.device.major != 9) {
    *context.log << "wgmma: needs compute capability 9\n";
    return;
  }
  Failures failures;
  for (const Variant& variant : all_variants()) {
    if (context.out_of_time()) break;
    try {
      measure_variant(context, table, variant);
    } catch (const WrongResult& error) {
      failures.add(error);
    }
  }
  failures.raise();
}

const Registration registration({
    .number = 6,
    .name = "wgmma",
    .what = "wgmma by N, precision, source of A, warpgroups and data: peak rate, latency, energy",
    .capability = 9,
    .quick_s = 8,
    .full_s = 20,
    .columns = with_timing_columns({"system", "precision", "n", "a_source", "warpgroups", "data",
                                    "mode", "clk_per_instruction", "flops_per_clk_per_sm",
                                    "flops_per_s", "state"}),
    .run = run,
});

}  // namespace
}  // namespace orrery::measure::wgmma
