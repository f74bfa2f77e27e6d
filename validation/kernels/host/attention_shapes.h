// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace orrery::measure {

/// Heads of one GPU. Layouts: queries and results [batch, length, heads, head_dim], keys and values
/// [batch, length, kv_heads, head_dim].
struct AttentionHeads {
  int heads = 0, kv_heads = 0, head_dim = 0;
};

/// Causal attention of q_len new tokens behind kv_prefix_len known ones.
struct PrefillShape {
  int batch = 0, q_len = 0, kv_prefix_len = 0;
  AttentionHeads heads;

  int kv_len() const { return kv_prefix_len + q_len; }
  /// FLOPs of both products, over the keys that the mask leaves.
  double flops() const;
};

/// One new token for each sequence over kv_len keys.
struct DecodeShape {
  int batch = 0, kv_len = 0;
  AttentionHeads heads;
  int page_size = 0;  ///< tokens of a page of the KV cache; 0: contiguous

  /// Keys and values, read once.
  double kv_bytes() const;
};

/// How a decode is cut: every split of a sequence's keys is worked on by one warp for up to 16
/// query heads that share a KV head.
struct DecodeSplit {
  int head_groups = 1;  ///< groups of up to 16 query heads for each KV head
  int splits = 1;
  int keys_per_split = 0;  ///< a multiple of the tile of keys
};
/// As many splits as give every multiprocessor its four warps, none shorter than two tiles.
DecodeSplit decode_split(const DecodeShape& shape, int sms, int tile_keys);

/// Batches and lengths of one layer: powers of two of at most `most_flops`, whole and behind known
/// tokens, and two lengths between.
std::vector<PrefillShape> prefill_shapes_of(const AttentionHeads& heads, double most_flops);
/// Batches and lengths of one layer: powers of two of at most `most_bytes` of cache, contiguous and
/// paged, and one length between.
std::vector<DecodeShape> decode_shapes_of(const AttentionHeads& heads, double most_bytes);

/// Shapes of layers of several models, in an order that is random but always the same.
std::vector<PrefillShape> prefill_shapes(double most_flops);
std::vector<DecodeShape> decode_shapes(double most_bytes);

/// A page table [batch][pages of a sequence] over the pool's pages in an order that is random but
/// always the same, as after long service.
std::vector<std::int32_t> page_table(int batch, int pages_per_sequence);

}  // namespace orrery::measure
