// SPDX-License-Identifier: Apache-2.0
// Mamba-2 mixers (arXiv 2405.21060) as Megatron-Core splits them (core/ssm/mamba_mixer.py, core
// 0.16): z, x, B, C and dt by heads and groups, the input projection by columns and the output
// projection by rows; a group alone is copied to all ranks, as vLLM does. Training takes
// mamba_ssm's path that keeps the projected input and the outputs of the scan and computes all
// between again (ops/triton/ssd_combined.py, MambaSplitConv1dScanCombinedFn), where the scan
// multiplies by the gate z and a norm by groups follows (_ssm_training at 00bebb4). That path wants
// sequences one after the other, Megatron their tokens: several sequences are copied. Prompts in
// inference run the same kernels with the gate in the norm and leave the last states; new tokens
// update states in place.
#include <fmt/core.h>

#include <utility>

#include "workloads/base/real.h"
#include "workloads/base/require.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/layers/recurrent/mamba_kernels.h"

namespace orrery {
namespace {

/// `mamba_ssm_cache_dtype: float32` of the models that are known.
constexpr double kStateBytes = 4;
/// Multiply-adds for each element of a state and token: Megatron-LM counts 7 FLOPs (training.py,
/// mamba_layer_flops, core 0.16).
constexpr double kMultiplyAdds = 3.5;

Linear input_of(const LayerTask& task) {
  return mixer_matrix(task, "mamba input", task.model.hidden,
                      on_rank(task.model.mamba, task.work.split.tp).projected(),
                      MatrixSplit::kColumns);
}

Linear mamba_output_of(const LayerTask& task) {
  return mixer_matrix(task, "mamba output", task.model.mamba.inner() / task.work.split.tp,
                      task.model.hidden, MatrixSplit::kRows);
}

ScanShape shape_of(const LayerTask& task, std::int64_t sequences, std::int64_t query) {
  return scan_shape(task.model.mamba, task.work.split.tp, sequences, query, task.bytes());
}

/// All tokens of a training step, or of the norm of a step of inference.
ScanShape shape_of(const LayerTask& task) {
  if (!task.work.trains()) return shape_of(task, task.work.tokens(), 1);
  const AttentionPart all = task.work.batch.attention_parts().front();
  return shape_of(task, all.sequences, all.query);
}

// Tensors that forward passes leave.

Tensor projected(const LayerTask& task) {
  const double columns = real(input_of(task).out);
  return kept::of_layer("mamba projected", task, real(task.work.tokens()) * columns * task.bytes());
}

/// With the fp32 deviation of each group of the norm behind it.
Tensor scanned(const LayerTask& task) {
  const ScanShape s = shape_of(task);
  const double deviations = task.model.mamba.norm ? 4 * real(s.groups) : 0;
  return kept::of_layer("mamba scan output", task,
                        real(s.tokens()) * (real(s.inner()) * s.bytes + deviations));
}

/// Outputs of the scan times the gate, which the norm reads; without one the output projection.
Tensor gated(const LayerTask& task) {
  const ScanShape s = shape_of(task);
  const double bytes = task.model.mamba.norm ? s.bytes : 0;
  return kept::of_layer("mamba gated output", task, real(s.tokens() * s.inner()) * bytes);
}

Tensor output_input(const LayerTask& task) {
  const ScanShape s = shape_of(task);
  return kept::of_layer("mamba output input", task,
                        real(s.tokens() * s.inner()) * kept::input_bytes(task.work));
}

/// What backward passes have at once of what they compute again: inputs behind the convolution,
/// states of chunks before and behind their scan, products of C and B.
Tensor again(const LayerTask& task) {
  const ScanShape s = shape_of(task);
  const double bytes = real(s.tokens() * s.channels()) * s.bytes +
                       real(s.chunks() * s.states()) * (4 + s.bytes) +
                       real(s.tokens() * s.groups * s.length) * 4;
  return {"mamba chunks", Bytes(bytes), TensorRole::kWorking};
}

/// Several sequences of [tokens, sequences, width] to [sequences, tokens, width], or back.
void transpose(StepList& steps, const LayerTask& task, const char* name, std::int64_t width) {
  if (!task.work.trains() || task.work.batch.sequences == 1) return;
  const double bytes = task.bytes();
  steps.then(elementwise(name, task.work.tokens(), width, {bytes, bytes, 0}));
}

void then_all(StepList& steps, std::vector<Kernel> kernels) {
  for (Kernel& kernel : kernels) steps.then(std::move(kernel));
}

/// Sums of squares of tokens, in fp32, where the norm's one group is on several ranks.
void add_squares(StepList& steps, const LayerTask& task) {
  if (task.work.split.tp == 1 || task.model.mamba.groups > 1) return;
  steps.then(LayerCollective{"mamba norm all-reduce", TransferKind::kAllReduce, Scope::kTensor,
                             Bytes(4 * real(task.work.tokens()))});
}

/// Behind the scan: in inference the gate, too, which training's scan has multiplied by.
void norm_outputs(StepList& steps, const LayerTask& task) {
  const ScanShape s = shape_of(task);
  const bool trains = task.work.trains();
  if (task.model.mamba.norm) add_squares(steps, task);
  if (task.model.mamba.norm)
    steps.then(trains ? group_norm(s) : gated_norm(s));
  else if (!trains)
    steps.then(gate_outputs(s));
}

/// From inputs behind the convolution to the gradients of what was projected; all between is
/// computed again.
void scan_gradients(StepList& steps, const LayerTask& task) {
  const std::int64_t taps = task.model.mamba.conv_kernel;
  const ScanShape s = shape_of(task);
  steps.then(conv_forward(s, taps));
  makes(steps, task.again(), {again});
  then_all(steps, scan_states(s));
  steps.then(gate_backward(s));
  frees(steps, task, {scanned});
  then_all(steps, scan_backward(s));
  frees(steps, task, {again});
  steps.then(conv_backward(s, taps));
}

void norm_gradients(StepList& steps, const LayerTask& task) {
  if (!task.model.mamba.norm) return;
  add_squares(steps, task);
  steps.then(group_norm_backward(shape_of(task)));
}

LayerOp::Emit transposed(const char* name, std::int64_t width) {
  return [=](StepList& steps, const LayerTask& task) { transpose(steps, task, name, width); };
}

class Mamba2 final : public Mixer {
 public:
  std::string name() const override { return "mamba"; }
  std::string sizes(const LlmConfig& model, const LayerConfig& /*layer*/) const override {
    const MambaConfig& m = model.mamba;
    return fmt::format(" {} x {} with states of {}", m.heads, m.head_dim, m.state);
  }
  PartWeights weights(const LayerTask& task) const override {
    const MambaConfig m = on_rank(task.model.mamba, task.work.split.tp);
    PartWeights all{{input_of(task), mamba_output_of(task)}};
    // Taps and biases of the convolution, weights of the norm where there is one; A, D and the bias
    // of dt by head.
    const std::int64_t taps = m.conv_channels() * (m.conv_kernel + (m.conv_bias ? 1 : 0));
    all.split_vectors = taps + (m.norm ? m.inner() : 0) + 3 * m.heads;
    if (!m.projection_bias) return all;
    all.split_vectors += m.projected();
    all.whole_vectors = task.model.hidden;
    return all;
  }

  SequenceCache cache(const LlmConfig& model, const LayerConfig& /*layer*/, int tp) const override {
    const MambaConfig m = on_rank(model.mamba, tp);
    const double window = 2 * real(m.conv_channels() * (m.conv_kernel - 1));
    return {0, real(m.inner() * m.state) * kStateBytes + window};
  }

  double multiply_adds(const LlmConfig& model, const LayerConfig& /*layer*/) const override {
    return kMultiplyAdds * real(model.mamba.inner() * model.mamba.state);
  }
  void require_split(const LlmConfig& model, const LayerConfig& /*layer*/, int tp) const override {
    require_divides(model.mamba.heads, tp, "tp", "heads of Mamba");
    if (model.mamba.groups > 1) require_divides(model.mamba.groups, tp, "tp", "groups of Mamba");
  }

  std::vector<LayerOp> ops(const LayerTask& task) const override {
    const std::int64_t inner = shape_of(task).inner(), columns = input_of(task).out;
    LayerOp input = input_op({input_of(task)}, "mamba norm");
    if (task.work.place.whole_input)  // attention beside it has the same input, and keeps it
      input = column_op({input_of(task)}, task.model.hidden);
    input.makes.push_back(projected);
    return {std::move(input),
            {transposed("mamba input transposed", columns),
             transposed("mamba input gradient transposed", columns)},
            {parts_forward(), scan_gradients, {}, {scanned}, {projected}},
            {transposed("mamba output transposed", inner), {}, {}, {gated}},
            {norm_outputs, norm_gradients, {}, {output_input}, {gated}},
            row_op(mamba_output_of(task), {output_input})};
  }

  void part_forward(StepList& steps, const LayerTask& task,
                    const AttentionPart& part) const override {
    const std::int64_t taps = task.model.mamba.conv_kernel;
    const ScanShape s = shape_of(task, part.sequences, part.query);
    if (part.phase == Phase::kDecode) {
      steps.then(conv_update(s, taps));
      steps.then(state_update(s, kStateBytes));
      return;
    }
    steps.then(conv_forward(s, taps));
    std::vector<Kernel> kernels = scan_states(s);
    if (!task.work.trains()) {
      // The last states are kept, and where a prompt goes on those of its earlier tokens read.
      const Bytes states(real(s.sequences * s.states()) * kStateBytes);
      Kernel& passing = kernels.at(2);
      passing.written += states;
      if (part.context > part.query) passing.read += states;
    }
    then_all(steps, std::move(kernels));
    const bool trains = task.work.trains();
    steps.then(trains ? gated_scan_outputs(s) : scan_outputs(s));
  }
};

const Mamba2 mamba2{};
const AddedMixer added_mamba2(MixerKind::kMamba2, mamba2);

}  // namespace

}  // namespace orrery
