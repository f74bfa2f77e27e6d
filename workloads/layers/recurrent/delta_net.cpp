// SPDX-License-Identifier: Apache-2.0
// Gated delta networks (Yang et al. 2024, arXiv 2412.06464) as Qwen3-Next and Qwen3.5 have them
// (transformers, modeling_qwen3_next.py). Training is Megatron-Core's (core/ssm/gated_delta_net.py
// at 00caa53): one input projection by columns, copies to the layouts of causal_conv1d and of
// flash-linear-attention, keys of a head copied for each of its value heads, then the chunked rule.
// In inference (vLLM, model_executor/models/qwen3_next.py) the narrow projection of decays and
// steps is a product of its own that is never quantised, kernels read heads where they lie, prompts
// leave their last states and new tokens update them in place.
#include <utility>

#include "sim/serving/kernel_rules.h"
#include "workloads/base/real.h"
#include "workloads/base/require.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/layers/recurrent/delta_net_kernels.h"

namespace orrery {
namespace {

const KernelSwitch kFusedDeltaRule{
    "fused_delta_rule", false,
    "compute the chunks of gated delta networks over prompts in one kernel (FlashInfer's "
    "chunk_gated_delta_rule)"};

/// Multiply-adds for each element of a state and token: k k^T, v k^T, the state's decay by them,
/// and q S (Megatron-LM, training.py, num_floating_point_operations, core 0.16).
constexpr double kDeltaMultiplyAdds = 4;

/// Training joins steps and decays of heads to it.
Linear delta_input(const LayerTask& task) {
  const DeltaNetConfig& net = task.model.delta_net;
  const int tp = task.work.split.tp;
  const std::int64_t gates = task.work.trains() ? net.gates() / tp : 0;
  Linear input =
      mixer_matrix(task, "delta input", task.model.hidden,
                   (net.conv_channels() + net.values()) / tp + gates, MatrixSplit::kColumns);
  input.sixteen_bit = gates;
  return input;
}

std::vector<Linear> delta_inputs(const LayerTask& task) {
  if (task.work.trains()) return {delta_input(task)};
  return {delta_input(task), sixteen_bit_matrix(task, "delta gate input", task.model.hidden,
                                                task.model.delta_net.gates() / task.work.split.tp,
                                                MatrixSplit::kColumns)};
}

Linear delta_output(const LayerTask& task) {
  return mixer_matrix(task, "delta output", task.model.delta_net.values() / task.work.split.tp,
                      task.model.hidden, MatrixSplit::kRows);
}

DeltaShape delta_shape_of(const LayerTask& task, std::int64_t sequences, std::int64_t query) {
  DeltaShape s =
      delta_shape(task.model.delta_net, task.work.split.tp, sequences, query, task.bytes());
  if (task.work.trains()) s.product_keys = s.wide_keys();
  return s;
}

/// All tokens of a training step, or of the norm of a step of inference.
DeltaShape delta_shape_of(const LayerTask& task) {
  if (!task.work.trains()) return delta_shape_of(task, task.work.tokens(), 1);
  const AttentionPart all = task.work.batch.attention_parts().front();
  return delta_shape_of(task, all.sequences, all.query);
}

// Tensors that forward passes leave.

Tensor delta_convolved(const LayerTask& task) {
  const DeltaShape s = delta_shape_of(task);
  return kept::of_tokens("delta convolution input", task, s.channels(), s.bytes);
}

/// With the projections of steps and decays.
Tensor delta_gate(const LayerTask& task) {
  const DeltaShape s = delta_shape_of(task);
  return kept::of_tokens("delta gate", task, s.values() + 2 * s.heads, s.bytes);
}

/// Queries and keys of length 1 before they are copied for value heads, with what they were
/// divided by in fp32; where there is one value head a key head the copies are all there is.
Tensor delta_unit_keys(const LayerTask& task) {
  const DeltaShape s = delta_shape_of(task);
  const double columns = s.heads > s.key_heads ? real(2 * s.keys()) : 0;
  return kept::of_layer("delta unit keys", task,
                        real(s.tokens()) * (columns * s.bytes + real(2 * s.key_heads) * 4));
}

/// Queries, keys, values, steps, sums of decays in fp32 and the inverse triangles of chunks.
Tensor delta_rule_inputs(const LayerTask& task) {
  const DeltaShape s = delta_shape_of(task);
  const double columns = real(2 * s.wide_keys() + s.values() + s.heads + s.heads * s.length);
  return kept::of_layer("delta rule inputs", task,
                        real(s.tokens()) * (columns * s.bytes + real(s.heads) * 4));
}

/// With the fp32 deviation of each head.
Tensor delta_result(const LayerTask& task) {
  const DeltaShape s = delta_shape_of(task);
  return kept::of_layer("delta result", task,
                        real(s.tokens()) * (real(s.values()) * s.bytes + 4 * real(s.heads)));
}

/// Behind the norm, in front of the gate.
Tensor delta_normed(const LayerTask& task) {
  const DeltaShape s = delta_shape_of(task);
  return kept::of_tokens("delta normed result", task, s.values(), s.bytes);
}

Tensor delta_output_input(const LayerTask& task) {
  return kept::of_tokens("delta output input", task, delta_shape_of(task).values(),
                         kept::input_bytes(task.work));
}

/// What backward passes have at once of what they compute again: w, u, new values, states of
/// chunks and their gradients.
Tensor delta_again(const LayerTask& task) {
  const DeltaShape s = delta_shape_of(task);
  const double bytes =
      (real(s.tokens() * (s.wide_keys() + 2 * s.values())) + 2 * real(s.chunks() * s.states())) *
      s.bytes;
  return {"delta chunks", Bytes(bytes), TensorRole::kWorking};
}

/// `launches` copies of [tokens, width] in all.
Kernel delta_copies(const LayerTask& task, const char* name, std::int64_t width,
                    std::int64_t launches) {
  const double bytes = task.bytes();
  Kernel kernel = elementwise(name, task.work.tokens(), width, {bytes, bytes, 0});
  kernel.launches = launches;
  return kernel;
}

/// Queries and keys of each key head to its value heads, or the sums of their gradients.
std::vector<Kernel> copy_keys(const DeltaShape& s, bool backward) {
  if (s.heads == s.key_heads) return {};
  const double narrow = real(2 * s.tokens() * s.keys()) * s.bytes;
  const double wide = real(2 * s.tokens() * s.wide_keys()) * s.bytes;
  Kernel kernel = elementwise(backward ? "delta key copies backward" : "delta key copies",
                              s.tokens(), 2 * s.wide_keys(), {0, 0, 0});
  kernel.read = Bytes(backward ? wide : narrow);
  kernel.written = Bytes(backward ? narrow : wide);
  kernel.launches = 2;
  return {kernel};
}

std::vector<Kernel> decays_and_triangles(const DeltaShape& s) {
  std::vector<Kernel> all = {delta_gates(s)};
  for (Kernel& kernel : delta_triangles(s)) all.push_back(std::move(kernel));
  return all;
}

/// The gradient of the chunked rule, which computes states again.
void delta_rule_gradient(StepList& steps, const LayerTask& task) {
  const DeltaShape s = delta_shape_of(task);
  steps.then(delta_chunk_values(s));
  makes(steps, task.again(), {delta_again});
  steps.then(delta_states(s));
  for (Kernel& kernel : delta_backward(s)) steps.then(std::move(kernel));
  frees(steps, task, {delta_again});
}

/// Training between the projections. Gradients of decays run behind those of keys.
std::vector<LayerOp> delta_training(const LayerTask& task) {
  const DeltaShape s = delta_shape_of(task);
  const std::int64_t taps = task.model.delta_net.conv_kernel, channels = s.channels();
  const auto copies = [&](const char* name, std::int64_t width, std::int64_t launches) {
    return kernels({delta_copies(task, name, width, launches)});
  };
  return {{copies("delta convolution layout", channels, 1),
           copies("delta convolution layout backward", channels, 1)},
          {kernels({conv_forward(s, taps)}), kernels({conv_backward(s, taps)}), {delta_convolved}},
          {copies("delta head layout", channels + s.values(), 4),
           copies("delta head layout backward", channels + s.values(), 4)},
          {{}, kernels({delta_gates_backward(s)}), {delta_gate}},
          {kernels({unit_keys(s)}), kernels({unit_keys_backward(s)}), {delta_unit_keys}},
          {kernels(copy_keys(s, false)), kernels(copy_keys(s, true))},
          {kernels(decays_and_triangles(s)), {}, {}, {delta_rule_inputs}},
          {kernels({delta_chunk_values(s), delta_states(s), delta_outputs(s)}),
           delta_rule_gradient,
           {},
           {delta_result},
           {delta_rule_inputs}}};
}

class DeltaNet final : public Mixer {
 public:
  std::string name() const override { return "delta"; }
  PartWeights weights(const LayerTask& task) const override {
    const DeltaNetConfig& net = task.model.delta_net;
    PartWeights all{delta_inputs(task)};
    all.matrices.push_back(delta_output(task));
    // Taps of the convolution, A and the bias of decays by head; the norm is one of all heads.
    all.split_vectors =
        (net.conv_channels() * net.conv_kernel + 2 * net.value_heads) / task.work.split.tp;
    all.whole_vectors = net.value_dim;
    return all;
  }

  SequenceCache cache(const LlmConfig& model, const LayerConfig& /*layer*/, int tp) const override {
    return delta_cache(model.delta_net, tp);
  }

  double multiply_adds(const LlmConfig& model, const LayerConfig& /*layer*/) const override {
    return kDeltaMultiplyAdds * real(model.delta_net.states());
  }
  void require_split(const LlmConfig& model, const LayerConfig& /*layer*/, int tp) const override {
    require_divides(model.delta_net.key_heads, tp, "tp", "key heads of gated delta networks");
    require_divides(model.delta_net.value_heads, tp, "tp", "value heads of gated delta networks");
  }

  std::vector<LayerOp> ops(const LayerTask& task) const override {
    const DeltaShape s = delta_shape_of(task);
    std::vector<LayerOp> all = {input_op(delta_inputs(task), "delta norm")};
    if (task.work.trains())
      for (LayerOp& op : delta_training(task)) all.push_back(std::move(op));
    else
      all.push_back({parts_forward()});
    all.push_back({kernels({gated_norm(s)}),
                   kernels({gated_norm_backward(s)}),
                   {delta_normed},
                   {delta_output_input},
                   {delta_result}});
    all.push_back(row_op(delta_output(task), {delta_output_input}));
    return all;
  }

  void part_forward(StepList& steps, const LayerTask& task,
                    const AttentionPart& part) const override {
    const std::int64_t taps = task.model.delta_net.conv_kernel;
    const DeltaShape s = delta_shape_of(task, part.sequences, part.query);
    if (part.phase == Phase::kDecode) {
      steps.then(conv_update(s, taps));
      steps.then(state_update(s, kDeltaStateBytes));
      return;
    }
    steps.then(conv_forward(s, taps));
    steps.then(delta_gates(s));
    const bool fused = task.work.kernels.on(kFusedDeltaRule);
    if (!fused) steps.then(unit_keys(s));
    std::vector<Kernel> chunks = fused ? std::vector{fused_delta_rule(s)} : delta_chunks(s);
    keep_states(chunks.at(fused ? 0 : kDeltaStates), s, part);
    for (Kernel& kernel : chunks) steps.then(std::move(kernel));
  }
};

const DeltaNet delta_net{};
const AddedMixer added_delta_net(MixerKind::kDeltaNet, delta_net);

}  // namespace

}  // namespace orrery
