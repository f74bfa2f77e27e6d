// SPDX-License-Identifier: Apache-2.0
// Training of DeepSeek-V4's attention as Megatron-Core has it (experimental_attention_variant:
// csa.py, deepseek_v4_hybrid_attention.py at 00bebb4): compressors and the indexer whole on every
// tensor parallel rank, over gathered tokens, in 16 bits; attention to the latest keys and to
// entries by the kernels of sparse attention; the indexer learns the distribution of attention over
// the entries it has chosen, and its inputs are detached.
#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/layers/sparse/compressed_attention.h"
#include "workloads/layers/sparse/indexer_gradients.h"

namespace orrery {
namespace {

Compressed kind_of_layer(const LayerTask& task) {
  if (task.layer.mixer == MixerKind::kWindowedKey) return Compressed::kNothing;
  return task.layer.mixer == MixerKind::kCompressed ? Compressed::kAll : Compressed::kChosen;
}

/// A layer's sizes on this rank.
struct CompressedShape {
  explicit CompressedShape(const LayerTask& task)
      : a(task.model.attention),
        heads(a.heads / task.work.split.tp),
        groups(a.compression.output_groups / task.work.split.tp),
        latents(a.q_lora_rank + a.head_dim),
        ratio(entry_ratio(a, kind_of_layer(task))),
        compressors(compressors_of(a, kind_of_layer(task))),
        chooses(kind_of_layer(task) == Compressed::kChosen) {}

  std::int64_t columns() const { return heads * a.head_dim; }
  std::int64_t output() const { return groups * a.compression.output_rank; }
  ChosenHeads shared() const {
    return {.groups = 1, .heads = heads, .qk_dim = a.head_dim, .v_dim = a.head_dim, .latent = true};
  }

  const AttentionConfig& a;
  std::int64_t heads, groups, latents, ratio;
  std::vector<Compressor> compressors;
  bool chooses;
};

AttentionPart all_tokens(const LayerTask& task) {
  return task.work.batch.attention_parts().front();
}

SeenKeys seen_entries(const LayerTask& task) {
  const AttentionConfig& a = task.model.attention;
  return seen_keys(all_tokens(task), entry_ratio(a, kind_of_layer(task)), a.indexer.top_k);
}

Linear key_down(const LayerTask& task) {
  const CompressedShape s(task);
  Linear down = mixer_matrix(task, "latent down", task.model.hidden, s.latents, MatrixSplit::kNone);
  down.parts = {{s.a.q_lora_rank}, {s.a.head_dim}};
  return down;
}

Linear entry_queries(const LayerTask& task) {
  const CompressedShape s(task);
  return mixer_matrix(task, "index query", s.a.q_lora_rank,
                      s.a.indexer.heads * s.a.indexer.head_dim, MatrixSplit::kNone);
}

/// What is pooled, and gates.
Linear compression(const LayerTask& task, const Compressor& c, const char* name) {
  Linear linear =
      sixteen_bit_matrix(task, name, task.model.hidden, c.projected(), MatrixSplit::kNone);
  linear.parts = {{.out = c.projected(), .count = 2}};
  return linear;
}

/// The compressor of keys.
std::vector<Linear> compressed_inputs(const LayerTask& task) {
  const CompressedShape s(task);
  if (s.compressors.empty()) return {};
  return {compression(task, s.compressors.front(), "key compression")};
}

/// Matrices of the indexer that read the layer's input: of its keys' compressor and of weights.
std::vector<Linear> detached_inputs(const LayerTask& task) {
  const CompressedShape s(task);
  if (!s.chooses) return {};
  return {compression(task, s.compressors.back(), "index compression"),
          sixteen_bit_matrix(task, "index weights", task.model.hidden, s.a.indexer.heads,
                             MatrixSplit::kNone)};
}

GemmShape value_groups(const LayerTask& task) {
  const CompressedShape s(task);
  return {task.work.tokens(), s.a.compression.output_rank, s.columns() / s.groups, s.groups};
}

/// Pools what is projected by a softmax of its gates into an entry for every `ratio` tokens, with a
/// norm and a rotation; or the gradients of both.
Kernel pooling(const LayerTask& task, const Compressor& c, bool forward) {
  const double bytes = task.bytes();
  const double entry = bytes / real(2 * c.overlap * c.ratio);
  const double read = forward ? bytes : bytes + 2 * entry, written = forward ? entry : bytes;
  return elementwise(forward ? "key pooling" : "key pooling backward", task.work.tokens(),
                     c.projected(), {read, written, vector_cost::kSoftmax * (forward ? 1 : 2)});
}

// Tensors that forward passes leave.

namespace v4 {

/// Gathered copies of what compressors and the indexer read.
Tensor inputs(const LayerTask& task) {
  const bool gathers =
      task.work.split.sp && task.work.split.tp > 1 && kind_of_layer(task) != Compressed::kNothing;
  return kept::of_tokens("index inputs", task, gathers ? real(task.model.hidden) : 0, task.bytes());
}
Tensor latent_norm(const LayerTask& task) {
  const CompressedShape s(task);
  return kept::of_layer("latent norm input", task,
                        real(task.work.row_tokens() * s.latents) * task.bytes());
}
Tensor latents(const LayerTask& task) {
  return kept::of_layer("latents", task,
                        real(task.work.row_tokens() * task.model.attention.q_lora_rank) *
                            kept::input_bytes(task.work));
}
/// What is pooled and gates, and entries in front of their norm.
Tensor compressed(const LayerTask& task) {
  double columns = 0;
  for (const Compressor& c : CompressedShape(task).compressors)
    columns += real(c.projected()) + real(c.columns) / real(c.ratio);
  return kept::of_tokens("key compression", task, columns, task.bytes());
}
Tensor keys(const LayerTask& task) {
  const CompressedShape s(task);
  double columns = real(s.a.head_dim);
  if (!s.compressors.empty())
    columns += real(s.compressors.front().columns) / real(s.compressors.front().ratio);
  return kept::of_tokens("keys", task, columns, task.bytes());
}
Tensor unnormed(const LayerTask& task) {
  return kept::of_tokens("queries before norm", task, real(CompressedShape(task).columns()),
                         task.bytes());
}
Tensor queries(const LayerTask& task) {
  return kept::of_tokens("queries", task, real(CompressedShape(task).columns()), task.bytes());
}
Tensor result(const LayerTask& task) {
  return kept::of_tokens("attention result", task, real(CompressedShape(task).columns()),
                         task.bytes());
}
Tensor sums(const LayerTask& task) {
  return kept::of_tokens("attention sums", task, real(CompressedShape(task).heads), sizeof(float));
}
Tensor compressed_output_input(const LayerTask& task) {
  return kept::of_tokens("attention output input", task, real(CompressedShape(task).output()),
                         kept::input_bytes(task.work));
}
Tensor compressed_index_operands(const LayerTask& task) {
  const CompressedShape s(task);
  const IndexerConfig& i = s.a.indexer;
  const double entries = s.chooses ? real(i.head_dim) / real(s.ratio) : 0;
  const double columns = s.chooses ? real(i.heads * i.head_dim + i.heads) + entries : 0;
  return kept::of_tokens("index queries, keys and weights", task, columns, task.bytes());
}
Tensor selection(const LayerTask& task) {
  const double bytes = CompressedShape(task).chooses
                           ? choice_bytes(seen_entries(task), task.model.attention.indexer, 1)
                           : 0;
  return kept::of_layer("index selection", task, bytes);
}

}  // namespace v4

SeenKeys keys_of(const LayerTask& task) {
  return compressed_keys(task.model.attention, all_tokens(task), kind_of_layer(task));
}

void latents_forward(StepList& steps, const LayerTask& task) {
  local_forward(steps, task.work, key_down(task), task.work.row_tokens());
}

void compress(StepList& steps, const LayerTask& task) {
  const CompressedShape s(task);
  if (s.compressors.empty()) return;
  std::vector<Linear> inputs = compressed_inputs(task);
  for (Linear& linear : detached_inputs(task)) inputs.push_back(std::move(linear));
  column_forward(steps, task.work, inputs, task.model.hidden);
  makes(steps, task, {v4::inputs});
  for (const Compressor& c : s.compressors) steps.then(pooling(task, c, true));
  makes(steps, task, {v4::compressed});
}

void compress_backward(StepList& steps, const LayerTask& task) {
  const CompressedShape s(task);
  if (s.compressors.empty()) return;
  for (const Compressor& c : s.compressors) steps.then(pooling(task, c, false));
  frees(steps, task, {v4::compressed});
  const std::size_t gradient = steps.cursor();
  for (const Linear& linear : detached_inputs(task))
    detached_backward(steps, task.work, linear, task.work.tokens(), gradient);
  column_backward(steps, task.work, compressed_inputs(task), task.model.hidden);
  frees(steps, task, {v4::inputs});
}

/// Compressors and latents read the layer's input.
void inputs_backward(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  const double bytes = activation_bytes(w.formats.precision);
  norm_again(steps, task, "attention norm");
  compress_backward(steps, task);
  local_backward(steps, w, key_down(task), w.row_tokens());
  if (CompressedShape(task).compressors.empty()) return;
  steps.then(elementwise("latent input gradient add", w.row_tokens(), task.model.hidden,
                         {2 * bytes, bytes, 1}));
}

void queries_forward(StepList& steps, const LayerTask& task) {
  const CompressedShape s(task);
  std::vector<Linear> ups = {head_queries(task)};
  if (s.chooses) ups.push_back(entry_queries(task));
  column_forward(steps, task.work, ups, s.latents);
}

void queries_backward(StepList& steps, const LayerTask& task) {
  const CompressedShape s(task);
  if (s.chooses)
    detached_backward(steps, task.work, entry_queries(task), task.work.tokens(), steps.cursor());
  column_backward(steps, task.work, {head_queries(task)}, s.latents);
}

void choose(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  const AttentionConfig& a = task.model.attention;
  const IndexerConfig& i = a.indexer;
  if (!CompressedShape(task).chooses) return;
  steps.then(rotate("index rotary", w.formats.precision, w.tokens(), i.heads * a.qk_rope_head_dim));
  steps.then(index_choice(seen_entries(task), i, i.heads, 1, unquantised(w.formats.precision)));
  makes(steps, task, {v4::compressed_index_operands, v4::selection});
}

void attend_to_entries(StepList& steps, const LayerTask& task) {
  steps.then(chosen_training_attention(keys_of(task), CompressedShape(task).shared(),
                                       unquantised(task.work.formats.precision)));
  makes(steps, task, {v4::result, v4::sums});
}

void learn_entries(StepList& steps, const LayerTask& task) {
  const CompressedShape s(task);
  const RankWork& w = task.work;
  const IndexerConfig& i = s.a.indexer;
  const SeenKeys entries = seen_entries(task);
  const Precision precision = unquantised(w.formats.precision);
  std::size_t last =
      steps.for_weights(index_target(entries, s.shared(), precision), {steps.cursor()});
  uses(steps, task, {v4::queries, v4::keys, v4::sums, v4::selection});
  if (w.split.tp > 1)
    last = steps.for_weights(LayerCollective{"index target all-reduce", TransferKind::kAllReduce,
                                             Scope::kTensor, Bytes(distribution_bytes(entries, 1))},
                             {last});
  last = steps.for_weights(index_gradient(entries, i, i.heads, 1, precision), {last});
  frees(steps, task, {v4::compressed_index_operands});
  steps.for_weights(rotate("index rotary backward", w.formats.precision, w.tokens(),
                           i.heads * s.a.qk_rope_head_dim),
                    {last});
}

void attention_forward_of_entries(StepList& steps, const LayerTask& task) {
  choose(steps, task);
  attend_to_entries(steps, task);
}

void attention_gradients(StepList& steps, const LayerTask& task) {
  const CompressedShape s(task);
  if (task.work.recomputes(RecomputeModule::kCoreAttn)) attend_to_entries(steps, task.again());
  if (s.chooses) learn_entries(steps, task);
  for (Kernel& kernel :
       chosen_gradients(keys_of(task), s.shared(), unquantised(task.work.formats.precision)))
    steps.then(std::move(kernel));
}

void value_groups_backward(StepList& steps, const LayerTask& task) {
  batched_backward(steps, task.work, "value groups", value_groups(task));
}

}  // namespace

Linear head_queries(const LayerTask& task) {
  const CompressedShape s(task);
  return mixer_matrix(task, "query up", s.a.q_lora_rank, s.columns(), MatrixSplit::kColumns);
}

/// Each group of heads has a matrix of its own.
Linear group_values(const LayerTask& task) {
  const CompressedShape s(task);
  Linear values =
      mixer_matrix(task, "value groups", s.columns() / s.groups, s.output(), MatrixSplit::kParts);
  values.parts = {{.out = s.output(), .count = s.groups}};
  return values;
}

Linear row_output(const LayerTask& task) {
  const CompressedShape s(task);
  return mixer_matrix(task, "attention output", s.output(), task.model.hidden, MatrixSplit::kRows);
}

Kernel inverse_rotary(const LayerTask& task) {
  const CompressedShape s(task);
  return rotate("rotary inverse", task.work.formats.precision, task.work.tokens(),
                s.heads * s.a.qk_rope_head_dim);
}

std::vector<Linear> compressed_linears(const LayerTask& task) {
  std::vector<Linear> all = {key_down(task), head_queries(task), group_values(task),
                             row_output(task)};
  for (auto* further : {compressed_inputs, detached_inputs})
    for (Linear& linear : further(task)) all.push_back(std::move(linear));
  if (CompressedShape(task).chooses) all.push_back(entry_queries(task));
  return all;
}

/// Gradients of compressors run with those of the matrix of latents, which reads what they read.
std::vector<LayerOp> compressed_training_ops(const LayerTask& task) {
  const CompressedShape s(task);
  const RankWork& w = task.work;
  const std::int64_t rows = w.row_tokens(), tokens = w.tokens();
  const double bytes = activation_bytes(w.formats.precision);
  Kernel inverse_backward = inverse_rotary(task);
  inverse_backward.name += " backward";
  return {{latents_forward, inputs_backward, {kept::attention_input}},
          {kernels({rms_norm_of("latent norm", rows, s.latents, bytes)}),
           kernels({norm_gradient("latent norm backward", rows, s.latents, bytes)}),
           {v4::latent_norm},
           {v4::latents}},
          {compress},
          {queries_forward, queries_backward, {}, {}, {v4::latents}},
          // Norms of heads and rotation of their last columns, with those of the key.
          {kernels({elementwise("rotary", tokens, s.columns() + s.a.head_dim,
                                {bytes, bytes, vector_cost::kRmsNorm})}),
           kernels({elementwise("rotary backward", tokens, s.columns(),
                                {2 * bytes, bytes, vector_cost::kNormBackward})}),
           {v4::unnormed},
           {v4::queries, v4::keys}},
          {attention_forward_of_entries,
           attention_gradients,
           {},
           {},
           {v4::queries, v4::keys, v4::result, v4::sums, v4::selection}},
          {kernels({inverse_rotary(task)}), kernels({std::move(inverse_backward)})},
          {kernels({gemm("value groups", unquantised(w.formats.precision), value_groups(task))}),
           value_groups_backward,
           {},
           {v4::compressed_output_input},
           {v4::result}},
          row_op(row_output(task), {v4::compressed_output_input})};
}

}  // namespace orrery
