// SPDX-License-Identifier: Apache-2.0
// Small models of the mixers whose tokens choose what they see, and of delta attention.
#pragma once

#include "tests/unit/workloads/example_models.h"

namespace orrery {

/// A layer with an indexer and one that shares its choice.
inline LlmConfig small_sparse() {
  LlmConfig model = small_llama(2);
  model.name = "small sparse";
  AttentionConfig& a = model.attention;
  a.kind = AttentionKind::kLatent;
  a.kv_heads = a.heads = 8;
  a.q_lora_rank = 24;
  a.kv_lora_rank = 32;
  a.qk_nope_head_dim = 16;
  a.qk_rope_head_dim = 8;
  a.v_head_dim = 16;
  a.head_dim = 24;
  a.indexer = {.heads = 4, .head_dim = 16, .top_k = 100};
  model.layers[0].mixer = MixerKind::kSparse;
  model.layers[1].mixer = MixerKind::kSharedSparse;
  return model;
}

/// 8 heads over 4 KV heads of 8; 3 blocks of 16 keys a group.
inline LlmConfig small_block_sparse() {
  LlmConfig model = small_llama(2);
  model.name = "small block sparse";
  model.attention.indexer = {.heads = 4, .head_dim = 16, .top_k = 48, .block = 16};
  model.layers[1].mixer = MixerKind::kBlockSparse;
  return model;
}

/// Kimi: 4 heads of 16, decays through 16 columns, a gate of one matrix.
inline LlmConfig small_kimi() {
  LlmConfig model = small_llama(1);
  model.name = "small kimi";
  model.delta_net = {.key_heads = 4,
                     .value_heads = 4,
                     .key_dim = 16,
                     .value_dim = 16,
                     .conv_kernel = 4,
                     .column_decays = true,
                     .decay_rank = 16};
  model.layers[0].mixer = MixerKind::kKimiDelta;
  return model;
}

/// A window alone, all entries of 8 tokens, and 6 of those of 2.
inline LlmConfig small_compressed() {
  LlmConfig model = small_llama(3);
  model.name = "small compressed";
  AttentionConfig& a = model.attention;
  a.kv_heads = 1;
  a.head_dim = 32;
  a.q_lora_rank = 24;
  a.qk_rope_head_dim = 8;
  a.indexer = {.heads = 4, .head_dim = 16, .top_k = 6};
  a.compression = {
      .window = 10, .sparse_ratio = 2, .dense_ratio = 8, .output_groups = 4, .output_rank = 12};
  model.layers[0].mixer = MixerKind::kWindowedKey;
  model.layers[1].mixer = MixerKind::kCompressed;
  model.layers[2].mixer = MixerKind::kCompressedSparse;
  return model;
}

}  // namespace orrery
