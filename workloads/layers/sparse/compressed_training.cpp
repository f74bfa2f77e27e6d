// SPDX-License-Identifier: Apache-2.0
// Training of DeepSeek-V4's attention as Megatron-Core has it (experimental_attention_variant:
// csa.py, deepseek_v4_hybrid_attention.py at 00bebb4): compressors and the indexer whole on every
// tensor parallel rank, over gathered tokens, in 16 bits; attention to the latest keys and to
// entries by the kernels of sparse attention; the indexer learns the distribution of attention over
// the entries it has chosen, and its inputs are detached.
#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/layers/sparse/compressed_attention.h"
#include "workloads/layers/sparse/indexer_gradients.h"
#include "workloads/ops/kernels.h"

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

Linear key_down(const LayerTask& task, const CompressedShape& s) {
  Linear down = mixer_matrix(task, "latent down", task.model.hidden, s.latents, MatrixSplit::kNone);
  down.parts = {{s.a.q_lora_rank}, {s.a.head_dim}};
  return down;
}

Linear head_queries(const LayerTask& task, const CompressedShape& s) {
  return mixer_matrix(task, "query up", s.a.q_lora_rank, s.columns(), MatrixSplit::kColumns);
}

Linear entry_queries(const LayerTask& task, const CompressedShape& s) {
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
std::vector<Linear> compressed_inputs(const LayerTask& task, const CompressedShape& s) {
  if (s.compressors.empty()) return {};
  return {compression(task, s.compressors.front(), "key compression")};
}

/// Matrices of the indexer that read the layer's input: of its keys' compressor and of weights.
std::vector<Linear> detached_inputs(const LayerTask& task, const CompressedShape& s) {
  if (!s.chooses) return {};
  return {compression(task, s.compressors.back(), "index compression"),
          sixteen_bit_matrix(task, "index weights", task.model.hidden, s.a.indexer.heads,
                             MatrixSplit::kNone)};
}

/// Each group of heads has a matrix of its own.
Linear group_values(const LayerTask& task, const CompressedShape& s) {
  Linear values =
      mixer_matrix(task, "value groups", s.columns() / s.groups, s.output(), MatrixSplit::kParts);
  values.parts = {{.out = s.output(), .count = s.groups}};
  return values;
}

Linear row_output(const LayerTask& task, const CompressedShape& s) {
  return mixer_matrix(task, "attention output", s.output(), task.model.hidden, MatrixSplit::kRows);
}

GemmShape value_groups(const LayerTask& task, const CompressedShape& s) {
  return {task.work.tokens(), s.a.compression.output_rank, s.columns() / s.groups, s.groups};
}

/// Pools what is projected by a softmax of its gates into an entry for every `ratio` tokens, with a
/// norm and a rotation; or the gradients of both.
Kernel pooling(const LayerTask& task, const Compressor& c, bool forward) {
  const double bytes = activation_bytes(task.work.formats.precision);
  const double entry = bytes / real(2 * c.overlap * c.ratio);
  const double read = forward ? bytes : bytes + 2 * entry, written = forward ? entry : bytes;
  return stream(forward ? "key pooling" : "key pooling backward", KernelClass::kElementwise,
                task.work.tokens(), c.projected(),
                {read, written, vector_cost::kSoftmax * (forward ? 1 : 2)});
}

// Tensors that forward passes leave.

namespace v4 {

Tensor rows(const char* name, const LayerTask& task, double columns, double bytes) {
  return kept::of_layer(name, task, real(task.work.tokens()) * columns * bytes);
}
double compressed_bytes(const LayerTask& task) {
  return activation_bytes(task.work.formats.precision);
}

/// Gathered copies of what compressors and the indexer read.
Tensor inputs(const LayerTask& task) {
  const bool gathers =
      task.work.split.sp && task.work.split.tp > 1 && kind_of_layer(task) != Compressed::kNothing;
  return rows("index inputs", task, gathers ? real(task.model.hidden) : 0, compressed_bytes(task));
}
Tensor latent_norm(const LayerTask& task) {
  const CompressedShape s(task);
  return kept::of_layer("latent norm input", task,
                        real(task.work.row_tokens() * s.latents) * compressed_bytes(task));
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
  return rows("key compression", task, columns, compressed_bytes(task));
}
Tensor keys(const LayerTask& task) {
  const CompressedShape s(task);
  double columns = real(s.a.head_dim);
  if (!s.compressors.empty())
    columns += real(s.compressors.front().columns) / real(s.compressors.front().ratio);
  return rows("keys", task, columns, compressed_bytes(task));
}
Tensor unnormed(const LayerTask& task) {
  return rows("queries before norm", task, real(CompressedShape(task).columns()),
              compressed_bytes(task));
}
Tensor queries(const LayerTask& task) {
  return rows("queries", task, real(CompressedShape(task).columns()), compressed_bytes(task));
}
Tensor result(const LayerTask& task) {
  return rows("attention result", task, real(CompressedShape(task).columns()),
              compressed_bytes(task));
}
Tensor sums(const LayerTask& task) {
  return rows("attention sums", task, real(CompressedShape(task).heads), sizeof(float));
}
Tensor compressed_output_input(const LayerTask& task) {
  return rows("attention output input", task, real(CompressedShape(task).output()),
              kept::input_bytes(task.work));
}
Tensor compressed_index_operands(const LayerTask& task) {
  const CompressedShape s(task);
  const IndexerConfig& i = s.a.indexer;
  const double entries = s.chooses ? real(i.head_dim) / real(s.ratio) : 0;
  const double columns = s.chooses ? real(i.heads * i.head_dim + i.heads) + entries : 0;
  return rows("index queries, keys and weights", task, columns, compressed_bytes(task));
}
Tensor selection(const LayerTask& task) {
  const double bytes = CompressedShape(task).chooses
                           ? choice_bytes(seen_entries(task), task.model.attention.indexer, 1)
                           : 0;
  return kept::of_layer("index selection", task, bytes);
}

}  // namespace v4

class CompressedTraining {
 public:
  CompressedTraining(StepList& steps, const LayerTask& task)
      : steps_(steps), task_(task), w_(task.work), s_(task) {}

  void forward() {
    const double bytes = activation_bytes(w_.formats.precision);
    local_forward(steps_, w_, key_down(task_, s_), w_.row_tokens());
    makes(steps_, task_, {kept::attention_input});
    steps_.then(stream("latent norm", KernelClass::kNormalization, w_.row_tokens(), s_.latents,
                       {bytes, bytes, vector_cost::kRmsNorm}));
    makes(steps_, task_, {v4::latent_norm, v4::latents});
    compress();
    std::vector<Linear> ups = {head_queries(task_, s_)};
    if (s_.chooses) ups.push_back(entry_queries(task_, s_));
    column_forward(steps_, w_, ups, s_.latents);
    rotate_queries();
    makes(steps_, task_, {v4::keys});
    if (s_.chooses) choose();
    attend(task_);
    steps_.then(rotate("rotary inverse", w_.formats.precision, w_.tokens(),
                       s_.heads * s_.a.qk_rope_head_dim));
    steps_.then(gemm("value groups", unquantised(w_.formats.precision), value_groups(task_, s_)));
    makes(steps_, task_, {v4::compressed_output_input});
    row_forward(steps_, w_, row_output(task_, s_),
                task_.scatters_attention() ? RowOutput::kScattered : RowOutput::kReduced);
  }

  void backward() {
    const double bytes = activation_bytes(w_.formats.precision);
    row_backward(steps_, w_, row_output(task_, s_));
    frees(steps_, task_, {v4::compressed_output_input});
    batched_backward(steps_, w_, "value groups", value_groups(task_, s_));
    uses(steps_, task_, {v4::result});
    steps_.then(rotate("rotary inverse backward", w_.formats.precision, w_.tokens(),
                       s_.heads * s_.a.qk_rope_head_dim));
    if (w_.recomputes(RecomputeModule::kCoreAttn)) attend(again_);
    if (s_.chooses) learn();
    for (Kernel& kernel : chosen_gradients(keys(), s_.shared(), unquantised(w_.formats.precision)))
      steps_.then(std::move(kernel));
    frees(steps_, task_, {v4::queries, v4::keys, v4::result, v4::sums, v4::selection});
    steps_.then(stream("rotary backward", KernelClass::kElementwise, w_.tokens(), s_.columns(),
                       {2 * bytes, bytes, vector_cost::kNormBackward}));
    frees(steps_, task_, {v4::unnormed});
    if (s_.chooses)
      detached_backward(steps_, w_, entry_queries(task_, s_), w_.tokens(), steps_.cursor());
    column_backward(steps_, w_, {head_queries(task_, s_)}, s_.latents);
    frees(steps_, task_, {v4::latents});
    steps_.then(stream("latent norm backward", KernelClass::kNormalization, w_.row_tokens(),
                       s_.latents, {2 * bytes, bytes, vector_cost::kNormBackward}));
    frees(steps_, task_, {v4::latent_norm});
    if (w_.recomputes(RecomputeModule::kLayernorm)) {
      steps_.then(norm_forward("attention norm", task_, w_.row_tokens()));
      makes(steps_, again_, {kept::attention_input});
    }
    compress_backward();
    local_backward(steps_, w_, key_down(task_, s_), w_.row_tokens());
    if (!s_.compressors.empty())
      steps_.then(stream("latent input gradient add", KernelClass::kElementwise, w_.row_tokens(),
                         task_.model.hidden, {2 * bytes, bytes, 1}));
    frees(steps_, task_, {kept::attention_input});
  }

 private:
  SeenKeys keys() const { return compressed_keys(s_.a, all_tokens(task_), kind_of_layer(task_)); }

  void compress() const {
    if (s_.compressors.empty()) return;
    std::vector<Linear> inputs = compressed_inputs(task_, s_);
    for (Linear& linear : detached_inputs(task_, s_)) inputs.push_back(std::move(linear));
    column_forward(steps_, w_, inputs, task_.model.hidden);
    makes(steps_, task_, {v4::inputs});
    for (const Compressor& c : s_.compressors) steps_.then(pooling(task_, c, true));
    makes(steps_, task_, {v4::compressed});
  }

  void compress_backward() const {
    if (s_.compressors.empty()) return;
    for (const Compressor& c : s_.compressors) steps_.then(pooling(task_, c, false));
    frees(steps_, task_, {v4::compressed});
    const std::size_t gradient = steps_.cursor();
    for (const Linear& linear : detached_inputs(task_, s_))
      detached_backward(steps_, w_, linear, w_.tokens(), gradient);
    column_backward(steps_, w_, compressed_inputs(task_, s_), task_.model.hidden);
    frees(steps_, task_, {v4::inputs});
  }

  /// Norms of heads and rotation of their last columns, with those of the key.
  void rotate_queries() const {
    const double bytes = activation_bytes(w_.formats.precision);
    steps_.then(stream("rotary", KernelClass::kElementwise, w_.tokens(),
                       s_.columns() + s_.a.head_dim, {bytes, bytes, vector_cost::kRmsNorm}));
    makes(steps_, task_, {v4::unnormed, v4::queries});
  }

  void choose() const {
    const IndexerConfig& i = s_.a.indexer;
    steps_.then(
        rotate("index rotary", w_.formats.precision, w_.tokens(), i.heads * s_.a.qk_rope_head_dim));
    steps_.then(
        index_choice(seen_entries(task_), i, i.heads, 1, unquantised(w_.formats.precision)));
    makes(steps_, task_, {v4::compressed_index_operands, v4::selection});
  }

  void attend(const LayerTask& task) const {
    steps_.then(chosen_training_attention(keys(), s_.shared(), unquantised(w_.formats.precision)));
    makes(steps_, task, {v4::result, v4::sums});
  }

  void learn() const {
    const IndexerConfig& i = s_.a.indexer;
    const SeenKeys entries = seen_entries(task_);
    const Precision precision = unquantised(w_.formats.precision);
    std::size_t last =
        steps_.for_weights(index_target(entries, s_.shared(), precision), {steps_.cursor()});
    uses(steps_, task_, {v4::queries, v4::keys, v4::sums, v4::selection});
    if (w_.split.tp > 1) {
      last =
          steps_.for_weights(LayerCollective{"index target all-reduce", TransferKind::kAllReduce,
                                             Scope::kTensor, Bytes(distribution_bytes(entries, 1))},
                             {last});
    }
    last = steps_.for_weights(index_gradient(entries, i, i.heads, 1, precision), {last});
    frees(steps_, task_, {v4::compressed_index_operands});
    steps_.for_weights(rotate("index rotary backward", w_.formats.precision, w_.tokens(),
                              i.heads * s_.a.qk_rope_head_dim),
                       {last});
  }

  StepList& steps_;
  const LayerTask& task_;
  LayerTask again_ = task_.again();
  const RankWork& w_;
  CompressedShape s_;
};

}  // namespace

std::vector<Linear> compressed_linears(const LayerTask& task) {
  const CompressedShape s(task);
  std::vector<Linear> all = {key_down(task, s), head_queries(task, s), group_values(task, s),
                             row_output(task, s)};
  for (auto* further : {compressed_inputs, detached_inputs})
    for (Linear& linear : further(task, s)) all.push_back(std::move(linear));
  if (s.chooses) all.push_back(entry_queries(task, s));
  return all;
}

void compressed_training_forward(StepList& steps, const LayerTask& task) {
  CompressedTraining(steps, task).forward();
}

void compressed_training_backward(StepList& steps, const LayerTask& task) {
  CompressedTraining(steps, task).backward();
}

}  // namespace orrery
