// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "device/flash.cuh"
#include "device/random.cuh"
#include "device/sustain.cuh"
#include "host/attention_shapes.h"
#include "host/measurement.h"
#include "host/priority_shapes.h"
#include "host/reference.h"
#include "host/sampling.h"

namespace orrery::measure::attention_prefill {
namespace {

constexpr int kWarps = 8;
constexpr int kQueryRows = 16 * kWarps;
constexpr int kKeyRows = 64;
constexpr double kLog2E = 1.4426950408889634;
constexpr std::size_t kBytes = std::size_t{2} << 30;

struct Operands {
  const __nv_bfloat16 *query, *key, *value;
  __nv_bfloat16* out;
};

template <int kHeadDim>
constexpr int kSharedBytes = (kQueryRows + 4 * kKeyRows) * kHeadDim * 2;

/// Rows `first` on of a matrix with `stride` elements between rows; rows past `rows` become zeros.
template <int kHeadDim, int kRows>
__device__ void load_tile(std::uint32_t tile, const __nv_bfloat16* source, int first, int rows,
                          std::int64_t stride) {
  constexpr int kRowChunks = kChunks<kHeadDim>;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kRowChunks; i += kWarps * 32) {
    const int row = i / kRowChunks, chunk = i % kRowChunks;
    const bool valid = first + row < rows;
    const __nv_bfloat16* const from = valid ? source + (first + row) * stride + chunk * 8 : source;
    copy_async(tile + chunk_offset(row, chunk, kRowChunks), from, valid);
  }
}

template <int kHeadDim>
__device__ void store(const FlashWarp<kHeadDim, kKeyRows>& warp, __nv_bfloat16* out, int first_row,
                      int rows, std::int64_t stride) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float scale = 1 / warp.total(half);
    const int row = first_row + lane / 4 + 8 * half;
    if (row >= rows) continue;
#pragma unroll
    for (int n = 0; n < kHeadDim / 8; ++n) {
      const std::uint32_t pair =
          pack_bf16(warp.out[n][2 * half] * scale, warp.out[n][2 * half + 1] * scale);
      *reinterpret_cast<std::uint32_t*>(out + row * stride + 8 * n + 2 * (lane % 4)) = pair;
    }
  }
}

/// One block: 128 query rows of one head, over all keys they see, in tiles of 64 of which the next
/// is on its way. The last, longest rows of a sequence start first.
template <int kHeadDim>
__global__ void __launch_bounds__(kWarps * 32, 1)
    prefill_kernel(const PrefillShape shape, const Operands operands, float scale_log2) {
  extern __shared__ __align__(128) std::uint8_t shared[];
  constexpr std::uint32_t kTileBytes = kKeyRows * kHeadDim * 2;
  const auto queries = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  const std::uint32_t tiles = queries + kQueryRows * kHeadDim * 2;
  const int first_row = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kQueryRows;
  const int head = static_cast<int>(blockIdx.y);
  const int kv_head = head / (shape.heads.heads / shape.heads.kv_heads);
  const int kv_len = shape.kv_prefix_len + shape.q_len;
  const std::int64_t batch = blockIdx.z;
  const std::int64_t q_stride = std::int64_t{shape.heads.heads} * kHeadDim;
  const std::int64_t kv_stride = std::int64_t{shape.heads.kv_heads} * kHeadDim;
  const std::int64_t q_start = batch * shape.q_len * q_stride + head * kHeadDim;
  const std::int64_t kv_start = batch * kv_len * kv_stride + kv_head * kHeadDim;

  const auto load_keys = [&](int tile) {
    const std::uint32_t slot = tiles + tile % 2 * 2 * kTileBytes;
    load_tile<kHeadDim, kKeyRows>(slot, operands.key + kv_start, tile * kKeyRows, kv_len,
                                  kv_stride);
    load_tile<kHeadDim, kKeyRows>(slot + kTileBytes, operands.value + kv_start, tile * kKeyRows,
                                  kv_len, kv_stride);
    copy_async_commit();
  };
  load_tile<kHeadDim, kQueryRows>(queries, operands.query + q_start, first_row, shape.q_len,
                                  q_stride);
  load_keys(0);
  copy_async_wait<0>();
  __syncthreads();
  FlashWarp<kHeadDim, kKeyRows> warp;
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
  warp.load_query(queries, warp_row);

  const Mask mask{kv_len, shape.kv_prefix_len + first_row + warp_row, true};
  const int seen = min(kv_len, shape.kv_prefix_len + first_row + kQueryRows);
  const int count = (seen + kKeyRows - 1) / kKeyRows;
  for (int tile = 0; tile < count; ++tile) {
    copy_async_wait<0>();
    __syncthreads();  // the tile is here, and nobody reads the slot that is loaded next
    if (tile + 1 < count) load_keys(tile + 1);
    const std::uint32_t slot = tiles + tile % 2 * 2 * kTileBytes;
    warp.step(slot, slot + kTileBytes, tile * kKeyRows, mask, scale_log2);
  }
  store<kHeadDim>(warp, operands.out + q_start, first_row + warp_row, shape.q_len, q_stride);
}

class Bench {
 public:
  explicit Bench(const Context& context)
      : context_(context), query_(kBytes), key_(kBytes), value_(kBytes), out_(kBytes) {
    fill(Format::kBf16, query_.as(), kBytes / 2, context.seed);
    fill(Format::kBf16, key_.as(), kBytes / 2, context.seed + 1);
    fill(Format::kBf16, value_.as(), kBytes / 2, context.seed + 2);
    allow_shared<64>();
    allow_shared<128>();
  }

  bool fits(const PrefillShape& shape) const {
    return std::max(q_elements(shape), kv_elements(shape)) * 2 <= kBytes;
  }

  /// Sampled (row, head) pairs of the whole batch.
  void check(const PrefillShape& shape) const {
    ORRERY_CUDA(cudaMemset(out_.as(), 0xFF, q_elements(shape) * 2));
    launch(nullptr, shape, 0);
    ORRERY_CUDA(cudaDeviceSynchronize());
    const AttentionHeads& heads = shape.heads;
    const std::int64_t products = std::int64_t{shape.kv_len()} * heads.head_dim;
    const auto samples = static_cast<int>(std::clamp<std::int64_t>(2000000 / products, 4, 32));
    Comparison comparison;
    const std::int64_t rows = std::int64_t{shape.batch} * shape.q_len;
    for (const Place& place : sample_places(rows, heads.heads, samples, context_.seed)) {
      compare(shape, place, comparison);
    }
    comparison.require(
        0.02, "attention prefill batch " + std::to_string(shape.batch) + " q_len " +
                  std::to_string(shape.q_len) + " prefix " + std::to_string(shape.kv_prefix_len) +
                  " heads " + std::to_string(heads.heads) + "/" + std::to_string(heads.kv_heads) +
                  "/" + std::to_string(heads.head_dim));
  }

  void measure(Table& table, const PrefillShape& shape) const {
    const std::size_t bytes = 4 * (q_elements(shape) + kv_elements(shape));
    const auto most = static_cast<int>(
        std::min<std::size_t>(kBytes / 2 / std::max(q_elements(shape), kv_elements(shape)), 4096));
    TimingOptions options;
    options.copies = std::clamp(rotation(context_.device, bytes), 1, most);
    if (shape.flops() > 1e11) options.repeats = 5;
    const Timing timing = time_graph(
        context_, [&](cudaStream_t stream, int i) { launch(stream, shape, i % options.copies); },
        options);
    std::vector<Cell> cells = with_timing(shape_cells(shape), timing);
    cells.emplace_back(std::string("orrery"));
    cells.emplace_back(shape.flops() / (timing.us.median * 1e-6));
    table.add_row(std::move(cells));
  }

  /// A time series of rows while the kernel runs for `seconds` without a pause.
  void sustain_kernel(Table& table, const PrefillShape& shape, double seconds) const {
    constexpr double kFirst_us = 6000;  // estimate for an H100
    const auto add = [&](double time_s, double one_us) {
      const DeviceState state = context_.state();
      std::vector<Cell> cells = shape_cells(shape);
      const std::vector<Cell> more = {std::string("orrery"),
                                      time_s,
                                      one_us,
                                      shape.flops() / (one_us * 1e-6),
                                      state.sm_clock_mhz,
                                      state.power_w,
                                      state.temperature_c};
      cells.insert(cells.end(), more.begin(), more.end());
      table.add_row(std::move(cells));
    };
    sustain(
        context_, [&](cudaStream_t stream, int) { launch(stream, shape, 0); }, seconds, kFirst_us,
        add);
  }

 private:
  std::vector<Cell> shape_cells(const PrefillShape& shape) const {
    return {context_.system,
            std::string("bf16"),
            std::string("bf16"),
            std::int64_t{shape.batch},
            std::int64_t{shape.q_len},
            std::int64_t{shape.kv_prefix_len},
            std::int64_t{shape.heads.heads},
            std::int64_t{shape.heads.kv_heads},
            std::int64_t{shape.heads.head_dim},
            std::int64_t{0}};
  }

  template <int kHeadDim>
  static void allow_shared() {
    ORRERY_CUDA(cudaFuncSetAttribute(prefill_kernel<kHeadDim>,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     kSharedBytes<kHeadDim>));
  }

  static std::size_t q_elements(const PrefillShape& shape) {
    return static_cast<std::size_t>(shape.batch) * static_cast<std::size_t>(shape.q_len) *
           static_cast<std::size_t>(shape.heads.heads * shape.heads.head_dim);
  }
  static std::size_t kv_elements(const PrefillShape& shape) {
    return static_cast<std::size_t>(shape.batch) * static_cast<std::size_t>(shape.kv_len()) *
           static_cast<std::size_t>(shape.heads.kv_heads * shape.heads.head_dim);
  }

  /// Copy 0 starts at the buffers' start, where the reference looks.
  void launch(cudaStream_t stream, const PrefillShape& shape, int copy) const {
    const std::size_t q = q_elements(shape) * static_cast<std::size_t>(copy);
    const std::size_t kv = kv_elements(shape) * static_cast<std::size_t>(copy);
    const Operands operands{query_.as<__nv_bfloat16>() + q, key_.as<__nv_bfloat16>() + kv,
                            value_.as<__nv_bfloat16>() + kv, out_.as<__nv_bfloat16>() + q};
    const dim3 grid(static_cast<unsigned>((shape.q_len + kQueryRows - 1) / kQueryRows),
                    static_cast<unsigned>(shape.heads.heads), static_cast<unsigned>(shape.batch));
    const auto scale = static_cast<float>(kLog2E / std::sqrt(shape.heads.head_dim));
    if (shape.heads.head_dim == 64) {
      prefill_kernel<64><<<grid, kWarps * 32, kSharedBytes<64>, stream>>>(shape, operands, scale);
    } else {
      prefill_kernel<128><<<grid, kWarps * 32, kSharedBytes<128>, stream>>>(shape, operands, scale);
    }
    ORRERY_CUDA(cudaGetLastError());
  }

  void compare(const PrefillShape& shape, const Place& place, Comparison& comparison) const {
    const AttentionHeads& heads = shape.heads;
    const std::int64_t head_dim = heads.head_dim, batch = place.row / shape.q_len;
    const std::int64_t kv_head = place.column / (heads.heads / heads.kv_heads);
    AttentionRow row;
    row.query = {Format::kBf16, Data::kRandom, context_.seed};
    row.key = {Format::kBf16, Data::kRandom, context_.seed + 1};
    row.value = {Format::kBf16, Data::kRandom, context_.seed + 2};
    row.query_start = (place.row * heads.heads + place.column) * head_dim;
    row.kv_stride = heads.kv_heads * head_dim;
    row.kv_start = batch * shape.kv_len() * row.kv_stride + kv_head * head_dim;
    row.length = shape.kv_prefix_len + place.row % shape.q_len + 1;
    row.head_dim = heads.head_dim;
    row.scale = 1 / std::sqrt(static_cast<double>(head_dim));
    const std::vector<double> expected = attention(row);
    std::vector<std::uint16_t> got(expected.size());
    ORRERY_CUDA(cudaMemcpy(got.data(), out_.as<std::uint16_t>() + row.query_start, got.size() * 2,
                           cudaMemcpyDeviceToHost));
    for (std::size_t d = 0; d < got.size(); ++d) comparison.add(decode_bf16(got[d]), expected[d]);
  }

  const Context& context_;
  DeviceBuffer query_, key_, value_, out_;
};

std::vector<PrefillShape> shapes_of(Depth depth) {
  if (depth == Depth::kPriority) return priority_prefill_shapes(4e12);
  return prefill_shapes(depth == Depth::kFull ? 4e12 : 1e12);
}

void run(const Context& context, Table& table) {
  const Bench bench(context);
  Failures failures;
  for (const PrefillShape& shape : shapes_of(context.depth)) {
    if (context.out_of_time()) break;
    if (!bench.fits(shape)) continue;
    try {
      bench.check(shape);
      bench.measure(table, shape);
    } catch (const WrongResult& error) {
      failures.add(error);
    }
  }
  failures.raise();
}

void run_sustained(const Context& context, Table& table) {
  const Bench bench(context);
  bench.check(sustained_prefill());
  bench.sustain_kernel(table, sustained_prefill(), kSustainSeconds);
}

std::vector<std::string> shape_columns() {
  return {"system",        "precision", "kv_precision", "batch",    "q_len",
          "kv_prefix_len", "heads",     "kv_heads",     "head_dim", "window"};
}

std::vector<std::string> columns() {
  std::vector<std::string> result = with_timing_columns(shape_columns());
  result.emplace_back("implementation");
  result.emplace_back("flops_per_s");
  return result;
}

std::vector<std::string> sustained_columns() {
  std::vector<std::string> result = shape_columns();
  for (const char* column : {"implementation", "time_s", "latency_us", "flops_per_s",
                             "sm_clock_mhz", "power_w", "temperature_c"}) {
    result.emplace_back(column);
  }
  return result;
}

const Registration registration({
    .number = 15,
    .name = "attention_prefill",
    .what = "causal bf16 flash attention with grouped heads (a plain mma.sync kernel of our own)",
    .quick_s = 8,
    .full_s = 23,
    .columns = columns(),
    .run = run,
});

const Registration sustained({
    .number = 15,
    .name = "sustained_prefill",
    .what = "time series of power and clock under causal attention of 4 x 8192 tokens",
    .columns = sustained_columns(),
    .run = run_sustained,
});

}  // namespace
}  // namespace orrery::measure::attention_prefill
