// SPDX-License-Identifier: Apache-2.0
// MiniMax sparse attention (arXiv 2606.13392), as MiniMax-M3 has it: beside queries, keys and
// values the first product gives an index query for each group of heads and one index key; the
// largest score of each block of keys says which blocks a token's heads of a group attend to.
// Kernels are those of MiniMax-AI/MSA: prompts gather the queries that chose a block of keys, so
// that rows of blocks are full; scores have neither ReLU nor weights. Index keys lie in the cache
// in its format. Training is not modelled.
#include <stdexcept>

#include "workloads/llm/grouped_attention.h"
#include "workloads/llm/indexer_kernels.h"
#include "workloads/llm/kernels.h"
#include "workloads/llm/layer_parts.h"
#include "workloads/llm/real.h"

namespace orrery {
namespace {

class BlockSparseAttention final : public GroupedAttention {
 public:
  PartParameters parameters(const LlmConfig& model, const LayerConfig& layer,
                            int tp) const override;
  SequenceCache cache(const LlmConfig& model, const LayerConfig& layer, int tp) const override;
  std::vector<KeyTerm> key_terms(const LlmConfig& model, const LayerConfig& layer) const override;
  bool trains() const override { return false; }
  void backward(StepList& /*steps*/, const LayerTask& /*task*/) const override {
    throw std::logic_error("training of block-sparse attention was not refused");
  }
  void part_forward(StepList& steps, const LayerTask& task,
                    const AttentionPart& part) const override;
};

/// Heads of index queries of a rank lie with the KV heads of their groups; the one key is whole.
PartParameters BlockSparseAttention::parameters(const LlmConfig& model, const LayerConfig& layer,
                                                int tp) const {
  const AttentionConfig& a = model.attention_of(layer);
  PartParameters p = GroupedAttention::parameters(model, layer, tp);
  p.split += model.hidden * local_kv_heads(a, tp) * a.indexer.head_dim;
  p.whole += model.hidden * a.indexer.head_dim;
  p.whole_vectors += 2 * a.indexer.head_dim;  // norms of index queries and keys
  return p;
}

SequenceCache BlockSparseAttention::cache(const LlmConfig& model, const LayerConfig& layer,
                                          int tp) const {
  SequenceCache cache = GroupedAttention::cache(model, layer, tp);
  cache.token_elements += model.attention.indexer.head_dim;
  return cache;
}

std::vector<KeyTerm> BlockSparseAttention::key_terms(const LlmConfig& model,
                                                     const LayerConfig& layer) const {
  const IndexerConfig& i = model.attention.indexer;
  std::vector<KeyTerm> terms = GroupedAttention::key_terms(model, layer);
  for (KeyTerm& term : terms) term.most = i.top_k;
  terms.push_back({real(i.heads * i.head_dim), 0});
  return terms;
}

void BlockSparseAttention::part_forward(StepList& steps, const LayerTask& task,
                                        const AttentionPart& part) const {
  const AttentionConfig& a = task.model.attention;
  const LayerWork& w = task.work;
  const CoreShape shape = core_shape(task);
  const Precision precision = unquantised(w.precision);
  const SeenKeys seen = seen_keys(part, 1, a.indexer.top_k);
  steps.then(index_scores(seen, a.indexer, shape.kv_heads, shape.kv_heads, precision,
                          element_bytes(w.kv_precision)));
  steps.then(index_selection(seen, a.indexer, shape.kv_heads));
  steps.then(chosen_attention(seen,
                              {.groups = shape.kv_heads,
                               .heads = shape.query_heads / shape.kv_heads,
                               .qk_dim = shape.qk_dim,
                               .v_dim = shape.v_dim,
                               .gathers = part.phase != Phase::kDecode,
                               .cache_bytes = element_bytes(w.kv_precision)},
                              precision));
}

}  // namespace

const Mixer& block_sparse_attention() {
  static const BlockSparseAttention mixer;
  return mixer;
}

}  // namespace orrery
