// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <cstdint>

/// Kernels over rows of bf16, 8 values (16 bytes) a thread and access. Columns are a multiple of 8
/// (rotary and the block cast: of 128).
namespace orrery::measure {

struct RowOperands {
  const __nv_bfloat16* in = nullptr;
  const __nv_bfloat16* weight = nullptr;  ///< of RMSNorm: one for each column
  const float2* turns = nullptr;          ///< of rotary: cosine and sine, [row][64]
  void* out = nullptr;
  float* scales = nullptr;  ///< of the block cast: [rows][cols / 128]
  int rows = 0, cols = 0;
};

constexpr int kRowThreads = 256;
constexpr int kVector = 8;
constexpr int kBlock = 128;  ///< columns that share a scale; head_dim of rotary
constexpr float kEpsilon = 1e-6f;
constexpr float kLargestE4m3 = 448;
constexpr float kTensorScale = 0.0625f;  ///< of the per-tensor cast: some |x| < 3.5 become < 56

struct Vector {
  float x[kVector];
};

template <int kUnused = 0>
__device__ Vector load_vector(const __nv_bfloat16* from) {
  const uint4 bits = *reinterpret_cast<const uint4*>(from);
  const std::uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
  Vector result;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    result.x[2 * i] = __uint_as_float(words[i] << 16);
    result.x[2 * i + 1] = __uint_as_float(words[i] & 0xFFFF0000u);
  }
  return result;
}

template <int kUnused = 0>
__device__ void store_vector(__nv_bfloat16* to, const Vector& vector) {
  __nv_bfloat162 pairs[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    pairs[i] = __floats2bfloat162_rn(vector.x[2 * i], vector.x[2 * i + 1]);
  }
  uint4 bits;
  memcpy(&bits, pairs, sizeof(bits));
  *reinterpret_cast<uint4*>(to) = bits;
}

template <int kUnused = 0>
__device__ void store_fp8(__nv_fp8_storage_t* to, const Vector& vector, float scale) {
  std::uint32_t words[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    const std::uint32_t code =
        __nv_cvt_float_to_fp8(vector.x[i] * scale, __NV_SATFINITE, __NV_E4M3);
    words[i / 4] |= code << (8 * (i % 4));
  }
  *reinterpret_cast<uint2*>(to) = make_uint2(words[0], words[1]);
}

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
  static constexpr float kNeutral = 0;
};
struct Largest {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
  static constexpr float kNeutral = -3.4e38f;
};

/// The same result in every thread of the block.
template <class Operation>
__device__ float reduce_block(float value, Operation operation) {
  __shared__ float parts[kRowThreads / 32];
  for (int distance = 16; distance > 0; distance /= 2) {
    value = operation(value, __shfl_xor_sync(0xFFFFFFFFu, value, distance));
  }
  __syncthreads();  // the parts of an earlier reduction have been read
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  float result = Operation::kNeutral;
#pragma unroll
  for (int i = 0; i < kRowThreads / 32; ++i) result = operation(result, parts[i]);
  return result;
}

/// A block's row in registers: vector v of thread t starts at column 8 (256 v + t).
template <int kVectors>
struct Row {
  Vector vectors[kVectors];
  bool valid[kVectors];

  __device__ static int column(int v) {
    return kVector * (kRowThreads * v + static_cast<int>(threadIdx.x));
  }
  __device__ void load(const RowOperands& operands, float missing) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      valid[v] = column(v) < operands.cols;
      if (valid[v]) {
        const std::int64_t start = std::int64_t{blockIdx.x} * operands.cols;
        vectors[v] = load_vector(operands.in + start + column(v));
      } else {
#pragma unroll
        for (float& x : vectors[v].x) x = missing;
      }
    }
  }
  __device__ void store(const RowOperands& operands) const {
    auto* const out =
        static_cast<__nv_bfloat16*>(operands.out) + std::int64_t{blockIdx.x} * operands.cols;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      if (valid[v]) store_vector(out + column(v), vectors[v]);
    }
  }
};

template <int kVectors>
__global__ void __launch_bounds__(kRowThreads) softmax_kernel(const RowOperands operands) {
  constexpr float kLog2E = 1.44269504f;
  Row<kVectors> row;
  row.load(operands, Largest::kNeutral);
  float most = Largest::kNeutral;
#pragma unroll
  for (const Vector& vector : row.vectors) {
#pragma unroll
    for (const float x : vector.x) most = fmaxf(most, x);
  }
  most = reduce_block(most, Largest{});
  float sum = 0;
#pragma unroll
  for (Vector& vector : row.vectors) {
#pragma unroll
    for (float& x : vector.x) {
      x = exp2f((x - most) * kLog2E);
      sum += x;
    }
  }
  const float scale = 1 / reduce_block(sum, Sum{});
#pragma unroll
  for (Vector& vector : row.vectors) {
#pragma unroll
    for (float& x : vector.x) x *= scale;
  }
  row.store(operands);
}

template <int kVectors>
__global__ void __launch_bounds__(kRowThreads) rms_norm_kernel(const RowOperands operands) {
  Row<kVectors> row;
  row.load(operands, 0);
  float squares = 0;
#pragma unroll
  for (const Vector& vector : row.vectors) {
#pragma unroll
    for (const float x : vector.x) squares += x * x;
  }
  const float mean = reduce_block(squares, Sum{}) / static_cast<float>(operands.cols);
  const float scale = rsqrtf(mean + kEpsilon);
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    if (!row.valid[v]) continue;
    const Vector weight = load_vector(operands.weight + row.column(v));
#pragma unroll
    for (int i = 0; i < kVector; ++i) row.vectors[v].x[i] *= scale * weight.x[i];
  }
  row.store(operands);
}

/// Vector of this thread in a matrix of `cols` columns; false past the end.
struct Place2d {
  std::int64_t row;
  int column;
};
template <int kUnused = 0>
__device__ bool place_of_thread(int rows, int cols, Place2d& place) {
  const std::int64_t index = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int vectors = cols / kVector;
  place.row = index / vectors;
  place.column = static_cast<int>(index % vectors) * kVector;
  return place.row < rows;
}

/// in: [rows][gate: cols, up: cols].
template <int kUnused = 0>
__global__ void __launch_bounds__(kRowThreads) swiglu_kernel(const RowOperands operands) {
  Place2d place;
  if (!place_of_thread(operands.rows, operands.cols, place)) return;
  const __nv_bfloat16* const gates = operands.in + place.row * 2 * operands.cols + place.column;
  Vector gate = load_vector(gates);
  const Vector up = load_vector(gates + operands.cols);
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    gate.x[i] = gate.x[i] / (1 + __expf(-gate.x[i])) * up.x[i];
  }
  store_vector(static_cast<__nv_bfloat16*>(operands.out) + place.row * operands.cols + place.column,
               gate);
}

/// Heads of 128 columns; column i < 64 of a head is paired with i + 64; the row is the position.
template <int kUnused = 0>
__global__ void __launch_bounds__(kRowThreads) rotary_kernel(const RowOperands operands) {
  Place2d place;
  if (!place_of_thread(operands.rows, operands.cols / 2, place)) return;
  const int pair = place.column % (kBlock / 2);
  const std::int64_t first =
      place.row * operands.cols + place.column / (kBlock / 2) * kBlock + pair;
  Vector low = load_vector(operands.in + first);
  Vector high = load_vector(operands.in + first + kBlock / 2);
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    const float2 turn = operands.turns[place.row * (kBlock / 2) + pair + i];
    const float x = low.x[i], y = high.x[i];
    low.x[i] = x * turn.x - y * turn.y;
    high.x[i] = y * turn.x + x * turn.y;
  }
  auto* const out = static_cast<__nv_bfloat16*>(operands.out);
  store_vector(out + first, low);
  store_vector(out + first + kBlock / 2, high);
}

/// bf16 to fp8 with one scale for all.
template <int kUnused = 0>
__global__ void __launch_bounds__(kRowThreads) cast_tensor_kernel(const RowOperands operands) {
  Place2d place;
  if (!place_of_thread(operands.rows, operands.cols, place)) return;
  const std::int64_t at = place.row * operands.cols + place.column;
  store_fp8(static_cast<__nv_fp8_storage_t*>(operands.out) + at, load_vector(operands.in + at),
            1 / kTensorScale);
}

/// bf16 to fp8 with a scale for every 128 columns: 16 threads find the largest of theirs. Blocks of
/// threads hold whole groups of 16, as rows have a multiple of 128 columns.
template <int kUnused = 0>
__global__ void __launch_bounds__(kRowThreads) cast_block_kernel(const RowOperands operands) {
  Place2d place;
  const bool valid = place_of_thread(operands.rows, operands.cols, place);
  const std::int64_t at = place.row * operands.cols + place.column;
  Vector vector{};
  if (valid) vector = load_vector(operands.in + at);
  float most = 0;
#pragma unroll
  for (const float x : vector.x) most = fmaxf(most, fabsf(x));
#pragma unroll
  for (int distance = 8; distance > 0; distance /= 2) {
    most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFFu, most, distance));
  }
  if (!valid) return;
  most = fmaxf(most, 1e-12f);  // a block of zeros has no scale of its own
  store_fp8(static_cast<__nv_fp8_storage_t*>(operands.out) + at, vector, kLargestE4m3 / most);
  if (place.column % kBlock == 0) operands.scales[at / kBlock] = most / kLargestE4m3;
}

/// turns[row][pair], in double: the angle of a late position has many turns to take off.
template <int kUnused = 0>
__global__ void turns_kernel(float2* turns, int rows) {
  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int row = index / (kBlock / 2), pair = index % (kBlock / 2);
  if (row >= rows) return;
  const double angle = row * pow(10000.0, -2.0 * pair / kBlock);
  turns[index] = make_float2(static_cast<float>(cos(angle)), static_cast<float>(sin(angle)));
}

}  // namespace orrery::measure
