// SPDX-License-Identifier: Apache-2.0
// Kernel 12: softmax of rows with a chosen number of exponentials per element: when is a row kernel
// bound by memory, when by the reductions, when by the special function unit (16 exponentials per
// cycle and multiprocessor: CUDA C Programming Guide, "Arithmetic Instructions").
#include <cuda_bf16.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "device/random.cuh"
#include "device/timing.cuh"
#include "host/reference.h"
#include "host/sweeps.h"

namespace orrery::measure::softmax_rates {
namespace {

constexpr int kMostThreads = 256;
constexpr int kVector = 8;  ///< bf16 numbers in 16 bytes

__device__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

struct Maximum {
  __device__ static float of(float a, float b) { return fmaxf(a, b); }
};
struct Sum {
  __device__ static float of(float a, float b) { return a + b; }
};

/// Reduces over the block; every thread gets the result. `scratch` holds one number per warp, and
/// may be used again after the next barrier.
template <class Operation>
__device__ float reduced(float value, float* scratch) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = Operation::of(value, __shfl_xor_sync(0xFFFFFFFFu, value, offset));
  }
  const int warps = static_cast<int>(blockDim.x) / 32;
  if (warps == 1) return value;
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  value = scratch[0];
  for (int warp = 1; warp < warps; ++warp) value = Operation::of(value, scratch[warp]);
  return value;
}

__device__ void unpack(const uint4& packed, float* values) {
  const std::uint32_t words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    values[2 * w] = __uint_as_float(words[w] << 16);
    values[2 * w + 1] = __uint_as_float(words[w] & 0xFFFF0000u);
  }
}

__device__ std::uint32_t packed_pair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

__device__ uint4 packed(const float* values) {
  return {packed_pair(values[0], values[1]), packed_pair(values[2], values[3]),
          packed_pair(values[4], values[5]), packed_pair(values[6], values[7])};
}

/// One block per row, which stays in registers: y = 2^((x - max) log2 e), then `exponentials` - 1
/// times y = 2^-y, which contracts and so carries no error on; out = y / sum(y).
template <int kVectors>
__global__ void __launch_bounds__(kMostThreads)
    row_kernel(const uint4* in, uint4* out, int exponentials) {
  __shared__ float maxima[kMostThreads / 32], sums[kMostThreads / 32];
  const std::size_t first = std::size_t{blockIdx.x} * kVectors * blockDim.x + threadIdx.x;
  float values[kVectors][kVector];
  float most = -INFINITY;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    unpack(in[first + std::size_t{static_cast<unsigned>(v)} * blockDim.x], values[v]);
#pragma unroll
    for (int i = 0; i < kVector; ++i) most = fmaxf(most, values[v][i]);
  }
  most = reduced<Maximum>(most, maxima);
  constexpr float kLog2E = 1.4426950408889634f;
  float sum = 0;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
#pragma unroll
    for (int i = 0; i < kVector; ++i) values[v][i] = exp2_fast((values[v][i] - most) * kLog2E);
    for (int e = 1; e < exponentials; ++e) {
#pragma unroll
      for (int i = 0; i < kVector; ++i) values[v][i] = exp2_fast(-values[v][i]);
    }
#pragma unroll
    for (int i = 0; i < kVector; ++i) sum += values[v][i];
  }
  const float scale = 1.0f / reduced<Sum>(sum, sums);
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
#pragma unroll
    for (int i = 0; i < kVector; ++i) values[v][i] *= scale;
    out[first + std::size_t{static_cast<unsigned>(v)} * blockDim.x] = packed(values[v]);
  }
}

/// cols is a power of two from 256 to 16384: a block of at most 256 threads holds 1 to 8 vectors in
/// each.
void enqueue(const RowPoint& point, const uint4* in, uint4* out, cudaStream_t stream) {
  const int threads = std::min(point.cols / kVector, kMostThreads);
  const auto rows = static_cast<unsigned>(point.rows);
  const int ex2 = point.exponentials;
  switch (point.cols / kVector / threads) {
    case 1:
      row_kernel<1><<<rows, threads, 0, stream>>>(in, out, ex2);
      break;
    case 2:
      row_kernel<2><<<rows, threads, 0, stream>>>(in, out, ex2);
      break;
    case 4:
      row_kernel<4><<<rows, threads, 0, stream>>>(in, out, ex2);
      break;
    case 8:
      row_kernel<8><<<rows, threads, 0, stream>>>(in, out, ex2);
      break;
    default:
      throw std::logic_error("softmax: no kernel for " + std::to_string(point.cols) + " columns");
  }
  ORRERY_CUDA(cudaGetLastError());
}

/// The kernel's row in double.
std::vector<double> expected_row(std::vector<double> x, int exponentials) {
  const double most = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double& y : x) {
    y = std::exp(y - most);
    for (int e = 1; e < exponentials; ++e) y = std::exp2(-y);
    sum += y;
  }
  for (double& y : x) y /= sum;
  return x;
}

void check_rows(int cols, int exponentials, std::uint64_t seed) {
  constexpr int kRows = 5;
  const std::size_t count = std::size_t{kRows} * static_cast<std::size_t>(cols);
  const DeviceBuffer in(2 * count), out(2 * count);
  fill(Format::kBf16, in.as(), count, seed);
  ORRERY_CUDA(cudaMemset(out.as(), 0xFF, 2 * count));  // not a number
  enqueue({kRows, cols, exponentials, true}, in.as<const uint4>(), out.as<uint4>(), nullptr);
  std::vector<std::uint16_t> got(count);
  ORRERY_CUDA(cudaMemcpy(got.data(), out.as(), 2 * count, cudaMemcpyDeviceToHost));
  const RandomBuffer input{Format::kBf16, Data::kRandom, seed};
  Comparison comparison;
  for (int row = 0; row < kRows; ++row) {
    std::vector<double> x;
    for (int col = 0; col < cols; ++col) x.push_back(input.at(std::int64_t{row} * cols + col));
    const std::vector<double> expected = expected_row(std::move(x), exponentials);
    for (int col = 0; col < cols; ++col) {
      const auto at = static_cast<std::size_t>(row) * static_cast<std::size_t>(cols) +
                      static_cast<std::size_t>(col);
      comparison.add(decode_bf16(got[at]), expected[static_cast<std::size_t>(col)]);
    }
  }
  // Rounding to bf16 is off by 2^-9 at most, ex2.approx by 2^-22.
  comparison.require(4e-3, "softmax of " + std::to_string(cols) + " columns with " +
                               std::to_string(exponentials) + " exponentials");
}

void time_rows(const Context& context, Table& table, const RowPoint& point, const DeviceBuffer& in,
               const DeviceBuffer& out) {
  const std::int64_t elements = point.rows * point.cols;
  const std::int64_t vectors = elements / kVector;
  if (2 * elements > static_cast<std::int64_t>(in.bytes())) return;
  TimingOptions options;
  if (point.cold) {
    options.copies =
        rotation(context.device, static_cast<std::size_t>(4 * elements), in.bytes() + out.bytes());
  }
  const int copies = options.copies;
  const Launch launch = [&](cudaStream_t stream, int i) {
    const std::int64_t first = i % copies * vectors;
    enqueue(point, in.as<const uint4>() + first, out.as<uint4>() + first, stream);
  };
  const Timing timing = time_graph(context, launch, options);
  const double seconds = 1e-6 * timing.us.median;
  table.add_row(
      with_timing({context.system, point.rows, std::int64_t{point.cols},
                   std::int64_t{point.exponentials}, std::string(point.cold ? "cold" : "warm"),
                   2 * elements, 2 * elements, static_cast<double>(4 * elements) / seconds,
                   static_cast<double>(elements * point.exponentials) / seconds},
                  timing));
}

void run(const Context& context, Table& table) {
  const std::vector<RowPoint> points = row_points(context.depth);
  for (int cols = 256; cols <= 16384; cols *= 2) {
    for (const int exponentials : {1, 2, 64}) check_rows(cols, exponentials, context.seed);
  }
  const std::size_t bytes =
      static_cast<std::size_t>(std::min(2 * kGiB, context.device.memory_bytes / 8));
  const DeviceBuffer in(bytes), out(bytes);
  fill(Format::kBf16, in.as(), bytes / 2, context.seed);
  for (const RowPoint& point : points) {
    if (context.out_of_time()) return;
    time_rows(context, table, point, in, out);
  }
}

const Registration kSoftmax({12, "softmax_exponentials",
                             "row kernel over rows, columns and exponentials per element", 8, 5, 15,
                             with_timing_columns({"system", "rows", "cols", "ex2_per_element",
                                                  "buffers", "read_bytes", "written_bytes",
                                                  "bytes_per_s", "ex2_per_s"}),
                             run});

}  // namespace
}  // namespace orrery::measure::softmax_rates
