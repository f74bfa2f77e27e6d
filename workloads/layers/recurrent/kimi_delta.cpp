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
#include "workloads/layers/parts/linear.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/layers/recurrent/kimi_delta_kernels.h"

namespace orrery {
namespace {

/// As of gated delta networks (delta_net.cpp).
constexpr double kKimiMultiplyAdds = 4;

std::int64_t narrow_columns(const DeltaNetConfig& net) { return net.decay_rank + net.gate_rank; }

/// Queries, keys, values and, where their gates have one matrix, gates.
Linear kimi_input(const LayerTask& task) {
  const DeltaNetConfig& net = task.model.delta_net;
  const int tp = task.work.split.tp;
  const std::int64_t values = net.gate_rank == 0 ? 2 : 1;
  Linear input = mixer_matrix(task, "delta input", task.model.hidden,
                              (2 * net.keys() + values * net.values()) / tp, MatrixSplit::kColumns);
  input.parts = {{.out = 2 * net.keys() / tp, .count = 2},
                 {.out = values * net.values() / tp, .count = values}};
  return input;
}

Linear kimi_output(const LayerTask& task) {
  return mixer_matrix(task, "delta output", task.model.delta_net.values() / task.work.split.tp,
                      task.model.hidden, MatrixSplit::kRows);
}

DeltaShape kimi_shape(const LayerTask& task, std::int64_t sequences, std::int64_t query) {
  return delta_shape(task.model.delta_net, task.work.split.tp, sequences, query, task.bytes());
}

/// Steps of heads, which read what kimi_input() reads.
Linear kimi_steps(const LayerTask& task) {
  Linear steps = sixteen_bit_matrix(task, "delta step input", task.model.hidden,
                                    task.model.delta_net.value_heads / task.work.split.tp,
                                    MatrixSplit::kColumns);
  steps.shares_input = true;
  return steps;
}

Linear kimi_narrow(const LayerTask& task) {
  const DeltaNetConfig& net = task.model.delta_net;
  Linear narrow = mixer_matrix(task, "delta narrow input", task.model.hidden, narrow_columns(net),
                               MatrixSplit::kNone);
  narrow.parts = {{net.decay_rank}};
  if (net.gate_rank > 0) narrow.parts.push_back({net.gate_rank});
  return narrow;
}

/// From the narrow columns to decays of all columns of keys and, where they have two matrices,
/// gates.
std::vector<Linear> kimi_ups(const LayerTask& task) {
  const DeltaNetConfig& net = task.model.delta_net;
  const int tp = task.work.split.tp;
  std::vector<Linear> all = {mixer_matrix(task, "delta decay up", net.decay_rank,
                                          net.value_heads * net.key_dim / tp,
                                          MatrixSplit::kColumns)};
  if (net.gate_rank > 0)
    all.push_back(mixer_matrix(task, "delta gate up", net.gate_rank, net.values() / tp,
                               MatrixSplit::kColumns));
  return all;
}

/// All tokens of a training step.
DeltaShape kimi_shape(const LayerTask& task) {
  const AttentionPart all = task.work.batch.attention_parts().front();
  return kimi_shape(task, all.sequences, all.query);
}

// Tensors that forward passes leave.

Tensor kimi_narrow_columns(const LayerTask& task) {
  return kept::of_tokens("delta narrow columns", task, narrow_columns(task.model.delta_net),
                         kept::input_bytes(task.work));
}

Tensor kimi_convolved(const LayerTask& task) {
  const DeltaShape s = kimi_shape(task);
  return kept::of_tokens("delta convolution input", task, s.channels(), s.bytes);
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
  return kept::of_tokens("delta gate", task, s.values(), s.bytes);
}

/// With the fp32 deviation of each head.
Tensor kimi_result(const LayerTask& task) {
  const DeltaShape s = kimi_shape(task);
  return kept::of_layer("delta result", task,
                        real(s.tokens()) * (real(s.values()) * s.bytes + real(s.heads) * 4));
}

Tensor kimi_output_input(const LayerTask& task) {
  return kept::of_tokens("delta output input", task, kimi_shape(task).values(),
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

// Training: narrow matrices on each rank's own tokens, and those that read gathered tokens.
void kimi_project(StepList& steps, const LayerTask& task) {
  local_forward(steps, task.work, kimi_narrow(task), task.work.row_tokens());
  column_forward(steps, task.work, kimi_ups(task), narrow_columns(task.model.delta_net));
  makes(steps, task, {kimi_narrow_columns});
  column_forward(steps, task.work, {kimi_input(task), kimi_steps(task)}, task.model.hidden);
}

void kimi_project_backward(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  const double bytes = activation_bytes(w.formats.precision);
  column_backward(steps, w, kimi_ups(task), narrow_columns(task.model.delta_net));
  frees(steps, task, {kimi_narrow_columns});
  norm_again(steps, task, "delta norm");
  local_backward(steps, w, kimi_narrow(task), w.row_tokens());
  column_backward(steps, w, {kimi_input(task), kimi_steps(task)}, task.model.hidden);
  steps.then(elementwise("delta input gradient add", w.row_tokens(), task.model.hidden,
                         {2 * bytes, bytes, 1}));
}

/// The gradient of the chunked rule, which computes decays and states again.
void kimi_rule_gradient(StepList& steps, const LayerTask& task) {
  const DeltaShape s = kimi_shape(task);
  for (Kernel& kernel : kimi_again(s)) steps.then(std::move(kernel));
  makes(steps, task.again(), {kimi_chunk_tensors});
  for (Kernel& kernel : kimi_backward(s)) steps.then(std::move(kernel));
  frees(steps, task, {kimi_chunk_tensors});
}

std::vector<LayerOp> kimi_training(const LayerTask& task) {
  const DeltaShape s = kimi_shape(task);
  const std::int64_t taps = task.model.delta_net.conv_kernel;
  return {{kimi_project,
           kimi_project_backward,
           {kept::attention_input},
           {kimi_convolved, kimi_gates, kimi_gate}},
          {kernels({conv_forward(s, taps)}),
           kernels({conv_backward(s, taps)}),
           {},
           {},
           {kimi_convolved}},
          {kernels({kimi_decays(s), unit_keys(s)}),
           kernels({unit_keys_backward(s)}),
           {},
           {},
           {kimi_rule_inputs}},
          {kernels(kimi_chunks(s)),
           kimi_rule_gradient,
           {},
           {kimi_rule_inputs, kimi_result},
           {kimi_gates}},
          {kernels({gated_norm(s)}),
           kernels({gated_norm_backward(s)}),
           {},
           {kimi_output_input},
           {kimi_gate, kimi_result}},
          row_op(kimi_output(task), {kimi_output_input})};
}

/// Inference: products beside the one of queries, keys and values.
std::vector<Kernel> kimi_products(const LayerTask& task) {
  std::vector<Linear> linears = {kimi_steps(task), kimi_narrow(task)};
  for (Linear& up : kimi_ups(task)) linears.push_back(std::move(up));
  std::vector<Kernel> all;
  all.reserve(linears.size());
  for (const Linear& linear : linears)
    all.push_back(gemm(linear.name, linear.precision, {task.work.tokens(), linear.out, linear.in},
                       linear.weights));
  return all;
}

class KimiDelta final : public Mixer {
 public:
  std::string name() const override { return "delta"; }
  PartWeights weights(const LayerTask& task) const override {
    const DeltaNetConfig& net = task.model.delta_net;
    PartWeights all{{kimi_input(task), kimi_steps(task), kimi_narrow(task)}};
    for (Linear& up : kimi_ups(task)) all.matrices.push_back(std::move(up));
    all.matrices.push_back(kimi_output(task));
    // Taps, A by head and a bias of decays by column; the norm is one of all heads.
    all.split_vectors =
        (net.conv_channels() * net.conv_kernel + net.value_heads * (1 + net.key_dim)) /
        task.work.split.tp;
    all.whole_vectors = net.value_dim;
    return all;
  }

  SequenceCache cache(const LlmConfig& model, const LayerConfig& /*layer*/, int tp) const override {
    return delta_cache(model.delta_net, tp);
  }

  double multiply_adds(const LlmConfig& model, const LayerConfig& /*layer*/) const override {
    return kKimiMultiplyAdds * real(model.delta_net.states());
  }
  void require_split(const LlmConfig& model, const LayerConfig& /*layer*/, int tp) const override {
    require_divides(model.delta_net.value_heads, tp, "tp", "heads of Kimi delta attention");
  }
  std::vector<LayerOp> ops(const LayerTask& task) const override {
    if (task.work.trains()) return kimi_training(task);
    return {input_op({kimi_input(task)}, "delta norm"),
            {kernels(kimi_products(task))},
            {parts_forward()},
            {kernels({gated_norm(kimi_shape(task, task.work.tokens(), 1))})},
            row_op(kimi_output(task))};
  }

  void part_forward(StepList& steps, const LayerTask& task,
                    const AttentionPart& part) const override {
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
};

const KimiDelta kimi_delta{};
const AddedMixer added_kimi_delta(MixerKind::kKimiDelta, kimi_delta);

}  // namespace

}  // namespace orrery
