// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "device/flash.cuh"
#include "host/attention_shapes.h"

/// Decode attention with split keys: a plain kernel of our own and the kernel that combines its
/// splits, as `operators/16_attention_decode.cu` times them.
namespace orrery::measure::attention_decode {

constexpr int kWarps = 4;
constexpr int kKeyRows = 32;
constexpr int kRows = 16;  // query heads of a warp
constexpr double kLog2E = 1.4426950408889634;

/// Pointers of one launch. Keys and values: [batch, kv_len, kv_heads, head_dim], or, paged,
/// [page, page_size, kv_heads, head_dim] with a table [batch][pages_per_sequence].
struct Operands {
  const __nv_bfloat16 *query, *key, *value;
  __nv_bfloat16* out;
  const std::int32_t* pages;
  int pages_per_sequence;
  float* partial;  ///< [batch][heads][splits][head_dim + 2]: weighted sum, largest score, weights
};

template <int kHeadDim>
constexpr int kWarpBytes = (kRows + 4 * kKeyRows) * kHeadDim * 2;

/// Where a warp works.
struct Work {
  std::int64_t batch;
  int kv_head, first_head, heads;  ///< its query heads
  int split, first_key, end_key;
};

template <int kHeadDim>
__device__ void load_queries(std::uint32_t tile, const DecodeShape& shape, const Operands& operands,
                             const Work& work) {
  constexpr int kRowChunks = kChunks<kHeadDim>;
  const __nv_bfloat16* const source =
      operands.query + (work.batch * shape.heads.heads + work.first_head) * kHeadDim;
  for (int i = static_cast<int>(threadIdx.x) % 32; i < kRows * kRowChunks; i += 32) {
    const int row = i / kRowChunks, chunk = i % kRowChunks;
    const bool valid = row < work.heads;
    copy_async(tile + chunk_offset(row, chunk, kRowChunks),
               valid ? source + row * kHeadDim + chunk * 8 : source, valid);
  }
}

/// Keys and values of one tile; those past the split become zeros.
template <int kHeadDim>
__device__ void load_keys(std::uint32_t slot, const DecodeShape& shape, const Operands& operands,
                          const Work& work, int first_key) {
  constexpr int kRowChunks = kChunks<kHeadDim>;
  constexpr std::uint32_t kTileBytes = kKeyRows * kHeadDim * 2;
  const std::int64_t stride = std::int64_t{shape.heads.kv_heads} * kHeadDim;
  for (int i = static_cast<int>(threadIdx.x) % 32; i < kKeyRows * kRowChunks; i += 32) {
    const int row = i / kRowChunks, chunk = i % kRowChunks;
    const bool valid = first_key + row < work.end_key;
    const int key = valid ? first_key + row : work.first_key;
    std::int64_t token = work.batch * shape.kv_len + key;
    if (shape.page_size > 0) {
      const std::int32_t page =
          operands.pages[work.batch * operands.pages_per_sequence + key / shape.page_size];
      token = std::int64_t{page} * shape.page_size + key % shape.page_size;
    }
    const std::int64_t at = token * stride + work.kv_head * kHeadDim + chunk * 8;
    const std::uint32_t to = slot + chunk_offset(row, chunk, kRowChunks);
    copy_async(to, operands.key + at, valid);
    copy_async(to + kTileBytes, operands.value + at, valid);
  }
  copy_async_commit();
}

template <int kHeadDim>
__device__ void store_partial(const FlashWarp<kHeadDim, kKeyRows>& warp, const DecodeShape& shape,
                              const Work& work, int splits, float* partial) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float weights = warp.total(half);
    const int row = lane / 4 + 8 * half;
    if (row >= work.heads) continue;
    const std::int64_t head = work.batch * shape.heads.heads + work.first_head + row;
    float* const to = partial + (head * splits + work.split) * (kHeadDim + 2);
#pragma unroll
    for (int n = 0; n < kHeadDim / 8; ++n) {
      to[8 * n + 2 * (lane % 4)] = warp.out[n][2 * half];
      to[8 * n + 2 * (lane % 4) + 1] = warp.out[n][2 * half + 1];
    }
    if (lane % 4 == 0) {
      to[kHeadDim] = warp.largest[half];
      to[kHeadDim + 1] = weights;
    }
  }
}

/// Every warp takes one split for up to 16 query heads of one KV head; the next tile of keys is on
/// its way while one is worked on. (Flash-decoding: Dao et al., PyTorch blog, October 2023.)
template <int kHeadDim>
__global__ void __launch_bounds__(kWarps * 32, 1)
    decode_kernel(const DecodeShape shape, const DecodeSplit split, const Operands operands,
                  float scale_log2) {
  extern __shared__ __align__(128) std::uint8_t shared[];
  constexpr std::uint32_t kTileBytes = kKeyRows * kHeadDim * 2;
  const int warp_index = static_cast<int>(threadIdx.x) / 32;
  const auto queries = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared)) +
                       static_cast<std::uint32_t>(warp_index * kWarpBytes<kHeadDim>);
  const std::uint32_t tiles = queries + kRows * kHeadDim * 2;
  const int group = shape.heads.heads / shape.heads.kv_heads;
  Work work{};
  work.split = static_cast<int>(blockIdx.x) * kWarps + warp_index;
  if (work.split >= split.splits) return;  // no barrier of the block follows
  work.batch = blockIdx.z;
  work.kv_head = static_cast<int>(blockIdx.y) / split.head_groups;
  const int in_group = static_cast<int>(blockIdx.y) % split.head_groups * kRows;
  work.first_head = work.kv_head * group + in_group;
  work.heads = min(kRows, group - in_group);
  work.first_key = work.split * split.keys_per_split;
  work.end_key = min(shape.kv_len, work.first_key + split.keys_per_split);

  load_queries<kHeadDim>(queries, shape, operands, work);
  load_keys<kHeadDim>(tiles, shape, operands, work, work.first_key);
  FlashWarp<kHeadDim, kKeyRows> warp;
  const Mask mask{work.end_key, 0, false};
  const int count = (work.end_key - work.first_key + kKeyRows - 1) / kKeyRows;
  for (int tile = 0; tile < count; ++tile) {
    copy_async_wait<0>();
    __syncwarp();
    if (tile == 0) warp.load_query(queries, 0);
    const int first_key = work.first_key + tile * kKeyRows;
    if (tile + 1 < count) {
      load_keys<kHeadDim>(tiles + (tile + 1) % 2 * 2 * kTileBytes, shape, operands, work,
                          first_key + kKeyRows);
    }
    const std::uint32_t slot = tiles + tile % 2 * 2 * kTileBytes;
    warp.step(slot, slot + kTileBytes, first_key, mask, scale_log2);
  }
  store_partial<kHeadDim>(warp, shape, work, split.splits, operands.partial);
}

/// out = sum of the splits' sums, each scaled to the largest score of all, over their weights.
template <int kHeadDim>
__global__ void __launch_bounds__(kHeadDim)
    combine_kernel(const float* partial, __nv_bfloat16* out, int splits) {
  const int d = static_cast<int>(threadIdx.x);
  const float* const first = partial + std::int64_t{blockIdx.x} * splits * (kHeadDim + 2);
  float largest = -INFINITY;
  for (int split = 0; split < splits; ++split) {
    largest = fmaxf(largest, first[split * (kHeadDim + 2) + kHeadDim]);
  }
  float sum = 0, weights = 0;
  for (int split = 0; split < splits; ++split) {
    const float* const part = first + split * (kHeadDim + 2);
    const float scale = exp2f(part[kHeadDim] - largest);
    sum += scale * part[d];
    weights += scale * part[kHeadDim + 1];
  }
  out[std::int64_t{blockIdx.x} * kHeadDim + d] = __float2bfloat16_rn(sum / weights);
}

/// One shape with its split and page table.
struct Plan {
  DecodeShape shape;
  DecodeSplit split;
  int pages_per_sequence = 0;
  std::vector<std::int32_t> pages;

  Plan(const DecodeShape& wanted, int sms)
      : shape(wanted), split(decode_split(wanted, sms, kKeyRows)) {
    if (shape.page_size == 0) return;
    pages_per_sequence = (shape.kv_len + shape.page_size - 1) / shape.page_size;
    pages = page_table(shape.batch, pages_per_sequence);
  }

  std::size_t cache_elements() const {
    const int length = shape.page_size == 0 ? shape.kv_len : pages_per_sequence * shape.page_size;
    return static_cast<std::size_t>(shape.batch) * static_cast<std::size_t>(length) *
           static_cast<std::size_t>(shape.heads.kv_heads * shape.heads.head_dim);
  }
  std::size_t query_elements() const {
    return static_cast<std::size_t>(shape.batch) *
           static_cast<std::size_t>(shape.heads.heads * shape.heads.head_dim);
  }
  std::size_t partial_bytes() const {
    return static_cast<std::size_t>(shape.batch * shape.heads.heads) *
           static_cast<std::size_t>(split.splits) *
           static_cast<std::size_t>(shape.heads.head_dim + 2) * sizeof(float);
  }
  std::string label() const {
    return "attention decode batch " + std::to_string(shape.batch) + " kv_len " +
           std::to_string(shape.kv_len) + " heads " + std::to_string(shape.heads.heads) + "/" +
           std::to_string(shape.heads.kv_heads) + "/" + std::to_string(shape.heads.head_dim) +
           " page " + std::to_string(shape.page_size);
  }
};

}  // namespace orrery::measure::attention_decode
