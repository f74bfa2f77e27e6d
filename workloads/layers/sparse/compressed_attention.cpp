// SPDX-License-Identifier: Apache-2.0
// Attention of DeepSeek-V4 (its report, section 2; inference/model.py: Attention, Compressor,
// Indexer). One key of 512 columns, which is the value too, serves all heads; a token sees the
// latest 128 keys as they are and, by the kind of its layer, nothing else, all entries that a
// compressor makes of 128 tokens each, or those of 4 tokens that an indexer chooses. What heads
// give goes through low-rank matrices by groups, then through one that is split by rows. Every
// tensor parallel rank has the key's projection, compressors and the indexer whole.
#include "workloads/layers/sparse/compressed_attention.h"

#include <algorithm>

#include "workloads/base/real.h"
#include "workloads/base/require.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/layers/parts/mixer.h"

namespace orrery {
namespace {

class CompressedAttention final : public Mixer {
 public:
  explicit CompressedAttention(Compressed kind) : kind_(kind) {}

  std::string name() const override { return "attention"; }
  PartWeights weights(const LayerTask& task) const override {
    const AttentionConfig& a = task.attention();
    PartWeights all{compressed_linears(task)};
    all.split_vectors = a.heads / task.work.split.tp;  // a sink a head
    all.whole_vectors = a.q_lora_rank + a.head_dim;
    for (const Compressor& compressor : compressors(a)) all.whole_vectors += compressor.vectors();
    return all;
  }

  SequenceCache cache(const LlmConfig& model, const LayerConfig& layer, int /*tp*/) const override {
    constexpr double kWindowBytes = 2, kPendingBytes = 4;
    const AttentionConfig& a = model.attention_of(layer);
    SequenceCache cache;
    cache.state_bytes = real(a.compression.window * a.head_dim) * kWindowBytes;
    for (const Compressor& compressor : compressors(a))
      cache.state_bytes += real(compressor.pending()) * kPendingBytes;
    if (kind_ == Compressed::kNothing) return cache;
    cache.token_elements = a.head_dim / ratio(a);
    if (chooses()) cache.index_elements = a.indexer.head_dim / ratio(a);
    return cache;
  }

  std::vector<KeyTerm> key_terms(const LlmConfig& model, const LayerConfig& layer) const override {
    const AttentionConfig& a = model.attention_of(layer);
    const double key = real(2 * a.heads * a.head_dim);
    std::vector<KeyTerm> terms = {{key, a.compression.window}};
    if (kind_ == Compressed::kNothing) return terms;
    const double entry = real(ratio(a));
    terms.push_back({key / entry, chooses() ? a.indexer.top_k * ratio(a) : 0});
    if (chooses()) terms.push_back({real(a.indexer.heads * a.indexer.head_dim) / entry, 0});
    return terms;
  }

  void require_split(const LlmConfig& model, const LayerConfig& /*layer*/, int tp) const override {
    require_divides(model.attention.heads, tp, "tp", "attention heads");
    require_divides(model.attention.compression.output_groups, tp, "tp", "groups of the output");
  }

  std::vector<LayerOp> ops(const LayerTask& task) const override {
    if (task.work.trains()) return compressed_training_ops(task);
    const Linear values = group_values(task);
    const std::int64_t tokens = task.work.tokens(), groups = values.parts.front().count;
    return {{[this](StepList& steps, const LayerTask& of) { project(steps, of); }},
            {parts_forward()},
            {kernels({inverse_rotary(task),
                      gemm(values.name, values.precision,
                           {tokens, values.out / groups, values.in, groups}, values.weights)})},
            row_op(row_output(task))};
  }

  void part_forward(StepList& steps, const LayerTask& task,
                    const AttentionPart& part) const override {
    const AttentionConfig& a = task.model.attention;
    const RankWork& w = task.work;
    const SeenKeys keys = compressed_keys(a, part, kind_);
    if (chooses()) {
      SeenKeys entries = seen_keys(part, ratio(a), a.indexer.top_k);
      entries.paged = true;
      steps.then(index_scores(entries, a.indexer, a.indexer.heads, 1, w.formats.index_precision,
                              element_bytes(w.formats.index_precision)));
      steps.then(index_selection(entries, a.indexer, 1));
    }
    steps.then(chosen_attention(keys,
                                {.groups = 1,
                                 .heads = a.heads / w.split.tp,
                                 .qk_dim = a.head_dim,
                                 .v_dim = a.head_dim,
                                 .latent = true,
                                 .cache_bytes = element_bytes(w.formats.kv_precision),
                                 .places = compressed_places(a, part, kind_)},
                                unquantised(w.formats.precision)));
  }

 private:
  bool chooses() const { return kind_ == Compressed::kChosen; }
  std::int64_t ratio(const AttentionConfig& a) const { return entry_ratio(a, kind_); }
  std::vector<Compressor> compressors(const AttentionConfig& a) const {
    return compressors_of(a, kind_);
  }
  void project(StepList& steps, const LayerTask& task) const;
  void index_forward(StepList& steps, const LayerTask& task) const;

  Compressed kind_;
};

/// Queries and weights of the indexer, whose keys a compressor makes.
void CompressedAttention::index_forward(StepList& steps, const LayerTask& task) const {
  if (!chooses()) return;
  const RankWork& w = task.work;
  const AttentionConfig& a = task.model.attention;
  const IndexerConfig& i = a.indexer;
  const double bytes = activation_bytes(w.formats.precision);
  const std::int64_t tokens = w.tokens();
  local_forward(
      steps, w,
      mixer_matrix(task, "index query", a.q_lora_rank, i.heads * i.head_dim, MatrixSplit::kNone),
      tokens);
  steps.then(gemm("index weights", unquantised(w.formats.precision),
                  {tokens, i.heads, task.model.hidden}));
  steps.then(rotate("index rotary", w.formats.precision, tokens, i.heads * a.qk_rope_head_dim));
  steps.then(elementwise("index cache write", tokens, i.heads * i.head_dim,
                         {bytes, element_bytes(w.formats.index_precision), 2}));
}

/// Inference: latents, queries of heads and of the indexer, and what goes to the caches.
void CompressedAttention::project(StepList& steps, const LayerTask& task) const {
  const AttentionConfig& a = task.model.attention;
  const RankWork& w = task.work;
  const double bytes = activation_bytes(w.formats.precision);
  const std::int64_t tokens = w.tokens(), latents = a.q_lora_rank + a.head_dim;
  local_forward(steps, w,
                mixer_matrix(task, "latent down", task.model.hidden, latents, MatrixSplit::kNone),
                tokens);
  steps.then(rms_norm_of("latent norm", tokens, latents, bytes));
  for (const Compressor& c : compressors(a)) {
    steps.then(gemm("key compression", unquantised(w.formats.precision),
                    {tokens, c.projected(), task.model.hidden}));
    // Pools what is projected by a softmax of its gates; an entry for every `ratio` tokens.
    steps.then(elementwise("key pooling", tokens, c.projected(),
                           {4, 2.0 / real(2 * c.overlap * c.ratio), vector_cost::kSoftmax}));
  }
  const Linear queries = head_queries(task);
  column_forward(steps, w, {queries}, queries.in);
  index_forward(steps, task);
  // Norms of heads, rotation of their last columns, and the key to the cache.
  Kernel rotary = elementwise("rotary", tokens, queries.out, {bytes, bytes, vector_cost::kRmsNorm});
  rotary.written += Bytes(real(tokens * a.head_dim) * element_bytes(w.formats.kv_precision));
  steps.then(rotary);
}

const CompressedAttention windowed_key_attention(Compressed::kNothing);
const AddedMixer added_windowed_key_attention(MixerKind::kWindowedKey, windowed_key_attention);
const CompressedAttention compressed_attention(Compressed::kAll);
const AddedMixer added_compressed_attention(MixerKind::kCompressed, compressed_attention);
const CompressedAttention compressed_sparse_attention(Compressed::kChosen);
const AddedMixer added_compressed_sparse_attention(MixerKind::kCompressedSparse,
                                                   compressed_sparse_attention);

}  // namespace

std::int64_t entry_ratio(const AttentionConfig& a, Compressed kind) {
  return kind == Compressed::kChosen ? a.compression.sparse_ratio : a.compression.dense_ratio;
}

std::vector<Compressor> compressors_of(const AttentionConfig& a, Compressed kind) {
  constexpr std::int64_t kOverlap = 2;
  const std::int64_t ratio = entry_ratio(a, kind);
  if (kind == Compressed::kNothing) return {};
  if (kind == Compressed::kAll) return {{ratio, a.head_dim, 1}};
  return {{ratio, a.head_dim, kOverlap}, {ratio, a.indexer.head_dim, kOverlap}};
}

std::int64_t compressed_places(const AttentionConfig& a, const AttentionPart& part,
                               Compressed kind) {
  constexpr std::int64_t kStep = 64;
  const std::int64_t window = a.compression.window;
  if (kind == Compressed::kNothing) return window;
  std::int64_t entries = part.context / entry_ratio(a, kind);
  if (kind == Compressed::kChosen) entries = std::min(entries, a.indexer.top_k);
  return window + (entries + kStep - 1) / kStep * kStep;
}

SeenKeys compressed_keys(const AttentionConfig& a, const AttentionPart& part, Compressed kind) {
  const SeenKeys window = seen_keys(part, 1, a.compression.window);
  SeenKeys seen = window;
  seen.pairs = 0;
  seen.entries = std::min(window.chosen, window.entries);
  if (kind == Compressed::kNothing) return seen;
  const SeenKeys compressed =
      seen_keys(part, entry_ratio(a, kind), kind == Compressed::kChosen ? a.indexer.top_k : 0);
  seen.pairs = compressed.pairs;
  seen.chosen += compressed.chosen;
  seen.entries += std::min(compressed.chosen, compressed.entries);
  return seen;
}

}  // namespace orrery
