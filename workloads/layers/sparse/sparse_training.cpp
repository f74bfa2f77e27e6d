// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/sparse/sparse_training.h"

#include "workloads/base/real.h"
#include "workloads/layers/attention/latent_attention.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/sparse/indexer_gradients.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

const IndexerConfig& indexer_of(const LayerTask& task) { return task.model.attention.indexer; }

int sequence_ranks(const LayerTask& task) { return task.work.split.context.ranks; }

/// A rank's share of all pairs, of which pieces from the front and the back have as many on each,
/// and the keys of all.
SeenKeys trained_keys(const LayerTask& task) {
  const int ranks = sequence_ranks(task);
  AttentionPart whole = task.work.batch.attention_parts().front();
  whole.query *= ranks;
  whole.context *= ranks;
  SeenKeys seen = seen_keys(whole, 1, indexer_of(task).top_k);
  seen.tokens /= ranks;
  seen.pairs /= ranks;
  seen.chosen /= ranks;
  return seen;
}

std::int64_t latent_key(const AttentionConfig& a) { return a.kv_lora_rank + a.qk_rope_head_dim; }

ChosenHeads latent_heads(const LayerTask& task) {
  const AttentionConfig& a = task.model.attention;
  return {.groups = 1,
          .heads = core_shape(task).query_heads,
          .qk_dim = latent_key(a),
          .v_dim = a.kv_lora_rank,
          .latent = true};
}

Linear index_query(const LayerTask& task) {
  const AttentionConfig& a = task.model.attention;
  return mixer_matrix(task, "index query", a.q_lora_rank > 0 ? a.q_lora_rank : task.model.hidden,
                      a.indexer.heads * a.indexer.head_dim, MatrixSplit::kNone);
}

Linear index_key(const LayerTask& task) {
  return mixer_matrix(task, "index key", task.model.hidden, indexer_of(task).head_dim,
                      MatrixSplit::kNone);
}

Linear index_weights(const LayerTask& task) {
  return sixteen_bit_matrix(task, "index weights", task.model.hidden, indexer_of(task).heads,
                            MatrixSplit::kNone);
}

/// Ranks that hold shares of the tokens gather what the indexer reads, and keep it.
bool gathers_inputs(const LayerTask& task) { return task.work.split.sp && task.work.split.tp > 1; }

std::int64_t index_inputs(const LayerTask& task) {
  const std::int64_t query = task.model.attention.q_lora_rank;
  return task.model.hidden + query;
}

// Tensors that forward passes leave.

Tensor sparse_part(Tensor tensor, const LayerTask& task, RecomputeModule module) {
  if (task.work.recomputes(module)) tensor.role = TensorRole::kWorking;
  return tensor;
}

Tensor gathered_index_inputs(const LayerTask& task) {
  return kept::of_tokens("index inputs", task, gathers_inputs(task) ? index_inputs(task) : 0,
                         kept::input_bytes(task.work));
}

/// In front of the norm of index keys.
Tensor unnormed_index_keys(const LayerTask& task) {
  return kept::of_tokens("index keys before norm", task, indexer_of(task).head_dim, task.bytes());
}

Tensor index_operands(const LayerTask& task) {
  const IndexerConfig& i = indexer_of(task);
  return kept::of_tokens("index queries, keys and weights", task,
                         (i.heads + sequence_ranks(task)) * i.head_dim + i.heads, task.bytes());
}

/// Places and softmax scores. Layers that share them need them before they could be made again.
Tensor index_selected(const LayerTask& task) {
  Tensor tensor = kept::of_layer("index selection", task,
                                 choice_bytes(trained_keys(task), indexer_of(task), 1));
  if (task.model.has(MixerKind::kSharedSparse)) tensor.role = TensorRole::kActivation;
  return tensor;
}

/// The part of queries that the key up-projection is absorbed into.
Tensor plain_queries(const LayerTask& task) {
  return sparse_part(
      kept::of_tokens("queries before absorption", task,
                      core_shape(task).query_heads * task.model.attention.qk_nope_head_dim,
                      task.bytes()),
      task, RecomputeModule::kMlaUpProj);
}

Tensor latent_queries(const LayerTask& task) {
  const ChosenHeads heads = latent_heads(task);
  return sparse_part(
      kept::of_tokens("latent queries", task, heads.heads * heads.qk_dim, task.bytes()), task,
      RecomputeModule::kMlaUpProj);
}

Tensor latent_keys(const LayerTask& task) {
  return kept::of_tokens("latent keys", task,
                         sequence_ranks(task) * latent_key(task.model.attention), task.bytes());
}

Tensor latent_result(const LayerTask& task) {
  const ChosenHeads heads = latent_heads(task);
  return sparse_part(
      kept::of_tokens("latent result", task, heads.heads * heads.v_dim, task.bytes()), task,
      RecomputeModule::kCoreAttn);
}

Tensor latent_sums(const LayerTask& task) {
  return kept::of_tokens("latent attention sums", task, latent_heads(task).heads, sizeof(float));
}

/// Keys of all ranks that share a sequence come together, or their gradients are added up.
LayerCollective context_keys(const LayerTask& task, const char* name, TransferKind kind,
                             std::int64_t columns) {
  const std::int64_t tokens = task.work.tokens() * sequence_ranks(task);
  return {name, kind, Scope::kContext, Bytes(real(tokens * columns) * task.bytes())};
}

/// Queries in the latent space, with their rotated columns.
void absorb(StepList& steps, const LayerTask& task) {
  const ChosenHeads heads = latent_heads(task);
  const double bytes = task.bytes();
  absorb_queries(steps, task, task.work.tokens());
  steps.then(elementwise("latent query copy", task.work.tokens(), heads.heads * heads.qk_dim,
                         {bytes, bytes, 0}));
  makes(steps, task, {plain_queries, latent_queries});
}

void attend(StepList& steps, const LayerTask& task) {
  steps.then(chosen_training_attention(trained_keys(task), latent_heads(task),
                                       unquantised(task.work.formats.precision)));
  makes(steps, task, {latent_result, latent_sums});
}

/// What the indexer learns from this layer's attention, and the gradients of its queries, keys and
/// weights. Nothing else waits for them.
void learn_choice(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  const IndexerConfig& i = indexer_of(task);
  const SeenKeys keys = trained_keys(task);
  const Precision precision = unquantised(w.formats.precision);
  std::size_t last =
      steps.for_weights(index_target(keys, latent_heads(task), precision), {steps.cursor()});
  uses(steps, task, {latent_queries, latent_keys, latent_sums, index_selected});
  if (w.split.tp > 1)
    last = steps.for_weights(LayerCollective{"index target all-reduce", TransferKind::kAllReduce,
                                             Scope::kTensor, Bytes(distribution_bytes(keys, 1))},
                             {last});
  last = steps.for_weights(index_gradient(keys, i, i.heads, 1, precision), {last});
  uses(steps, task, {index_operands, index_selected});
  if (sequence_ranks(task) > 1)
    last = steps.for_weights(context_keys(task, "index key gradient reduce-scatter",
                                          TransferKind::kReduceScatter, i.head_dim),
                             {last});
  const double bytes = task.bytes();
  last = steps.for_weights(rotate("index rotary backward", w.formats.precision, w.tokens(),
                                  (i.heads + 1) * task.model.attention.qk_rope_head_dim),
                           {last});
  last = steps.for_weights(norm_gradient("index key norm backward", w.tokens(), i.head_dim, bytes),
                           {last});
  frees(steps, task, {unnormed_index_keys});
  detached_backward(steps, w, index_query(task), w.tokens(), last);
}

}  // namespace

std::vector<Linear> index_linears(const LayerTask& task) {
  return {index_query(task), index_key(task), index_weights(task)};
}

void indexer_training_forward(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  const IndexerConfig& i = indexer_of(task);
  const double bytes = task.bytes();
  if (gathers_inputs(task))
    steps.then(tensor_collective("index input all-gather", TransferKind::kAllGather, w,
                                 index_inputs(task)));
  for (const Linear& linear : index_linears(task)) local_forward(steps, w, linear, w.tokens());
  makes(steps, task, {gathered_index_inputs});
  steps.then(stream("index key norm", KernelClass::kNormalization, w.tokens(), i.head_dim,
                    {bytes, bytes, vector_cost::kLayerNorm}));
  makes(steps, task, {unnormed_index_keys});
  steps.then(rotate("index rotary", w.formats.precision, w.tokens(),
                    (i.heads + 1) * task.model.attention.qk_rope_head_dim));
  makes(steps, task, {index_operands});
}

void sparse_training_forward(StepList& steps, const LayerTask& task, bool chooses) {
  const IndexerConfig& i = indexer_of(task);
  const bool shares = sequence_ranks(task) > 1;
  if (chooses && shares)
    steps.then(context_keys(task, "index keys all-gather", TransferKind::kAllGather, i.head_dim));
  if (chooses) {
    steps.then(
        index_choice(trained_keys(task), i, i.heads, 1, unquantised(task.work.formats.precision)));
    makes(steps, task, {index_selected});
  }
  absorb(steps, task);
  if (shares)
    steps.then(context_keys(task, "latent keys all-gather", TransferKind::kAllGather,
                            latent_key(task.model.attention)));
  makes(steps, task, {latent_keys});
  attend(steps, task);
  expand_values(steps, task, task.work.tokens());
}

void sparse_training_backward(StepList& steps, const LayerTask& task, bool chooses) {
  const RankWork& w = task.work;
  const AttentionConfig& a = task.model.attention;
  const ChosenHeads heads = latent_heads(task);
  if (w.recomputes(RecomputeModule::kMlaUpProj)) {
    column_forward(steps, w, {query_up(task)}, latent_width(task));
    absorb(steps, task.again());
  }
  if (w.recomputes(RecomputeModule::kCoreAttn)) attend(steps, task.again());
  batched_backward(steps, w, "value up", {w.tokens(), a.v_head_dim, a.kv_lora_rank, heads.heads});
  uses(steps, task, {latent_result});
  if (chooses) learn_choice(steps, task);
  for (Kernel& kernel :
       chosen_gradients(trained_keys(task), heads, unquantised(w.formats.precision)))
    steps.then(std::move(kernel));
  frees(steps, task, {latent_queries, latent_keys, latent_result, latent_sums});
  if (chooses) frees(steps, task, {index_selected});
  if (sequence_ranks(task) > 1)
    steps.then(context_keys(task, "latent key gradient reduce-scatter",
                            TransferKind::kReduceScatter, latent_key(a)));
  steps.then(rotate("rotary backward", w.formats.precision, w.tokens(),
                    (heads.heads + 1) * a.qk_rope_head_dim));
  batched_backward(steps, w, "query absorb",
                   {w.tokens(), a.kv_lora_rank, a.qk_nope_head_dim, heads.heads});
  frees(steps, task, {plain_queries});
  column_backward(steps, w, {query_up(task)}, latent_width(task));
}

void indexer_training_backward(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  const std::size_t gradient = steps.cursor();
  detached_backward(steps, w, index_key(task), w.tokens(), gradient);
  detached_backward(steps, w, index_weights(task), w.tokens(), gradient);
  // Their gradients are in their place.
  frees(steps, task, {index_operands, gathered_index_inputs});
}

}  // namespace orrery
