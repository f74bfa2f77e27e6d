// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "device/decode.cuh"
#include "device/random.cuh"
#include "device/sustain.cuh"
#include "host/attention_shapes.h"
#include "host/measurement.h"
#include "host/priority_shapes.h"
#include "host/reference.h"
#include "host/sampling.h"

namespace orrery::measure::attention_decode {
namespace {

constexpr std::size_t kCacheBytes = std::size_t{6} << 30;  // of keys, and of values
constexpr std::size_t kQueryBytes = std::size_t{256} << 20;

class Bench {
 public:
  explicit Bench(const Context& context)
      : context_(context),
        key_(std::min(kCacheBytes, static_cast<std::size_t>(context.device.memory_bytes) / 4)),
        value_(key_.bytes()),
        query_(kQueryBytes),
        out_(kQueryBytes),
        partial_(std::size_t{1} << 30),
        pages_(std::size_t{16} << 20) {
    fill(Format::kBf16, query_.as(), kQueryBytes / 2, context.seed);
    fill(Format::kBf16, key_.as(), key_.bytes() / 2, context.seed + 1);
    fill(Format::kBf16, value_.as(), value_.bytes() / 2, context.seed + 2);
    allow_shared<64>();
    allow_shared<128>();
  }

  bool fits(const Plan& plan) const {
    return plan.cache_elements() * 2 <= key_.bytes() && plan.partial_bytes() <= partial_.bytes() &&
           plan.pages.size() * 4 <= pages_.bytes() && plan.query_elements() * 2 <= query_.bytes();
  }

  /// Sends the page table; sampled (sequence, head) pairs.
  void check(const Plan& plan) const {
    ORRERY_CUDA(
        cudaMemcpy(pages_.as(), plan.pages.data(), plan.pages.size() * 4, cudaMemcpyHostToDevice));
    ORRERY_CUDA(cudaMemset(out_.as(), 0xFF, plan.query_elements() * 2));
    ORRERY_CUDA(cudaMemset(partial_.as(), 0xFF, plan.partial_bytes()));
    launch(nullptr, plan, 0);
    ORRERY_CUDA(cudaDeviceSynchronize());
    const std::int64_t products = std::int64_t{plan.shape.kv_len} * plan.shape.heads.head_dim;
    const auto samples = static_cast<int>(std::clamp<std::int64_t>(1000000 / products, 2, 16));
    Comparison comparison;
    std::vector<Place> places = sample_places(plan.shape.batch, plan.shape.heads.heads,
                                              std::max(samples, 4), context_.seed);
    // The first and the last corner, then the random ones.
    std::swap(places[1], places[3]);
    for (int i = 0; i < samples; ++i)
      compare(plan, places[static_cast<std::size_t>(i)], comparison);
    comparison.require(0.02, plan.label());
  }

  void measure(Table& table, const Plan& plan) const {
    const DecodeShape& shape = plan.shape;
    const auto most =
        static_cast<int>(std::min({key_.bytes() / 2 / plan.cache_elements(),
                                   query_.bytes() / 2 / plan.query_elements(), std::size_t{4096}}));
    TimingOptions options;
    options.copies = std::clamp(
        rotation(context_.device, 4 * (plan.cache_elements() + plan.query_elements())), 1, most);
    const Timing timing = time_graph(
        context_, [&](cudaStream_t stream, int i) { launch(stream, plan, i % options.copies); },
        options);
    std::vector<Cell> cells = with_timing(shape_cells(shape), timing);
    const std::vector<Cell> more = {std::string("orrery"), std::int64_t{shape.page_size},
                                    std::int64_t{plan.split.splits},
                                    shape.kv_bytes() / (timing.us.median * 1e-6)};
    cells.insert(cells.end(), more.begin(), more.end());
    table.add_row(std::move(cells));
  }

  /// A time series of rows while the kernels run for `seconds` without a pause.
  void sustain_kernel(Table& table, const Plan& plan, double seconds) const {
    constexpr double kFirst_us = 1000;  // estimate for an H100
    const DecodeShape& shape = plan.shape;
    const auto add = [&](double time_s, double one_us) {
      const DeviceState state = context_.state();
      std::vector<Cell> cells = shape_cells(shape);
      const std::vector<Cell> more = {std::string("orrery"),
                                      std::int64_t{shape.page_size},
                                      time_s,
                                      one_us,
                                      shape.kv_bytes() / (one_us * 1e-6),
                                      state.sm_clock_mhz,
                                      state.power_w,
                                      state.temperature_c};
      cells.insert(cells.end(), more.begin(), more.end());
      table.add_row(std::move(cells));
    };
    sustain(
        context_, [&](cudaStream_t stream, int) { launch(stream, plan, 0); }, seconds, kFirst_us,
        add);
  }

 private:
  std::vector<Cell> shape_cells(const DecodeShape& shape) const {
    return {context_.system,
            std::string("bf16"),
            std::string("bf16"),
            std::int64_t{shape.batch},
            std::int64_t{shape.kv_len},
            std::int64_t{shape.heads.heads},
            std::int64_t{shape.heads.kv_heads},
            std::int64_t{shape.heads.head_dim},
            std::int64_t{0}};
  }

  template <int kHeadDim>
  static void allow_shared() {
    ORRERY_CUDA(cudaFuncSetAttribute(decode_kernel<kHeadDim>,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     kWarps * kWarpBytes<kHeadDim>));
  }

  template <int kHeadDim>
  void launch_as(cudaStream_t stream, const Plan& plan, const Operands& operands) const {
    const DecodeShape& shape = plan.shape;
    const dim3 grid(static_cast<unsigned>((plan.split.splits + kWarps - 1) / kWarps),
                    static_cast<unsigned>(shape.heads.kv_heads * plan.split.head_groups),
                    static_cast<unsigned>(shape.batch));
    const auto scale = static_cast<float>(kLog2E / std::sqrt(kHeadDim));
    decode_kernel<kHeadDim><<<grid, kWarps * 32, kWarps * kWarpBytes<kHeadDim>, stream>>>(
        shape, plan.split, operands, scale);
    ORRERY_CUDA(cudaGetLastError());
    combine_kernel<kHeadDim>
        <<<static_cast<unsigned>(shape.batch * shape.heads.heads), kHeadDim, 0, stream>>>(
            operands.partial, operands.out, plan.split.splits);
    ORRERY_CUDA(cudaGetLastError());
  }

  /// Copy 0 starts at the buffers' start, where the reference looks.
  void launch(cudaStream_t stream, const Plan& plan, int copy) const {
    const std::size_t cache = plan.cache_elements() * static_cast<std::size_t>(copy);
    const std::size_t query = plan.query_elements() * static_cast<std::size_t>(copy);
    const Operands operands{query_.as<__nv_bfloat16>() + query,
                            key_.as<__nv_bfloat16>() + cache,
                            value_.as<__nv_bfloat16>() + cache,
                            out_.as<__nv_bfloat16>() + query,
                            pages_.as<std::int32_t>(),
                            plan.pages_per_sequence,
                            partial_.as<float>()};
    if (plan.shape.heads.head_dim == 64) {
      launch_as<64>(stream, plan, operands);
    } else {
      launch_as<128>(stream, plan, operands);
    }
  }

  void compare(const Plan& plan, const Place& place, Comparison& comparison) const {
    const AttentionHeads& heads = plan.shape.heads;
    const std::int64_t head_dim = heads.head_dim;
    const std::int64_t kv_head = place.column / (heads.heads / heads.kv_heads);
    AttentionRow row;
    row.query = {Format::kBf16, Data::kRandom, context_.seed};
    row.key = {Format::kBf16, Data::kRandom, context_.seed + 1};
    row.value = {Format::kBf16, Data::kRandom, context_.seed + 2};
    row.query_start = (place.row * heads.heads + place.column) * head_dim;
    row.kv_stride = heads.kv_heads * head_dim;
    row.kv_start = kv_head * head_dim;
    if (plan.shape.page_size == 0) {
      row.kv_start += place.row * plan.shape.kv_len * row.kv_stride;
    } else {
      row.pages = plan.pages.data() + place.row * plan.pages_per_sequence;
      row.page_size = plan.shape.page_size;
      row.page_stride = plan.shape.page_size * row.kv_stride;
    }
    row.length = plan.shape.kv_len;
    row.head_dim = heads.head_dim;
    row.scale = 1 / std::sqrt(static_cast<double>(head_dim));
    const std::vector<double> expected = attention(row);
    std::vector<std::uint16_t> got(expected.size());
    ORRERY_CUDA(cudaMemcpy(got.data(), out_.as<std::uint16_t>() + row.query_start, got.size() * 2,
                           cudaMemcpyDeviceToHost));
    for (std::size_t d = 0; d < got.size(); ++d) comparison.add(decode_bf16(got[d]), expected[d]);
  }

  const Context& context_;
  DeviceBuffer key_, value_, query_, out_, partial_, pages_;
};

std::vector<DecodeShape> shapes_of(Depth depth) {
  if (depth == Depth::kPriority) return priority_decode_shapes(8e9);
  return decode_shapes(depth == Depth::kFull ? 8e9 : 2e9);
}

void run(const Context& context, Table& table) {
  const Bench bench(context);
  Failures failures;
  for (const DecodeShape& shape : shapes_of(context.depth)) {
    if (context.out_of_time()) break;
    const Plan plan(shape, context.device.sms);
    if (!bench.fits(plan)) continue;
    try {
      bench.check(plan);
      bench.measure(table, plan);
    } catch (const WrongResult& error) {
      failures.add(error);
    }
  }
  failures.raise();
}

void run_sustained(const Context& context, Table& table) {
  const Bench bench(context);
  const Plan plan(sustained_decode(), context.device.sms);
  bench.check(plan);
  bench.sustain_kernel(table, plan, kSustainSeconds);
}

std::vector<std::string> shape_columns() {
  return {"system", "precision", "kv_precision", "batch", "kv_len",
          "heads",  "kv_heads",  "head_dim",     "window"};
}

std::vector<std::string> columns() {
  std::vector<std::string> result = with_timing_columns(shape_columns());
  for (const char* column : {"implementation", "page_size", "splits", "kv_bytes_per_s"}) {
    result.emplace_back(column);
  }
  return result;
}

std::vector<std::string> sustained_columns() {
  std::vector<std::string> result = shape_columns();
  for (const char* column : {"implementation", "page_size", "time_s", "latency_us",
                             "kv_bytes_per_s", "sm_clock_mhz", "power_w", "temperature_c"}) {
    result.emplace_back(column);
  }
  return result;
}

const Registration registration({
    .number = 16,
    .name = "attention_decode",
    .what = "split-KV bf16 decode with grouped heads, contiguous and paged (a kernel of our own)",
    .quick_s = 8,
    .full_s = 23,
    .columns = columns(),
    .run = run,
});

const Registration sustained({
    .number = 16,
    .name = "sustained_decode",
    .what = "time series of power and clock under decode of 64 sequences over 8192 keys, paged",
    .columns = sustained_columns(),
    .run = run_sustained,
});

}  // namespace
}  // namespace orrery::measure::attention_decode
