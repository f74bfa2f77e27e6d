// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/attention/grouped_attention.h"

#include <fmt/core.h>

#include <utility>

#include "workloads/base/real.h"
#include "workloads/base/require.h"
#include "workloads/layers/attention/context_parallel.h"
#include "workloads/layers/attention/rotary_kernels.h"
#include "workloads/layers/parts/layer_op.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// Columns of the index queries and the index key of block-sparse attention.
std::int64_t index_columns(const LayerTask& task) {
  if (task.layer.mixer != MixerKind::kBlockSparse) return 0;
  return (core_shape(task).kv_heads + 1) * task.attention().indexer.head_dim;
}

/// Training: index queries and the index key by a product of their own, whose input is detached.
Linear index_of(const LayerTask& task) {
  return mixer_matrix(task, "index projection", task.model.hidden, index_columns(task),
                      MatrixSplit::kNone);
}

bool trains_index(const LayerTask& task) { return task.work.trains() && index_columns(task) > 0; }

/// Queries, with those of their gates, keys and values; values that are keys have no columns.
Linear qkv_of(const LayerTask& task) {
  const CoreShape shape = core_shape(task);
  const AttentionConfig& a = task.attention();
  const std::int64_t gates = a.output_gate ? 1 : 0;
  const std::int64_t keys = shape.kv_heads * shape.qk_dim;
  const std::int64_t values = a.values_of_keys ? 0 : shape.kv_heads * shape.v_dim;
  const std::int64_t queries = shape.query_heads * shape.qk_dim * (1 + gates);
  Linear qkv =
      mixer_matrix(task, "qkv", task.model.hidden,
                   queries + keys + values + (task.work.trains() ? 0 : index_columns(task)),
                   MatrixSplit::kColumns);
  qkv.adapted = AdaptedMatrix{LoraModule::kQkvProj, 3};
  if (a.qkv_bias) qkv.bias = Bias::kAdded;
  qkv.parts = {{queries, LoraModule::kQProj, 1 + gates}, {keys, LoraModule::kKProj}};
  if (values > 0) qkv.parts.push_back({values, LoraModule::kVProj});
  return qkv;
}

Linear output_of(const LayerTask& task) {
  const CoreShape shape = core_shape(task);
  Linear output = mixer_matrix(task, "attention output", shape.query_heads * shape.v_dim,
                               task.model.hidden, MatrixSplit::kRows);
  output.adapted = AdaptedMatrix{LoraModule::kOProj};
  if (task.attention().output_bias) output.bias = Bias::kPassedOn;
  return output;
}

/// The gate of heads: a column for each, of which the sigmoid scales the outputs of its head.
Linear gate_of(const LayerTask& task) {
  Linear gate = mixer_matrix(task, "attention gate", task.model.hidden,
                             core_shape(task).query_heads, MatrixSplit::kColumns);
  gate.shares_input = true;
  return gate;
}

/// Matrices that read the layer's input. In training the gate of heads reads what has been gathered
/// for queries.
std::vector<Linear> input_linears(const LayerTask& task) {
  std::vector<Linear> all = {qkv_of(task)};
  if (task.attention().head_gate && task.work.trains()) all.push_back(gate_of(task));
  return all;
}

/// A pass over what heads give, which reads that again behind its gradient.
LayerOp gate_op(Kernel forward, Kernel gradient) {
  return {kernels({std::move(forward)}),
          [gradient = std::move(gradient)](StepList& steps, const LayerTask& task) {
            steps.then(gradient);
            uses(steps, task, {kept::attention_result});
          },
          {kept::attention_gate}};
}

Kernel over_heads(const LayerTask& task, const char* name, StreamCost cost) {
  const CoreShape shape = core_shape(task);
  return elementwise(name, task.work.tokens(), shape.query_heads * shape.v_dim, cost);
}

/// A gate for each head. Gradients are those of what heads gave and, sums over its columns, of
/// their gates.
LayerOp head_gate(const LayerTask& task) {
  if (!task.attention().head_gate) return {};
  const double bytes = task.bytes();
  const Linear gate = gate_of(task);
  const Bytes gates(real(task.work.tokens() * gate.out) * bytes);
  Kernel scaled = over_heads(task, "attention gating", {bytes, bytes, 1});
  scaled.read += gates;
  Kernel gradient = over_heads(task, "attention gating backward", {2 * bytes, bytes, 3});
  gradient.read += gates;
  gradient.written += gates;
  LayerOp op = gate_op(scaled, std::move(gradient));
  if (!task.work.trains())
    op.forward = kernels(
        {gemm(gate.name, gate.precision, {task.work.tokens(), gate.out, gate.in}, gate.weights),
         std::move(scaled)});
  return op;
}

// Rotates queries and keys; in inference the same kernel writes keys and values to the cache.
void rotary_forward(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  const CoreShape shape = core_shape(task);
  const double bytes = activation_bytes(w.formats.precision);
  const std::int64_t width = rotated_width(task);
  // Nothing of a sequence is kept that an encoder has read.
  const bool caches = !w.trains() && task.layer.kind != LayerKind::kEncoder;
  if (width == 0 && !caches) return;
  Kernel kernel = width > 0
                      ? rotated(task, width)
                      : elementwise("cache write", w.tokens(),
                                    (shape.query_heads + shape.kv_heads) * shape.qk_dim, {0, 0, 0});
  if (caches) {
    const std::int64_t heads = shape.query_heads + shape.kv_heads;
    const double keys = real(w.tokens() * shape.kv_heads * shape.qk_dim);
    const double values = real(w.tokens() * shape.kv_heads * shape.v_dim);
    // What of the keys is not rotated has to be read as well.
    const std::int64_t of_head = width > 0 ? (width - index_columns(task)) / heads : 0;
    const double rotated = real(w.tokens() * shape.kv_heads * of_head);
    kernel.read += Bytes((values + keys - rotated) * bytes);
    kernel.written += Bytes((keys + values) * element_bytes(w.formats.kv_precision) / w.split.dcp);
    if (task.layer.mixer == MixerKind::kBlockSparse)
      kernel.written += Bytes(real(w.tokens() * task.attention().indexer.head_dim) *
                              element_bytes(w.formats.kv_precision));
  }
  // Queries and keys, and both ways into the cache.
  if (!w.trains()) kernel.launches = w.launches((width > 0 ? 2 : 0) + (caches ? 2 : 0));
  steps.then(kernel);
}

void project_heads(StepList& steps, const LayerTask& task) {
  std::vector<Linear> inputs = input_linears(task);
  if (trains_index(task)) inputs.push_back(index_of(task));
  column_forward(steps, task.work, inputs, task.model.hidden);
}

void project_heads_backward(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  norm_again(steps, task, "attention norm");
  if (trains_index(task)) detached_backward(steps, w, index_of(task), w.tokens(), steps.cursor());
  column_backward(steps, w, input_linears(task), task.model.hidden);
}

/// Norms of queries and keys.
LayerOp heads_norm(const LayerTask& task) {
  const std::int64_t tokens = task.work.tokens(), width = normed_heads_width(task);
  if (width == 0) return {};
  return {kernels({rms_norm_of("query-key norm", tokens, width, task.bytes())}),
          kernels({norm_gradient("query-key norm backward", tokens, width, task.bytes())}),
          {kept::unnormed_heads}};
}

const GroupedAttention grouped_attention{};
const AddedMixer added_grouped_attention(MixerKind::kAttention, grouped_attention);

}  // namespace

std::int64_t normed_heads_width(const LayerTask& task) {
  const CoreShape shape = core_shape(task);
  const AttentionConfig& a = task.attention();
  const std::int64_t normed =
      a.qk_norm ? (shape.query_heads + shape.kv_heads) * shape.qk_dim + index_columns(task) : 0;
  return normed + (a.value_norm ? shape.kv_heads * shape.v_dim : 0);
}

std::int64_t rotated_width(const LayerTask& task) {
  const CoreShape shape = core_shape(task);
  if (!task.model.is_rotary()) return 0;
  const std::int64_t of_head = task.attention().rotary_dim.value_or(shape.qk_dim);
  return (shape.query_heads + shape.kv_heads) * of_head + index_columns(task);
}

LayerOp rotary_op(const LayerTask& task) {
  LayerOp op{rotary_forward};
  const std::int64_t width = rotated_width(task);
  if (width > 0) op.gradient = kernels({rotated_backward(task, width)});
  return op;
}

LayerOp output_gate(const LayerTask& task) {
  if (!task.attention().output_gate) return {};
  const double bytes = task.bytes();
  return gate_op(over_heads(task, "attention gate", {2 * bytes, bytes, vector_cost::kSilu + 1}),
                 over_heads(task, "attention gate backward",
                            {3 * bytes, 2 * bytes, 2 * vector_cost::kSilu + 2}));
}

SequenceCache GroupedAttention::cache(const LlmConfig& model, const LayerConfig& layer,
                                      int tp) const {
  const AttentionConfig& a = model.attention_of(layer);
  if (layer.kind == LayerKind::kEncoder) return {};
  return {local_kv_heads(a, tp) * (a.head_dim + a.value_dim()), 0};
}

std::vector<KeyTerm> GroupedAttention::key_terms(const LlmConfig& model,
                                                 const LayerConfig& layer) const {
  const AttentionConfig& a = model.attention_of(layer);
  return {{real(a.heads * (a.head_dim + a.value_dim())), 0}};
}

void GroupedAttention::part_forward(StepList& steps, const LayerTask& task,
                                    const AttentionPart& part) const {
  context_core_forward(steps, task, part);
}

PartWeights GroupedAttention::weights(const LayerTask& task) const {
  const AttentionConfig& a = task.attention();
  const CoreShape shape = core_shape(task);
  PartWeights all{{qkv_of(task)}};
  if (a.head_gate) all.matrices.push_back(gate_of(task));
  all.matrices.push_back(output_of(task));
  if (a.sinks) all.split_vectors += shape.query_heads;
  if (!a.qk_norm || !a.norm_scales) return all;
  if (a.qk_norm_all_heads)
    all.split_vectors += (shape.query_heads + shape.kv_heads) * shape.qk_dim;
  else
    all.whole_vectors += 2 * shape.qk_dim;
  return all;
}

void GroupedAttention::require_split(const LlmConfig& model, const LayerConfig& layer,
                                     int tp) const {
  require_divides(model.attention_of(layer).heads, tp, "tp", "attention heads");
  const std::int64_t kv_heads = model.attention_of(layer).kv_heads;
  if (kv_heads % tp == 0 || tp % kv_heads == 0) return;  // sweeps ask for each layer of each point
  throw config::KeyError(
      "parallel.tp", fmt::format("{} KV heads cannot be split or copied {} ways", kv_heads, tp),
      {{}, {"tp must divide " + std::to_string(kv_heads) + " or be a multiple of it"}});
}

std::vector<LayerOp> GroupedAttention::ops(const LayerTask& task) const {
  const auto core = [this](StepList& steps, const LayerTask& of) { core_backward(steps, of); };
  LayerOp gate = output_gate(task);
  gate.makes = {kept::output_projection_input};
  return {{project_heads, project_heads_backward, {kept::attention_input}},
          heads_norm(task),
          rotary_op(task),
          {parts_forward(), core},
          head_gate(task),
          std::move(gate),
          core_output_op(output_of(task))};
}

void GroupedAttention::core_backward(StepList& steps, const LayerTask& task) const {
  attention_core_backward(steps, task);
}

std::string attention_sizes(const LlmConfig& model, const LayerConfig& layer) {
  const AttentionConfig& a = model.attention_of(layer);
  const bool latent = a.kind == AttentionKind::kLatent;
  const std::int64_t values = latent ? a.v_head_dim : a.value_dim();
  std::string text = fmt::format(" {} x {}", a.heads, a.head_dim);
  if (values != a.head_dim) text += "/" + std::to_string(values);
  text += latent ? ", latents of " + std::to_string(a.kv_elements_per_token())
                 : ", " + std::to_string(a.kv_heads) + " KV heads";
  if (layer.window > 0) text += ", window " + std::to_string(layer.window);
  if (layer.chunk > 0) text += ", chunks of " + std::to_string(layer.chunk);
  return text;
}

}  // namespace orrery
