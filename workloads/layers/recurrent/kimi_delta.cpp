// SPDX-License-Identifier: Apache-2.0
// Kimi delta attention (arXiv 2510.26692) as Kimi K3 has it (vLLM,
// model_executor/models/kimi_linear.py and layers/kda.py): a gated delta network with one head of
// queries, keys and values each, decays by column of keys through a narrow pair of matrices, and a
// sigmoid gate behind the norm of heads. Every tensor parallel rank has the first of the narrow
// matrices whole. Training is the layer of flash-linear-attention (fla/layers/kda.py, ops/kda): the
// chunked rule with decays by column, which keeps what it reads and computes states again. Ranks of
// a tensor parallel group apply the narrow matrices to their own tokens and gather the columns, as
// Megatron-Core does with latents.
#include <utility>

#include "workloads/base/real.h"
#include "workloads/base/require.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/layers/recurrent/kimi_delta_kernels.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// As of gated delta networks (delta_net.cpp).
constexpr double kKimiMultiplyAdds = 4;

/// Columns of the first, narrow matrices.
std::int64_t narrow_columns(const DeltaNetConfig& net) { return net.decay_rank + net.gate_rank; }

/// Queries, keys, values and, where their gates have one matrix, gates.
Linear kimi_input(const LayerTask& task) {
  const DeltaNetConfig& net = task.model.delta_net;
  const std::int64_t gate = net.gate_rank == 0 ? net.values() : 0;
  return {"delta input", task.model.hidden, (net.conv_channels() + gate) / task.work.split.tp,
          task.work.formats.precision, task.weights(task.layer.attention)};
}

Linear kimi_output(const LayerTask& task) {
  return {"delta output", task.model.delta_net.values() / task.work.split.tp, task.model.hidden,
          task.work.formats.precision, task.weights(task.layer.attention)};
}

DeltaShape kimi_shape(const LayerTask& task, std::int64_t sequences, std::int64_t query) {
  return delta_shape(task.model.delta_net, task.work.split.tp, sequences, query,
                     activation_bytes(task.work.formats.precision));
}

bool trains_kimi(const LayerTask& task) { return task.work.batch.phase == Phase::kTraining; }

/// Steps of heads, beside the columns of kimi_input().
Linear kimi_steps(const LayerTask& task) {
  return {.name = "delta step input",
          .in = task.model.hidden,
          .out = task.model.delta_net.value_heads / task.work.split.tp,
          .precision = unquantised(task.work.formats.precision),
          .shares_input = true};
}

Linear kimi_narrow(const LayerTask& task) {
  return {"delta narrow input", task.model.hidden, narrow_columns(task.model.delta_net),
          task.work.formats.precision};
}

/// From the narrow columns to decays of all columns of keys and, where they have two matrices,
/// gates.
std::vector<Linear> kimi_ups(const LayerTask& task) {
  const DeltaNetConfig& net = task.model.delta_net;
  std::vector<Linear> all = {{"delta decay up", net.decay_rank,
                              net.value_heads * net.key_dim / task.work.split.tp,
                              task.work.formats.precision}};
  if (net.gate_rank > 0)
    all.push_back({"delta gate up", net.gate_rank, net.values() / task.work.split.tp,
                   task.work.formats.precision});
  return all;
}

/// All tokens of a training step.
DeltaShape kimi_shape(const LayerTask& task) {
  const AttentionPart all = task.work.batch.attention_parts().front();
  return kimi_shape(task, all.sequences, all.query);
}

// Tensors that forward passes leave.

Tensor kimi_rows(const char* name, const LayerTask& task, std::int64_t columns, double bytes) {
  return kept::of_layer(name, task, real(task.work.tokens() * columns) * bytes);
}

Tensor kimi_narrow_columns(const LayerTask& task) {
  return kimi_rows("delta narrow columns", task, narrow_columns(task.model.delta_net),
                   kept::input_bytes(task.work));
}

Tensor kimi_convolved(const LayerTask& task) {
  const DeltaShape s = kimi_shape(task);
  return kimi_rows("delta convolution input", task, s.channels(), s.bytes);
}

/// As they are projected, and steps in fp32 besides.
Tensor kimi_gates(const LayerTask& task) {
  const DeltaShape s = kimi_shape(task);
  return kept::of_layer("delta decays and steps", task,
                        real(s.tokens()) * (real(s.wide_keys() + s.heads) * s.bytes +
                                            real(s.heads) * kDeltaStateBytes));
}

/// Queries and keys of length 1 with what they were divided by in fp32, values, and the scores and
/// inverse triangles of chunks.
Tensor kimi_rule_inputs(const LayerTask& task) {
  const DeltaShape s = kimi_shape(task);
  const double columns = real(2 * s.keys() + s.values() + 2 * s.heads * s.length);
  return kept::of_layer("delta rule inputs", task,
                        real(s.tokens()) * (columns * s.bytes + real(2 * s.key_heads) * 4));
}

Tensor kimi_gate(const LayerTask& task) {
  const DeltaShape s = kimi_shape(task);
  return kimi_rows("delta gate", task, s.values(), s.bytes);
}

/// With the fp32 deviation of each head.
Tensor kimi_result(const LayerTask& task) {
  const DeltaShape s = kimi_shape(task);
  return kept::of_layer("delta result", task,
                        real(s.tokens()) * (real(s.values()) * s.bytes + real(s.heads) * 4));
}

Tensor kimi_output_input(const LayerTask& task) {
  return kimi_rows("delta output input", task, kimi_shape(task).values(),
                   kept::input_bytes(task.work));
}

/// What backward passes compute again: fp32 decays, w, queries and keys times decays, u and new
/// values, states of chunks and their gradients.
Tensor kimi_chunk_tensors(const LayerTask& task) {
  const DeltaShape s = kimi_shape(task);
  const double columns = real(s.tokens()) * real(3 * s.wide_keys() + 2 * s.values());
  const double states = 2 * real(s.chunks() * s.states());
  return {"delta chunks",
          Bytes((columns + states) * s.bytes + real(s.tokens() * s.wide_keys()) * kDeltaStateBytes),
          TensorRole::kWorking};
}

class KimiDelta final : public Mixer {
 public:
  std::string name() const override { return "delta"; }
  PartParameters parameters(const LlmConfig& model, const LayerConfig& layer,
                            int tp) const override;
  std::vector<PartMatrix> matrices(const LlmConfig& model, const LayerConfig& layer,
                                   int tp) const override;
  SequenceCache cache(const LlmConfig& model, const LayerConfig& layer, int tp) const override;
  double multiply_adds(const LlmConfig& model, const LayerConfig& /*layer*/) const override {
    return kKimiMultiplyAdds * real(model.delta_net.states());
  }
  std::int64_t widest(const LayerTask& task) const override { return kimi_input(task).out; }
  void require_split(const LlmConfig& model, const LayerConfig& /*layer*/, int tp) const override {
    require_divides(model.delta_net.value_heads, tp, "tp", "heads of Kimi delta attention");
  }
  void forward(StepList& steps, const LayerTask& task) const override;
  void backward(StepList& steps, const LayerTask& task) const override;
  void part_forward(StepList& steps, const LayerTask& task,
                    const AttentionPart& part) const override;

 private:
  static void train_forward(StepList& steps, const LayerTask& task);
};

PartParameters KimiDelta::parameters(const LlmConfig& model, const LayerConfig& /*layer*/,
                                     int tp) const {
  const DeltaNetConfig& net = model.delta_net;
  const std::int64_t gate = net.gate_rank == 0 ? model.hidden : net.gate_rank;
  const std::int64_t steps = model.hidden * net.value_heads;
  PartParameters p;
  p.split = (model.hidden * (net.conv_channels() + net.values()) + gate * net.values() +
             net.decay_rank * net.value_heads * net.key_dim + steps) /
            tp;
  p.whole = model.hidden * narrow_columns(net);
  // Taps, A by head and a bias of decays by column; the norm is one of all heads.
  p.split_vectors =
      (net.conv_channels() * net.conv_kernel + net.value_heads * (1 + net.key_dim)) / tp;
  p.whole_vectors = net.value_dim;
  p.sixteen_bit = steps / tp + p.split_vectors + p.whole_vectors;
  return p;
}

std::vector<PartMatrix> KimiDelta::matrices(const LlmConfig& model, const LayerConfig& /*layer*/,
                                            int tp) const {
  using Split = PartMatrix::Split;
  const DeltaNetConfig& net = model.delta_net;
  const std::int64_t keys = net.keys() / tp, values = net.values() / tp;
  const bool narrow = net.gate_rank > 0;
  std::vector<PartMatrix> all;
  for (const std::int64_t width : {keys, keys, values, narrow ? 0 : values, net.value_heads / tp})
    if (width > 0) all.push_back({width, model.hidden, Split::kOutputs});
  all.push_back({net.decay_rank, model.hidden});
  all.push_back({net.value_heads / tp * net.key_dim, net.decay_rank, Split::kOutputs});
  if (narrow) all.push_back({net.gate_rank, model.hidden});
  if (narrow) all.push_back({values, net.gate_rank, Split::kOutputs});
  all.push_back({model.hidden, values, Split::kInputs});
  return all;
}

SequenceCache KimiDelta::cache(const LlmConfig& model, const LayerConfig& /*layer*/, int tp) const {
  return delta_cache(model.delta_net, tp);
}

void KimiDelta::part_forward(StepList& steps, const LayerTask& task,
                             const AttentionPart& part) const {
  const std::int64_t taps = task.model.delta_net.conv_kernel;
  const DeltaShape s = kimi_shape(task, part.sequences, part.query);
  if (part.phase == Phase::kDecode) {
    steps.then(conv_update(s, taps));
    steps.then(kimi_update(s, kDeltaStateBytes));
    return;
  }
  steps.then(conv_forward(s, taps));
  steps.then(kimi_decays(s));
  steps.then(unit_keys(s));
  std::vector<Kernel> chunks = kimi_chunks(s);
  keep_states(chunks.at(kKimiStates), s, part);
  for (Kernel& kernel : chunks) steps.then(std::move(kernel));
}

void KimiDelta::train_forward(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  const DeltaShape s = kimi_shape(task);
  local_forward(steps, w, kimi_narrow(task), w.row_tokens());
  column_forward(steps, w, kimi_ups(task), narrow_columns(task.model.delta_net));
  makes(steps, task, {kimi_narrow_columns});
  column_forward(steps, w, {kimi_input(task), kimi_steps(task)}, task.model.hidden);
  makes(steps, task, {kept::attention_input, kimi_convolved, kimi_gates, kimi_gate});
  steps.then(conv_forward(s, task.model.delta_net.conv_kernel));
  steps.then(kimi_decays(s));
  steps.then(unit_keys(s));
  for (Kernel& kernel : kimi_chunks(s)) steps.then(std::move(kernel));
  makes(steps, task, {kimi_rule_inputs, kimi_result});
  steps.then(gated_norm(s));
  makes(steps, task, {kimi_output_input});
  row_forward(steps, w, kimi_output(task),
              task.scatters_attention() ? RowOutput::kScattered : RowOutput::kReduced);
}

void KimiDelta::backward(StepList& steps, const LayerTask& task) const {
  const RankWork& w = task.work;
  const DeltaShape s = kimi_shape(task);
  const double bytes = activation_bytes(w.formats.precision);
  row_backward(steps, w, kimi_output(task));
  frees(steps, task, {kimi_output_input});
  steps.then(gated_norm_backward(s));
  frees(steps, task, {kimi_gate, kimi_result});
  for (Kernel& kernel : kimi_again(s)) steps.then(std::move(kernel));
  makes(steps, task.again(), {kimi_chunk_tensors});
  for (Kernel& kernel : kimi_backward(s)) steps.then(std::move(kernel));
  frees(steps, task, {kimi_chunk_tensors, kimi_gates});
  steps.then(unit_keys_backward(s));
  frees(steps, task, {kimi_rule_inputs});
  steps.then(conv_backward(s, task.model.delta_net.conv_kernel));
  frees(steps, task, {kimi_convolved});
  column_backward(steps, w, kimi_ups(task), narrow_columns(task.model.delta_net));
  frees(steps, task, {kimi_narrow_columns});
  if (w.recomputes(RecomputeModule::kLayernorm)) {
    steps.then(norm_forward("delta norm", task, w.row_tokens()));
    makes(steps, task.again(), {kept::attention_input});
  }
  local_backward(steps, w, kimi_narrow(task), w.row_tokens());
  column_backward(steps, w, {kimi_input(task), kimi_steps(task)}, task.model.hidden);
  steps.then(stream("delta input gradient add", KernelClass::kElementwise, w.row_tokens(),
                    task.model.hidden, {2 * bytes, bytes, 1}));
  frees(steps, task, {kept::attention_input});
}

void KimiDelta::forward(StepList& steps, const LayerTask& task) const {
  if (trains_kimi(task)) {
    train_forward(steps, task);
    return;
  }
  const DeltaNetConfig& net = task.model.delta_net;
  const RankWork& w = task.work;
  const WeightFormat weights = task.weights(task.layer.attention);
  const std::int64_t tokens = w.tokens();
  column_forward(steps, w, {kimi_input(task)}, task.model.hidden);
  steps.then(gemm("delta step input", unquantised(w.formats.precision),
                  {tokens, net.value_heads / w.split.tp, task.model.hidden}));
  steps.then(gemm("delta narrow input", w.formats.precision,
                  {tokens, narrow_columns(net), task.model.hidden}, weights));
  steps.then(gemm("delta decay up", w.formats.precision,
                  {tokens, net.value_heads * net.key_dim / w.split.tp, net.decay_rank}, weights));
  if (net.gate_rank > 0)
    steps.then(gemm("delta gate up", w.formats.precision,
                    {tokens, net.values() / w.split.tp, net.gate_rank}, weights));
  next_turn(steps, task);
  for (const AttentionPart& part : w.batch.attention_kernels()) part_forward(steps, task, part);
  steps.then(gated_norm(kimi_shape(task, tokens, 1)));
  row_forward(steps, w, kimi_output(task),
              task.scatters_attention() ? RowOutput::kScattered : RowOutput::kReduced);
}

}  // namespace

const Mixer& kimi_delta() {
  static const KimiDelta mixer;
  return mixer;
}

}  // namespace orrery
