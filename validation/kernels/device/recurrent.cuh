// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "device/lanes.cuh"

/// Kernels of recurrent layers for one new token of each sequence, and short convolutions: every
/// element of a state is read once and written in place. Values of 16 bits are bf16.
namespace orrery::measure {

constexpr int kRecurrentThreads = 128;
constexpr int kRecurrentWarps = kRecurrentThreads / 32;

/// Four neighbours of a row.
struct Four {
  float x[4];
};

__device__ inline float bf16_value(std::uint16_t code) {
  return float_of_bits(static_cast<std::uint32_t>(code) << 16);
}
__device__ inline float low_bf16(std::uint32_t word) { return float_of_bits(word << 16); }
__device__ inline float high_bf16(std::uint32_t word) { return float_of_bits(word & 0xFFFF0000u); }

__device__ inline Four load_four(const float* from) {
  const Words4 words = load_words4(from);
  return {{float_of_bits(words.w[0]), float_of_bits(words.w[1]), float_of_bits(words.w[2]),
           float_of_bits(words.w[3])}};
}
__device__ inline Four load_four(const std::uint16_t* from) {
  const Words2 words = load_words2(from);
  return {
      {low_bf16(words.w[0]), high_bf16(words.w[0]), low_bf16(words.w[1]), high_bf16(words.w[1])}};
}
__device__ inline void store_four(float* to, const Four& four) {
  store_words4(to, {{bits_of_float(four.x[0]), bits_of_float(four.x[1]), bits_of_float(four.x[2]),
                     bits_of_float(four.x[3])}});
}
__device__ inline void store_four(std::uint16_t* to, const Four& four) {
  store_words2(to, {{bf16_pair(four.x[0], four.x[1]), bf16_pair(four.x[2], four.x[3])}});
}

__device__ inline float sigmoid(float x) { return 1 / (1 + expf(-x)); }
__device__ inline float softplus(float x) { return x > 20 ? x : log1pf(expf(x)); }
__device__ inline float silu(float x) { return x * sigmoid(x); }

/// The lanes that differ in the bits from `first` to `last` add up, all get the sum.
__device__ inline float lane_sum(float value, int first, int last) {
  for (int distance = first; distance <= last; distance *= 2) value += xor_lane(value, distance);
  return value;
}

constexpr int kDeltaKeys = 128;    ///< columns of a key, rows of a state
constexpr int kDeltaColumns = 32;  ///< columns of values of a block
constexpr int kDeltaResident = 6;  ///< blocks of a multiprocessor at least: 96 KiB on their way
constexpr int kDeltaVectors = kDeltaColumns / 4;
constexpr int kDeltaStep = kRecurrentThreads / kDeltaVectors;  ///< rows that a block reads at once
constexpr int kDeltaRows = kDeltaKeys / kDeltaStep;            ///< rows of a thread

/// State [batch, heads, 128, value_dim]; query and key [batch, key_heads, 128]; value and out
/// [batch, heads, value_dim]; gates [batch, heads]. Each key head serves as many heads in a row.
template <class State>
struct DeltaOperands {
  const std::uint16_t *query = nullptr, *key = nullptr, *value = nullptr;
  const std::uint16_t *decay_gate = nullptr, *step_gate = nullptr;
  State* state = nullptr;
  std::uint16_t* out = nullptr;
  int heads = 0, key_heads = 0, value_dim = 0;
};

/// Factors of a token that all threads of a block share, and what they exchange.
struct DeltaShared {
  float key[kDeltaKeys], query[kDeltaKeys];
  float squares[kRecurrentWarps][3];                  ///< key key, query query, key query
  float sums[kRecurrentWarps][kDeltaVectors][2 * 4];  ///< key S, query S
  __device__ void load(const std::uint16_t* keys, const std::uint16_t* queries);
  __device__ float square(int which) const {
    float sum = 0;
    for (int warp = 0; warp < kRecurrentWarps; ++warp) sum += squares[warp][which];
    return sum;
  }
};

__device__ inline void DeltaShared::load(const std::uint16_t* keys, const std::uint16_t* queries) {
  const int t = static_cast<int>(threadIdx.x);
  const float k = bf16_value(keys[t]), q = bf16_value(queries[t]);
  key[t] = k;
  query[t] = q;
  const float products[3] = {k * k, q * q, k * q};
  for (int i = 0; i < 3; ++i) {
    const float sum = lane_sum(products[i], 1, 16);
    if (t % 32 == 0) squares[t / 32][i] = sum;
  }
  __syncthreads();
}

/// S <- S e^-softplus(a); S <- S + k sigmoid(b) (v - k S); o = q S / sqrt(128), keys and queries of
/// length 1 (Yang et al., arXiv 2412.06464, equation 10). A block has 32 columns of a head's state
/// in registers; o follows from the sums in front of the correction, q S + (q k) times it.
template <class State>
__global__ void __launch_bounds__(kRecurrentThreads, kDeltaResident)
    delta_update_kernel(const DeltaOperands<State> o) {
  __shared__ DeltaShared shared;
  const int t = static_cast<int>(threadIdx.x), vector = t % kDeltaVectors, row = t / kDeltaVectors;
  const int tiles = o.value_dim / kDeltaColumns;
  const std::int64_t at = blockIdx.x / static_cast<unsigned>(tiles);  // sequence and head
  const int column =
      static_cast<int>(blockIdx.x % static_cast<unsigned>(tiles)) * kDeltaColumns + 4 * vector;
  const std::int64_t key_at =
      (at / o.heads * o.key_heads + at % o.heads / (o.heads / o.key_heads)) * kDeltaKeys;
  State* const first = o.state + (at * kDeltaKeys + row) * o.value_dim + column;
  Four state[kDeltaRows];
#pragma unroll
  for (int i = 0; i < kDeltaRows; ++i)
    state[i] = load_four(first + std::int64_t{i} * kDeltaStep * o.value_dim);
  shared.load(o.key + key_at, o.query + key_at);
  const float key_scale = 1 / sqrtf(shared.square(0) + 1e-6f);
  const float query_scale =
      1 / (sqrtf(shared.square(1) + 1e-6f) * sqrtf(static_cast<float>(kDeltaKeys)));
  const float decay = sigmoid(-bf16_value(o.decay_gate[at]));  // e^-softplus(a)
  float sums[8] = {};
#pragma unroll
  for (int i = 0; i < kDeltaRows; ++i) {
    const float k = shared.key[row + kDeltaStep * i] * key_scale;
    const float q = shared.query[row + kDeltaStep * i] * query_scale;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      state[i].x[c] *= decay;
      sums[c] += k * state[i].x[c];
      sums[4 + c] += q * state[i].x[c];
    }
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    sums[i] = lane_sum(sums[i], kDeltaVectors, 16);
    if (t % 32 < kDeltaVectors) shared.sums[t / 32][vector][i] = sums[i];
  }
  __syncthreads();
  const Four value = load_four(o.value + at * o.value_dim + column);
  const float step = sigmoid(bf16_value(o.step_gate[at]));
  const float key_query = shared.square(2) * key_scale * query_scale;
  Four change, out;
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    float by_key = 0, by_query = 0;
    for (int warp = 0; warp < kRecurrentWarps; ++warp) {
      by_key += shared.sums[warp][vector][c];
      by_query += shared.sums[warp][vector][4 + c];
    }
    change.x[c] = step * (value.x[c] - by_key);
    out.x[c] = by_query + key_query * change.x[c];
  }
#pragma unroll
  for (int i = 0; i < kDeltaRows; ++i) {
    const float k = shared.key[row + kDeltaStep * i] * key_scale;
#pragma unroll
    for (int c = 0; c < 4; ++c) state[i].x[c] += k * change.x[c];
    store_four(first + std::int64_t{i} * kDeltaStep * o.value_dim, state[i]);
  }
  if (row == 0) store_four(o.out + at * o.value_dim + column, out);
}

constexpr int kMambaRows = 8;       ///< rows of a head that a warp works on
constexpr int kMambaColumns = 128;  ///< columns of a state that a warp reads at once

/// State [batch, heads, head_dim, 128 parts]; x and out [batch, heads, head_dim]; b and c [batch,
/// groups, 128 parts]; step_gate [batch, heads]. Each group serves as many heads in a row.
template <class State>
struct MambaOperands {
  const std::uint16_t *x = nullptr, *b = nullptr, *c = nullptr, *step_gate = nullptr;
  State* state = nullptr;
  std::uint16_t* out = nullptr;
  int heads = 0, groups = 0, head_dim = 0;
};

/// S <- S e^-d + d x B with d = softplus(gate), y = S C + x: a step of Mamba-2 (arXiv 2405.21060,
/// equation 2, discretised as mamba_ssm's selective_state_update) with A = -1 and D = 1. A warp
/// reads whole rows of a state, 32 rows of a head a block.
template <class State, int kParts>
__global__ void __launch_bounds__(kRecurrentThreads)
    mamba_update_kernel(const MambaOperands<State> o) {
  constexpr int kColumns = kMambaColumns * kParts;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int tiles = o.head_dim / (kMambaRows * kRecurrentWarps);
  const std::int64_t at = blockIdx.x / static_cast<unsigned>(tiles);  // sequence and head
  const int row =
      (static_cast<int>(blockIdx.x % static_cast<unsigned>(tiles)) * kRecurrentWarps + warp) *
      kMambaRows;
  const std::int64_t group = at / o.heads * o.groups + at % o.heads / (o.heads / o.groups);
  State* const first = o.state + (at * o.head_dim + row) * kColumns + 4 * lane;
  Four state[kMambaRows][kParts], b[kParts], c[kParts];
#pragma unroll
  for (int r = 0; r < kMambaRows; ++r)
#pragma unroll
    for (int p = 0; p < kParts; ++p)
      state[r][p] = load_four(first + r * kColumns + p * kMambaColumns);
#pragma unroll
  for (int p = 0; p < kParts; ++p) {
    b[p] = load_four(o.b + group * kColumns + p * kMambaColumns + 4 * lane);
    c[p] = load_four(o.c + group * kColumns + p * kMambaColumns + 4 * lane);
  }
  const float step = softplus(bf16_value(o.step_gate[at])), decay = expf(-step);
  float out[kMambaRows];
#pragma unroll
  for (int r = 0; r < kMambaRows; ++r) {
    const float x = bf16_value(o.x[at * o.head_dim + row + r]);
    float sum = 0;
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        state[r][p].x[i] = decay * state[r][p].x[i] + step * x * b[p].x[i];
        sum += state[r][p].x[i] * c[p].x[i];
      }
      store_four(first + r * kColumns + p * kMambaColumns, state[r][p]);
    }
    out[r] = lane_sum(sum, 1, 16) + x;
  }
  if (lane == 0)
    store_words4(o.out + at * o.head_dim + row,
                 {{bf16_pair(out[0], out[1]), bf16_pair(out[2], out[3]), bf16_pair(out[4], out[5]),
                   bf16_pair(out[6], out[7])}});
}

}  // namespace orrery::measure
