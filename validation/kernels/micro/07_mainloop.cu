// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "device/mainloop.cuh"
#include "device/random.cuh"
#include "host/measurement.h"
#include "host/reference.h"
#include "host/sampling.h"

namespace orrery::measure::mainloop {
namespace {

constexpr int kMaxK = 16384;

template <int kWarpgroups, int kBn>
__global__ void __launch_bounds__(kWarpgroups * 128 + 32, 1)
    mainloop_kernel([[maybe_unused]] const __grid_constant__ CUtensorMap map_a,
                    [[maybe_unused]] const __grid_constant__ CUtensorMap map_b,
                    [[maybe_unused]] const MainloopShape shape,
                    [[maybe_unused]] std::uint16_t* out) {
#ifdef ORRERY_HOPPER
  extern __shared__ __align__(16) std::uint8_t dynamic[];
  mainloop_block<kWarpgroups, kBn>(map_a, map_b, shape, out,
                                   shared_address(align_shared<kSwizzlePeriodBytes>(dynamic)));
#endif
}

using Kernel = void (*)(const CUtensorMap, const CUtensorMap, const MainloopShape, std::uint16_t*);

struct Tile {
  int warpgroups, bn;
  Kernel kernel;

  int bm() const { return 64 * warpgroups; }
};

std::vector<Tile> tiles() {
  return {{1, 64, mainloop_kernel<1, 64>},   {1, 128, mainloop_kernel<1, 128>},
          {1, 256, mainloop_kernel<1, 256>}, {2, 64, mainloop_kernel<2, 64>},
          {2, 128, mainloop_kernel<2, 128>}, {2, 192, mainloop_kernel<2, 192>},
          {2, 256, mainloop_kernel<2, 256>}};
}

/// The widest grid of `ctas` tiles that is at least as high as wide: 132 = 12 x 11.
int tiles_across(int ctas) {
  int across = 1;
  for (int i = 1; i * i <= ctas; ++i) {
    if (ctas % i == 0) across = i;
  }
  return across;
}

struct Config {
  Tile tile;
  int stages, k, ctas;

  int tiles_n() const { return tiles_across(ctas); }
  std::int64_t m() const { return std::int64_t{tile.bm()} * (ctas / tiles_n()); }
  std::int64_t n() const { return std::int64_t{tile.bn} * tiles_n(); }
  std::string label() const {
    return "mainloop " + std::to_string(tile.bm()) + "x" + std::to_string(tile.bn) + ", " +
           std::to_string(stages) + " stages, k=" + std::to_string(k) + ", " +
           std::to_string(ctas) + " blocks";
  }
};

/// Inputs are slices of two random buffers: copy i of a configuration starts i matrices further on.
class Bench {
 public:
  explicit Bench(const Context& context)
      : context_(context), a_(kBytes), b_(kBytes), out_(std::size_t{64} << 20) {
    fill(Format::kBf16, a_.as(), kBytes / 2, context.seed);
    fill(Format::kBf16, b_.as(), kBytes / 2, context.seed + 1);
    for (const Tile& tile : tiles()) {
      ORRERY_CUDA(cudaFuncSetAttribute(tile.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       shared_limit()));
    }
  }

  bool fits(const Config& config) const {
    const std::int64_t largest = std::max(config.m(), config.n()) * config.k * 2;
    return shared_bytes(config) <= shared_limit() && config.stages <= kMainloopStages &&
           largest <= static_cast<std::int64_t>(kBytes) &&
           config.m() * config.n() * 2 <= static_cast<std::int64_t>(out_.bytes());
  }

  void check(const Config& config) {
    ORRERY_CUDA(cudaMemset(out_.as(), 0xFF, out_.bytes()));
    launch(nullptr, config, maps(config, 0));
    ORRERY_CUDA(cudaDeviceSynchronize());
    std::vector<std::uint16_t> out(static_cast<std::size_t>(config.m() * config.n()));
    ORRERY_CUDA(cudaMemcpy(out.data(), out_.as(), out.size() * 2, cudaMemcpyDeviceToHost));
    const RandomBuffer a{Format::kBf16, Data::kRandom, context_.seed};
    const RandomBuffer b{Format::kBf16, Data::kRandom, context_.seed + 1};
    Comparison comparison;
    // As many products whatever k is: some 2 ms of the host.
    const int samples = std::clamp(131072 / config.k, 32, 512);
    for (const Place& place : sample_places(config.m(), config.n(), samples, context_.seed)) {
      const auto at = static_cast<std::size_t>(place.row * config.n() + place.column);
      comparison.add(decode_bf16(out[at]),
                     dot(a, place.row * config.k, b, place.column * config.k, config.k));
    }
    for (const std::uint16_t code : out) {
      if ((code & 0x7FFF) > 0x7F80) throw WrongResult(config.label() + ": entries not written");
    }
    comparison.require(gemm_tolerance(Format::kBf16, config.k), config.label());
  }

  void measure(Table& table, const Config& config, bool cold) {
    const auto bytes_a = static_cast<std::size_t>(config.m() * config.k * 2);
    const auto bytes_b = static_cast<std::size_t>(config.n() * config.k * 2);
    const int copies = cold ? std::min(rotation(context_.device, bytes_a + bytes_b),
                                       static_cast<int>(kBytes / std::max(bytes_a, bytes_b)))
                            : 1;
    std::vector<Maps> rotated;
    for (int i = 0; i < copies; ++i) rotated.push_back(maps(config, i));
    TimingOptions options;
    options.copies = copies;
    const Timing timing = time_graph(
        context_,
        [&](cudaStream_t stream, int i) {
          launch(stream, config, rotated[static_cast<std::size_t>(i % copies)]);
        },
        options);
    const double flops = 2.0 * static_cast<double>(config.m() * config.n()) * config.k;
    table.add_row(
        with_timing({context_.system, std::int64_t{config.tile.bm()}, std::int64_t{config.tile.bn},
                     std::int64_t{kMainloopK}, std::int64_t{config.stages}, std::int64_t{config.k},
                     std::int64_t{config.ctas}, std::string(cold ? "memory" : "l2"),
                     flops / (timing.us.median * 1e-6)},
                    timing));
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{256} << 20;

  struct Maps {
    CUtensorMap a, b;
  };

  int shared_limit() const { return static_cast<int>(context_.device.shared_bytes_per_block); }
  static int shared_bytes(const Config& config) {
    return kSwizzlePeriodBytes + config.stages * stage_bytes(config.tile.bm(), config.tile.bn) +
           2 * kMainloopStages * static_cast<int>(sizeof(std::uint64_t));
  }

  static CUtensorMap map_of(const DeviceBuffer& buffer, std::int64_t rows, int k, int box_rows,
                            int copy) {
    return make_tensor_map({.format = Format::kBf16,
                            .data = buffer.as<std::uint16_t>() + copy * rows * k,
                            .rows = rows,
                            .row_elements = k,
                            .box_rows = box_rows,
                            .box_row_elements = kMainloopK,
                            .swizzled = true});
  }
  Maps maps(const Config& config, int copy) const {
    return {map_of(a_, config.m(), config.k, config.tile.bm(), copy),
            map_of(b_, config.n(), config.k, config.tile.bn, copy)};
  }

  void launch(cudaStream_t stream, const Config& config, const Maps& maps) {
    const MainloopShape shape{config.k / kMainloopK, config.stages, config.tiles_n()};
    const unsigned threads = static_cast<unsigned>(config.tile.warpgroups) * 128 + 32;
    config.tile.kernel<<<static_cast<unsigned>(config.ctas), threads,
                         static_cast<std::size_t>(shared_bytes(config)), stream>>>(
        maps.a, maps.b, shape, out_.as<std::uint16_t>());
    ORRERY_CUDA(cudaGetLastError());
  }

  const Context& context_;
  DeviceBuffer a_, b_, out_;
};

std::vector<Config> configs(const Context& context) {
  const int sms = context.device.sms;
  const bool full = context.depth == Depth::kFull;
  const std::vector<int> grids =
      full ? std::vector<int>{1, sms / 4, sms / 2, sms} : std::vector<int>{1, sms};
  const std::vector<int> stage_counts =
      full ? std::vector<int>{2, 3, 4, 6, 8} : std::vector<int>{2, 4, 8};
  std::vector<Config> result;
  for (const Tile& tile : tiles()) {
    for (const int stages : stage_counts) {
      for (const int ctas : grids) {
        for (int k = kMainloopK; k <= kMaxK; k *= full ? 2 : 4)
          result.push_back({tile, stages, k, ctas});
      }
    }
  }
  return result;
}

void run(const Context& context, Table& table) {
  if (context.device.major != 9) {
    *context.log << "mainloop: needs compute capability 9\n";
    return;
  }
  Bench bench(context);
  Failures failures;
  for (const Config& config : configs(context)) {
    if (context.out_of_time()) break;
    if (!bench.fits(config)) continue;
    try {
      bench.check(config);
      bench.measure(table, config, false);
      if (config.ctas == context.device.sms) bench.measure(table, config, true);
    } catch (const WrongResult& error) {
      failures.add(error);
    }
  }
  failures.raise();
}

const Registration registration({
    .number = 7,
    .name = "mainloop",
    .what = "fused TMA and wgmma main loop over K: a step's cost (slope), fill and epilogue "
            "(intercept; a graph node's gap is in it, see kernel 9)",
    .capability = 9,
    .quick_s = 8,
    .full_s = 25,
    .columns = with_timing_columns({"system", "bm", "bn", "bk", "stages", "k", "ctas", "source",
                                    "flops_per_s"}),
    .run = run,
});

}  // namespace
}  // namespace orrery::measure::mainloop
