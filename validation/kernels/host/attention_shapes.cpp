// SPDX-License-Identifier: Apache-2.0
#include "host/attention_shapes.h"

#include <algorithm>
#include <numeric>

#include "host/sweeps.h"

namespace orrery::measure {
namespace {

constexpr int kGroup = 16;  // query heads of one warp: the rows of mma.m16n8k16
constexpr int kWarpsOfAnSm = 4;

/// Llama 3 (8B, and 70B and 405B at tensor-parallel sizes), Qwen3 32B, one multi-head and one
/// multi-query layer, and head_dim 64.
const std::vector<AttentionHeads>& head_shapes() {
  static const std::vector<AttentionHeads> shapes = {{32, 8, 128}, {64, 8, 128}, {16, 2, 128},
                                                     {8, 1, 128},  {16, 1, 128}, {32, 32, 128},
                                                     {4, 1, 128},  {32, 8, 64},  {16, 16, 64}};
  return shapes;
}

int ceil_div(int a, int b) { return (a + b - 1) / b; }

/// Powers of two up to 128 Ki tokens, contiguous and paged, of at most so many bytes of cache.
void add_decode_lengths(std::vector<DecodeShape>& shapes, int batch, const AttentionHeads& heads,
                        double most_bytes) {
  for (int length = 64; length <= 131072; length *= 2) {
    for (const int page_size : {0, 64}) {
      const DecodeShape shape{batch, length, heads, page_size};
      if (shape.kv_bytes() <= most_bytes) shapes.push_back(shape);
    }
  }
}

}  // namespace

double PrefillShape::flops() const {
  // Query i sees prefix + i + 1 keys: q prefix + q (q + 1) / 2 in all; 2 products of 2 flops.
  const double q = q_len;
  const double pairs = q * kv_prefix_len + q * (q + 1) / 2;
  return 4.0 * batch * heads.heads * heads.head_dim * pairs;
}

double DecodeShape::kv_bytes() const {
  return 2.0 * 2.0 * batch * heads.kv_heads * heads.head_dim * kv_len;
}

DecodeSplit decode_split(const DecodeShape& shape, int sms, int tile_keys) {
  DecodeSplit split;
  split.head_groups = ceil_div(shape.heads.heads / shape.heads.kv_heads, kGroup);
  const int rows = shape.batch * shape.heads.kv_heads * split.head_groups;
  const int most = std::max(1, shape.kv_len / (2 * tile_keys));
  const int wanted = std::clamp(kWarpsOfAnSm * sms / rows, 1, most);
  const int tiles = ceil_div(ceil_div(shape.kv_len, wanted), tile_keys);
  split.keys_per_split = tiles * tile_keys;
  split.splits = ceil_div(shape.kv_len, split.keys_per_split);
  return split;
}

std::vector<PrefillShape> prefill_shapes_of(const AttentionHeads& heads, double most_flops) {
  std::vector<PrefillShape> shapes;
  for (const int batch : {1, 2, 4, 8, 16, 32}) {
    for (int length = 64; length <= 32768; length *= 2) {
      const PrefillShape whole{batch, length, 0, heads};
      const PrefillShape chunk{batch, std::min(length, 512), length, heads};
      if (whole.flops() <= most_flops) shapes.push_back(whole);
      if (batch <= 4 && chunk.flops() <= most_flops) shapes.push_back(chunk);
    }
    for (const int length : {100, 1500}) shapes.push_back({batch, length, 0, heads});
  }
  return shapes;
}

std::vector<DecodeShape> decode_shapes_of(const AttentionHeads& heads, double most_bytes) {
  std::vector<DecodeShape> shapes;
  for (const int batch : {1, 2, 4, 8, 16, 32, 64, 128, 256}) {
    add_decode_lengths(shapes, batch, heads, most_bytes);
    shapes.push_back({batch, 1000, heads, 0});
  }
  return shapes;
}

std::vector<PrefillShape> prefill_shapes(double most_flops) {
  std::vector<PrefillShape> shapes;
  for (const AttentionHeads& heads : head_shapes()) {
    const std::vector<PrefillShape> some = prefill_shapes_of(heads, most_flops);
    shapes.insert(shapes.end(), some.begin(), some.end());
  }
  shuffle(shapes, 151);
  return shapes;
}

std::vector<DecodeShape> decode_shapes(double most_bytes) {
  std::vector<DecodeShape> shapes;
  for (const AttentionHeads& heads : head_shapes()) {
    const std::vector<DecodeShape> some = decode_shapes_of(heads, most_bytes);
    shapes.insert(shapes.end(), some.begin(), some.end());
  }
  shuffle(shapes, 163);
  return shapes;
}

std::vector<std::int32_t> page_table(int batch, int pages_per_sequence) {
  std::vector<std::int32_t> pages(static_cast<std::size_t>(batch) *
                                  static_cast<std::size_t>(pages_per_sequence));
  std::iota(pages.begin(), pages.end(), 0);
  shuffle(pages, 167);
  return pages;
}

}  // namespace orrery::measure
