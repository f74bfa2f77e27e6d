// SPDX-License-Identifier: Apache-2.0
#include "workloads/llm/grouped_attention.h"

#include "workloads/llm/context_parallel.h"
#include "workloads/llm/kept_tensors.h"
#include "workloads/llm/kernels.h"
#include "workloads/llm/layer_parts.h"
#include "workloads/llm/linear.h"
#include "workloads/llm/real.h"
#include "workloads/require.h"

namespace orrery {
namespace {

/// Columns of queries, with those of their gates, in heads.
std::int64_t gated_heads(const LayerTask& task) {
  return core_shape(task).query_heads * (task.model.attention.output_gate ? 2 : 1);
}

/// Columns of the index queries and the index key of block-sparse attention.
std::int64_t index_columns(const LayerTask& task) {
  if (task.layer.mixer != MixerKind::kBlockSparse) return 0;
  return (core_shape(task).kv_heads + 1) * task.model.attention.indexer.head_dim;
}

Linear qkv_of(const LayerTask& task) {
  const CoreShape shape = core_shape(task);
  return {"qkv",
          task.model.hidden,
          (gated_heads(task) + 2 * shape.kv_heads) * shape.qk_dim + index_columns(task),
          task.work.precision,
          task.weights(task.layer.attention),
          AdaptedMatrix{LoraModule::kQkvProj, 3},
          task.model.attention.qkv_bias ? Bias::kAdded : Bias::kNone};
}

Linear output_of(const LayerTask& task) {
  const CoreShape shape = core_shape(task);
  return {"attention output",
          shape.query_heads * shape.v_dim,
          task.model.hidden,
          task.work.precision,
          task.weights(task.layer.attention),
          AdaptedMatrix{LoraModule::kOProj, 1},
          task.model.attention.output_bias ? Bias::kPassedOn : Bias::kNone};
}

/// Columns of queries and keys: what rotary positions and head norms work on.
std::int64_t rotated_width(const LayerTask& task) {
  const CoreShape shape = core_shape(task);
  return (shape.query_heads + shape.kv_heads) * shape.qk_dim + index_columns(task);
}

void rotary_backward(StepList& steps, const LayerTask& task) {
  if (!task.model.is_rotary()) return;
  steps.then(
      rotate("rotary backward", task.work.precision, task.work.tokens(), rotated_width(task)));
}

}  // namespace

// Rotates queries and keys; in inference the same kernel writes keys and values to the cache.
void rotary_forward(StepList& steps, const LayerTask& task) {
  const LayerWork& w = task.work;
  const CoreShape shape = core_shape(task);
  const double bytes = activation_bytes(w.precision);
  const bool rotary = task.model.is_rotary();
  const bool caches = w.phase != Phase::kTraining;
  if (!rotary && !caches) return;
  Kernel kernel = rotary ? rotate("rotary", w.precision, w.tokens(), rotated_width(task))
                         : stream("cache write", KernelClass::kElementwise, w.tokens(),
                                  rotated_width(task), {0, 0, 0});
  if (caches) {
    const auto values = static_cast<double>(w.tokens() * shape.kv_heads * shape.v_dim);
    // Without rotation the keys have to be read as well.
    kernel.read += Bytes(values * bytes * (rotary ? 1 : 2));
    kernel.written += Bytes(2 * values * element_bytes(w.kv_precision) / w.dcp);
    if (task.layer.mixer == MixerKind::kBlockSparse)
      kernel.written +=
          Bytes(static_cast<double>(w.tokens() * task.model.attention.indexer.head_dim) *
                element_bytes(w.kv_precision));
  }
  steps.then(kernel);
}

void output_gate_forward(StepList& steps, const LayerTask& task) {
  if (!task.model.attention.output_gate) return;
  const CoreShape shape = core_shape(task);
  const double bytes = activation_bytes(task.work.precision);
  steps.then(stream("attention gate", KernelClass::kElementwise, task.work.tokens(),
                    shape.query_heads * shape.v_dim, {2 * bytes, bytes, vector_cost::kSilu + 1}));
  makes(steps, task, {kept::attention_gate});
}

void output_gate_backward(StepList& steps, const LayerTask& task) {
  if (!task.model.attention.output_gate) return;
  const CoreShape shape = core_shape(task);
  const double bytes = activation_bytes(task.work.precision);
  steps.then(stream("attention gate backward", KernelClass::kElementwise, task.work.tokens(),
                    shape.query_heads * shape.v_dim,
                    {3 * bytes, 2 * bytes, 2 * vector_cost::kSilu + 2}));
  uses(steps, task, {kept::attention_result});
  frees(steps, task, {kept::attention_gate});
}

std::vector<Linear> attention_linears(const LayerTask& task) {
  return {qkv_of(task), output_of(task)};
}

SequenceCache GroupedAttention::cache(const LlmConfig& model, int tp) const {
  const AttentionConfig& a = model.attention;
  return {2 * local_kv_heads(a, tp) * a.head_dim, 0};
}

std::vector<KeyTerm> GroupedAttention::key_terms(const LlmConfig& model) const {
  return {{real(2 * model.attention.heads * model.attention.head_dim), 0}};
}

std::int64_t GroupedAttention::widest(const LayerTask& task) const { return qkv_of(task).out; }

void GroupedAttention::part_forward(StepList& steps, const LayerTask& task,
                                    const AttentionPart& part) const {
  context_core_forward(steps, task, part);
}

PartParameters GroupedAttention::parameters(const LlmConfig& model, int tp) const {
  const AttentionConfig& a = model.attention;
  const std::int64_t query = a.heads / tp * a.head_dim;
  const std::int64_t key = local_kv_heads(a, tp) * a.head_dim;
  PartParameters p;
  p.split = model.hidden * (query * (a.output_gate ? 2 : 1) + 2 * key) + query * model.hidden;
  if (a.qkv_bias) p.split_vectors += query + 2 * key;
  if (a.sinks) p.split_vectors += a.heads / tp;
  if (a.output_bias) p.whole_vectors += model.hidden;
  if (a.qk_norm && a.qk_norm_all_heads) p.split_vectors += query + key;
  if (a.qk_norm && !a.qk_norm_all_heads) p.whole_vectors += 2 * a.head_dim;
  return p;
}

void GroupedAttention::require_split(const LlmConfig& model, int tp) const {
  require_divides(model.attention.heads, tp, "tp", "attention heads");
  const std::int64_t kv_heads = model.attention.kv_heads;
  require(kv_heads % tp == 0 || tp % kv_heads == 0, "parallel.tp",
          std::to_string(kv_heads) + " KV heads cannot be split or copied " + std::to_string(tp) +
              " ways",
          {{}, {"tp must divide " + std::to_string(kv_heads) + " or be a multiple of it"}});
}

void GroupedAttention::forward(StepList& steps, const LayerTask& task) const {
  const LayerWork& w = task.work;
  const double bytes = activation_bytes(w.precision);
  column_forward(steps, w, {qkv_of(task)}, task.model.hidden);
  makes(steps, task, {kept::attention_input});
  if (task.model.attention.qk_norm) {
    steps.then(stream("query-key norm", KernelClass::kNormalization, w.tokens(),
                      rotated_width(task), {bytes, bytes, vector_cost::kRmsNorm}));
    makes(steps, task, {kept::unnormed_heads});
  }
  rotary_forward(steps, task);
  for (const AttentionPart& part : w.attention_kernels()) part_forward(steps, task, part);
  output_gate_forward(steps, task);
  makes(steps, task, {kept::output_projection_input});
  row_forward(steps, w, output_of(task),
              task.scatters_attention() ? RowOutput::kScattered : RowOutput::kReduced);
}

void GroupedAttention::backward(StepList& steps, const LayerTask& task) const {
  const LayerWork& w = task.work;
  const double bytes = activation_bytes(w.precision);
  row_backward(steps, w, output_of(task));
  if (!w.narrow_inputs) uses(steps, task, {kept::attention_result});
  frees(steps, task, {kept::output_projection_input});
  output_gate_backward(steps, task);
  attention_core_backward(steps, task);
  rotary_backward(steps, task);
  if (task.model.attention.qk_norm) {
    steps.then(stream("query-key norm backward", KernelClass::kNormalization, w.tokens(),
                      rotated_width(task), {2 * bytes, bytes, vector_cost::kNormBackward}));
    frees(steps, task, {kept::unnormed_heads});
  }
  if (w.recomputes(RecomputeModule::kLayernorm)) {
    steps.then(norm_forward("attention norm", task, w.row_tokens()));
    makes(steps, task.again(), {kept::attention_input});
  }
  column_backward(steps, w, {qkv_of(task)}, task.model.hidden);
  frees(steps, task, {kept::attention_input});
}

const Mixer& grouped_attention() {
  static const GroupedAttention mixer;
  return mixer;
}

}  // namespace orrery
