// SPDX-License-Identifier: Apache-2.0
// DeepSeek sparse attention (DeepSeek-V3.2-Exp's report, section 2; inference/model.py, Indexer):
// an indexer with heads of its own, from the latents of queries, scores all earlier tokens in fp8;
// latent attention sees the best of them alone, absorbed for prompts and new tokens alike (vLLM,
// v1/attention/backends/mla/flashmla_sparse.py). Every tensor parallel rank has the whole indexer.
// Layers of GLM-5.2 that share the selection of the layer before have no indexer and no keys of
// one. Training: sparse_training.h.
#include <algorithm>
#include <cmath>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/attention/latent_attention.h"
#include "workloads/layers/sparse/indexer_kernels.h"
#include "workloads/layers/sparse/sparse_training.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// Prompts whose tokens all attend to all that they see: engines run them as latent attention does,
/// with keys and values expanded (SGLang, nsa_backend.py: MHA_ONE_SHOT).
bool chooses_nothing(const AttentionPart& part, std::int64_t top_k) {
  std::int64_t longest = part.context;
  for (const Prompts& prompts : part.prompts) longest = std::max(longest, prompts.context);
  return part.phase != Phase::kDecode && longest <= top_k;
}

const KernelSwitch kChoicesAsContexts{
    "choices_as_contexts", false,
    "attend to the tokens that a new token has chosen by the kernels of latent attention, as to a "
    "short context (SGLang: FlashAttention 3, trtllm-gen); off: by FlashMLA's sparse kernels, "
    "which work on all places of a choice (vLLM)"};

const KernelSwitch kMasksShortPrompts{
    "masks_short_prompts", true,
    "while that takes fewer FLOPs, attend to all that the tokens of a prompt see, and mask what "
    "they have not chosen (DeepSeek-V3.2's report, section 2.1: masked MHA mode)"};

/// Latent attention with keys and values expanded to all keys, against that absorbed to a choice.
bool masks(const LayerTask& task, const AttentionPart& part, const SeenKeys& seen) {
  const AttentionConfig& a = task.model.attention;
  const double all = seen.pairs * real(a.qk_nope_head_dim + a.qk_rope_head_dim + a.v_head_dim);
  const double chosen =
      real(seen.tokens * a.indexer.top_k) * real(2 * a.kv_lora_rank + a.qk_rope_head_dim);
  return part.phase != Phase::kDecode && task.work.kernels.on(kMasksShortPrompts) && all < chosen;
}

/// A cache of 8 bits goes to FlashMLA's kernel where tensor cores do not scale blocks (SGLang,
/// nsa_backend.py: flashmla_kv on Hopper).
bool attends_as_to_contexts(const RankWork& work, const AttentionPart& part) {
  const bool wide = element_bytes(work.formats.kv_precision) >= 2;
  return part.phase == Phase::kDecode && work.kernels.on(kChoicesAsContexts) &&
         (wide || work.formats.mx_products);
}

/// New tokens that see no more than they choose.
AttentionPart chosen_context(AttentionPart part, std::int64_t top_k) {
  part.context = std::min(part.context, top_k);
  for (std::int64_t& context : part.contexts) context = std::min(context, top_k);
  return part;
}

/// Kernels over prompts read 16 bits: a narrow cache is widened before (SGLang, nsa_backend.py:
/// dequantize_k_cache_paged; vLLM, flashmla_sparse.py: cp_gather_and_upconvert_fp8_kv_cache).
void widen_cache(StepList& steps, const SeenKeys& seen, Precision precision, ChosenHeads& heads) {
  const double wide = activation_bytes(precision);
  if (heads.cache_bytes >= wide) return;
  steps.then(elementwise("cache widening", std::llround(seen.entries), heads.qk_dim,
                         {heads.cache_bytes, wide, 1}));
  heads.cache_bytes = wide;
}

class SparseAttention final : public LatentAttention {
 public:
  /// @param chooses has an indexer
  explicit SparseAttention(bool chooses) : chooses_(chooses) {}

  PartWeights weights(const LayerTask& task) const override {
    PartWeights all = LatentAttention::weights(task);
    if (!chooses_) return all;
    for (Linear& matrix : index_linears(task)) all.matrices.push_back(std::move(matrix));
    all.whole_vectors += 2 * task.model.attention.indexer.head_dim;  // a LayerNorm of keys
    return all;
  }

  SequenceCache cache(const LlmConfig& model, const LayerConfig& layer, int tp) const override {
    SequenceCache cache = LatentAttention::cache(model, layer, tp);
    if (chooses_) cache.index_elements = model.attention.indexer.head_dim;
    return cache;
  }

  std::vector<KeyTerm> key_terms(const LlmConfig& model, const LayerConfig& layer) const override {
    const IndexerConfig& i = model.attention.indexer;
    std::vector<KeyTerm> terms = LatentAttention::key_terms(model, layer);
    for (KeyTerm& term : terms) term.most = i.top_k;
    if (chooses_) terms.push_back({real(i.heads * i.head_dim), 0});
    return terms;
  }

  void part_forward(StepList& steps, const LayerTask& task,
                    const AttentionPart& part) const override {
    const AttentionConfig& a = task.model.attention;
    const RankWork& w = task.work;
    if (w.trains()) {
      sparse_training_forward(steps, task, chooses_);
      return;
    }
    if (chooses_nothing(part, a.indexer.top_k)) {
      LatentAttention::part_forward(steps, task, part);
      return;
    }
    const SeenKeys seen = seen_keys(part, 1, a.indexer.top_k);
    if (chooses_) {
      steps.then(index_scores(seen, a.indexer, a.indexer.heads, 1, w.formats.index_precision,
                              element_bytes(w.formats.index_precision)));
      steps.then(index_selection(seen, a.indexer, 1));
    }
    if (masks(task, part, seen)) {
      LatentAttention::part_forward(steps, task, part);
      return;
    }
    if (attends_as_to_contexts(w, part)) {
      LatentAttention::part_forward(steps, task, chosen_context(part, a.indexer.top_k));
      return;
    }
    absorb_queries(steps, task, seen.tokens);
    const Precision precision = unquantised(w.formats.precision);
    ChosenHeads heads{.groups = 1,
                      .heads = core_shape(task).query_heads,
                      .qk_dim = a.kv_lora_rank + a.qk_rope_head_dim,
                      .v_dim = a.kv_lora_rank,
                      .latent = true,
                      .cache_bytes = element_bytes(w.formats.kv_precision),
                      .places = a.indexer.top_k};
    if (part.phase != Phase::kDecode) widen_cache(steps, seen, precision, heads);
    steps.then(chosen_attention(seen, heads, precision));
    expand_values(steps, task, seen.tokens);
  }

 protected:
  void beside_queries(StepList& steps, const LayerTask& task) const override {
    if (!chooses_) return;
    const RankWork& w = task.work;
    if (w.trains()) {
      indexer_training_forward(steps, task);
      return;
    }
    const IndexerConfig& i = task.model.attention.indexer;
    const double bytes = activation_bytes(w.formats.precision);
    const std::int64_t tokens = w.tokens(), columns = (i.heads + 1) * i.head_dim;
    for (const Linear& linear : index_linears(task)) local_forward(steps, w, linear, tokens);
    steps.then(stream("index key norm", KernelClass::kNormalization, tokens, i.head_dim,
                      {bytes, bytes, vector_cost::kLayerNorm}));
    steps.then(rotate("index rotary", w.formats.precision, tokens,
                      (i.heads + 1) * task.model.attention.qk_rope_head_dim));
    // Queries and keys in the format of the indexer; keys go to its cache.
    steps.then(elementwise("index cache write", tokens, columns,
                           {bytes, element_bytes(w.formats.index_precision), 2}));
  }

  bool absorbs(const LayerTask& task) const override { return task.work.trains(); }
  void heads_backward(StepList& steps, const LayerTask& task) const override {
    sparse_training_backward(steps, task, chooses_);
  }
  void beside_latents_backward(StepList& steps, const LayerTask& task) const override {
    if (chooses_) indexer_training_backward(steps, task);
  }

 private:
  bool chooses_;
};

const SparseAttention sparse_attention(true);
const AddedMixer added_sparse_attention(MixerKind::kSparse, sparse_attention);
const SparseAttention shared_sparse_attention(false);
const AddedMixer added_shared_sparse_attention(MixerKind::kSharedSparse, shared_sparse_attention);

}  // namespace

}  // namespace orrery
