// SPDX-License-Identifier: Apache-2.0
// MiniMax sparse attention (arXiv 2606.13392), as MiniMax-M3 has it: beside queries, keys and
// values the first product gives an index query for each group of heads and one index key; the
// largest score of each block of keys says which blocks a token's heads of a group attend to.
// Kernels are those of MiniMax-AI/MSA: prompts gather the queries that chose a block of keys, so
// that rows of blocks are full; scores have neither ReLU nor weights. Index keys lie in the cache
// in its format. Training (its section 3; Megatron-LM at 03c1cf9, experimental_attention_variant:
// msa.py): index queries and keys by matrices of their own, whose input is detached, learn the mean
// of a group's heads over the tokens of its blocks.
#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/attention/grouped_attention.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/sparse/indexer_gradients.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

SeenKeys seen_blocks(const LayerTask& task, const AttentionPart& part) {
  return seen_keys(part, 1, task.model.attention.indexer.top_k);
}

ChosenHeads grouped_heads(const LayerTask& task, const AttentionPart& part) {
  const CoreShape shape = core_shape(task);
  return {.groups = shape.kv_heads,
          .heads = shape.query_heads / shape.kv_heads,
          .qk_dim = shape.qk_dim,
          .v_dim = shape.v_dim,
          .gathers = part.phase != Phase::kDecode,
          .cache_bytes = element_bytes(task.work.formats.kv_precision)};
}

AttentionPart trained_part(const LayerTask& task) {
  return task.work.batch.attention_parts().front();
}

/// Index queries of a rank's groups and the index key, behind norms and rotation.
Tensor block_index_operands(const LayerTask& task) {
  const std::int64_t columns =
      (core_shape(task).kv_heads + 1) * task.model.attention.indexer.head_dim;
  return kept::of_layer("index queries and keys", task,
                        real(task.work.tokens() * columns) * task.bytes());
}

Tensor chosen_blocks(const LayerTask& task) {
  return kept::of_layer("index selection", task,
                        choice_bytes(seen_blocks(task, trained_part(task)),
                                     task.model.attention.indexer, core_shape(task).kv_heads));
}

void attend_to_blocks(StepList& steps, const LayerTask& task) {
  const AttentionPart part = trained_part(task);
  steps.then(chosen_training_attention(seen_blocks(task, part), grouped_heads(task, part),
                                       unquantised(task.work.formats.precision)));
  makes(steps, task, {kept::queries_keys_values, kept::attention_result, kept::attention_sums});
}

/// Gradients of index queries and keys, which nothing but their matrix waits for. Ranks add up
/// those of the key, which all their groups share.
void learn_blocks(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  const AttentionPart part = trained_part(task);
  const SeenKeys seen = seen_blocks(task, part);
  const IndexerConfig& indexer = task.model.attention.indexer;
  const Precision precision = unquantised(w.formats.precision);
  const std::int64_t groups = core_shape(task).kv_heads;
  std::size_t last =
      steps.for_weights(index_target(seen, grouped_heads(task, part), precision), {steps.cursor()});
  uses(steps, task, {kept::queries_keys_values, kept::attention_sums, chosen_blocks});
  last = steps.for_weights(index_gradient(seen, indexer, groups, groups, precision), {last});
  frees(steps, task, {block_index_operands});
  if (w.split.tp == 1) return;
  steps.for_weights(
      LayerCollective{
          "index key gradient all-reduce", TransferKind::kAllReduce, Scope::kTensor,
          Bytes(real(w.tokens() * indexer.head_dim) * activation_bytes(w.formats.precision))},
      {last});
}

class BlockSparseAttention final : public GroupedAttention {
 public:
  PartWeights weights(const LayerTask& task) const override;
  SequenceCache cache(const LlmConfig& model, const LayerConfig& layer, int tp) const override {
    SequenceCache cache = GroupedAttention::cache(model, layer, tp);
    cache.token_elements += model.attention.indexer.head_dim;
    return cache;
  }

  std::vector<KeyTerm> key_terms(const LlmConfig& model, const LayerConfig& layer) const override {
    const IndexerConfig& i = model.attention.indexer;
    std::vector<KeyTerm> terms = GroupedAttention::key_terms(model, layer);
    for (KeyTerm& term : terms) term.most = i.top_k;
    terms.push_back({real(i.heads * i.head_dim), 0});
    return terms;
  }

  void part_forward(StepList& steps, const LayerTask& task,
                    const AttentionPart& part) const override {
    const AttentionConfig& a = task.model.attention;
    const RankWork& w = task.work;
    const CoreShape shape = core_shape(task);
    const Precision precision = unquantised(w.formats.precision);
    const SeenKeys seen = seen_blocks(task, part);
    if (w.trains()) {
      steps.then(index_choice(seen, a.indexer, shape.kv_heads, shape.kv_heads, precision));
      makes(steps, task, {block_index_operands, chosen_blocks});
      attend_to_blocks(steps, task);
      return;
    }
    steps.then(index_scores(seen, a.indexer, shape.kv_heads, shape.kv_heads, precision,
                            element_bytes(w.formats.kv_precision)));
    steps.then(index_selection(seen, a.indexer, shape.kv_heads));
    steps.then(chosen_attention(seen, grouped_heads(task, part), precision));
  }

 protected:
  void core_backward(StepList& steps, const LayerTask& task) const override {
    const AttentionPart part = trained_part(task);
    if (task.work.recomputes(RecomputeModule::kCoreAttn)) attend_to_blocks(steps, task.again());
    learn_blocks(steps, task);
    for (Kernel& kernel : chosen_gradients(seen_blocks(task, part), grouped_heads(task, part),
                                           unquantised(task.work.formats.precision)))
      steps.then(std::move(kernel));
    frees(steps, task,
          {kept::queries_keys_values, kept::attention_result, kept::attention_sums, chosen_blocks});
  }
};

/// Heads of index queries of a rank lie with the KV heads of their groups; the one key is whole.
PartWeights BlockSparseAttention::weights(const LayerTask& task) const {
  const std::int64_t columns = task.attention().indexer.head_dim;
  PartWeights all = GroupedAttention::weights(task);
  all.whole_vectors += 2 * columns;     // norms of index queries and keys
  if (!task.work.trains()) return all;  // columns of the first product
  all.matrices.push_back(mixer_matrix(task, "index query", task.model.hidden,
                                      core_shape(task).kv_heads * columns, MatrixSplit::kColumns));
  all.matrices.push_back(
      mixer_matrix(task, "index key", task.model.hidden, columns, MatrixSplit::kNone));
  return all;
}

const BlockSparseAttention block_sparse_attention{};
const AddedMixer added_block_sparse_attention(MixerKind::kBlockSparse, block_sparse_attention);

}  // namespace

}  // namespace orrery
