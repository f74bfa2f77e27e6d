// SPDX-License-Identifier: Apache-2.0
// Mamba-1 mixers (Gu and Dao 2023, arXiv 2312.00752): every channel has a state of its own, which
// follows from steps, B and C of its token. Kernels are those of mamba_ssm's selective scan
// (csrc/selective_scan/selective_scan_fwd_kernel.cuh) and of its update of states; tensor parallel
// ranks split channels as vLLM does (layers/mamba/mamba_mixer.py): steps, B and C are added up.
#include <fmt/core.h>

#include <utility>

#include "workloads/base/real.h"
#include "workloads/base/require.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/layers/recurrent/scan_kernels.h"

namespace orrery {
namespace {

/// States are kept in the format of the model's weights, 16 bits (mamba_simple.py,
/// allocate_inference_cache); kernels widen them.
constexpr double kChannelStateBytes = 2;
/// FLOPs for each element of a state and token: products of step, input and B, decay and sum, C
/// times it and their sum, twice the combination of tokens (VMamba, arXiv 2401.10166, counts 9).
constexpr double kSelectiveFlops = 9;
constexpr double kSoftplusFlops = 4;

/// Columns of low-rank steps, B and C.
std::int64_t selected_columns(const MambaConfig& m) { return m.step_rank + 2 * m.state; }

Linear selective_input(const LayerTask& task) {
  return mixer_matrix(task, "mamba input", task.model.hidden,
                      2 * task.model.mamba.inner() / task.work.split.tp, MatrixSplit::kColumns);
}
Linear selection(const LayerTask& task) {
  return mixer_matrix(task, "mamba selection", task.model.mamba.inner() / task.work.split.tp,
                      selected_columns(task.model.mamba), MatrixSplit::kRows);
}
Linear selective_steps(const LayerTask& task) {
  return mixer_matrix(task, "mamba steps", task.model.mamba.step_rank,
                      task.model.mamba.inner() / task.work.split.tp, MatrixSplit::kColumns);
}
Linear selective_output(const LayerTask& task) {
  return mixer_matrix(task, "mamba output", task.model.mamba.inner() / task.work.split.tp,
                      task.model.hidden, MatrixSplit::kRows);
}

/// Scans of prompts: a thread block for each channel and sequence, chunks of 2,048 tokens at once.
/// They read inputs, steps and gates; where a prompt goes on, its states too.
Kernel selective_scan(const LayerTask& task, const AttentionPart& part) {
  const MambaConfig& m = task.model.mamba;
  const double bytes = task.bytes();
  const std::int64_t tokens = part.sequences * part.query, inner = m.inner() / task.work.split.tp;
  const double states = real(part.sequences * inner * m.state) * kChannelStateBytes;
  Kernel kernel =
      scan_pass("mamba selective scan", tokens, inner,
                {3 * bytes, bytes,
                 kSelectiveFlops * real(m.state) + kSoftplusFlops + vector_cost::kSilu + 3});
  kernel.exponentials = Flops(real(tokens * inner * (m.state + 2)));
  kernel.read +=
      Bytes(real(2 * tokens * m.state) * bytes + (part.context > part.query ? states : 0));
  kernel.written += Bytes(states);
  return kernel;
}

/// New tokens of a decode: states are read and written for each.
Kernel channel_update(const LayerTask& task, const AttentionPart& part) {
  const MambaConfig& m = task.model.mamba;
  const double bytes = task.bytes();
  const std::int64_t tokens = part.sequences * part.query, inner = m.inner() / task.work.split.tp;
  Kernel kernel = scan_pass("mamba state update", tokens, inner * m.state,
                            {kChannelStateBytes, kChannelStateBytes, 6});
  kernel.exponentials = Flops(real(tokens * inner * (m.state + 2)));
  kernel.read += Bytes(real(tokens * (3 * inner + 2 * m.state)) * bytes);
  kernel.written += Bytes(real(tokens * inner) * bytes);
  return kernel;
}

/// Causal convolution with SiLU over the inputs of a part; decodes look back at kept inputs.
Kernel selective_convolution(const LayerTask& task, const AttentionPart& part) {
  const MambaConfig& m = task.model.mamba;
  const double bytes = task.bytes();
  const std::int64_t inner = m.inner() / task.work.split.tp;
  const bool decodes = part.phase == Phase::kDecode;
  Kernel kernel = scan_pass(decodes ? "mamba convolution update" : "mamba convolution",
                            part.sequences * part.query, inner,
                            {bytes, bytes, 2 * real(m.conv_kernel) + vector_cost::kSilu});
  if (!decodes) return kernel;
  const Bytes window(real(part.sequences * inner * (m.conv_kernel - 1)) * bytes);
  kernel.read += window;
  kernel.written += window;
  return kernel;
}

Kernel state_pass(const LayerTask& task, const AttentionPart& part) {
  return part.phase == Phase::kDecode ? channel_update(task, part) : selective_scan(task, part);
}

void select_by_channel(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  const double bytes = activation_bytes(w.formats.precision);
  row_forward(steps, w, selection(task), RowOutput::kReduced);
  if (task.model.mamba.selection_norms)
    steps.then(scan_pass("mamba selection norm", w.tokens(), selected_columns(task.model.mamba),
                         {bytes, bytes, vector_cost::kRmsNorm}));
  local_forward(steps, w, selective_steps(task), w.tokens());
}

class Mamba1 final : public Mixer {
 public:
  std::string name() const override { return "mamba"; }
  std::string sizes(const LlmConfig& model, const LayerConfig& /*layer*/) const override {
    return fmt::format(" of {} channels with states of {}", model.mamba.inner(), model.mamba.state);
  }
  PartWeights weights(const LayerTask& task) const override {
    const MambaConfig& m = task.model.mamba;
    const std::int64_t inner = m.inner() / task.work.split.tp;
    PartWeights all{
        {selective_input(task), selection(task), selective_steps(task), selective_output(task)}};
    // Taps and biases of the convolution, biases of steps, D; decays of every element of a state.
    all.split_vectors = inner * (m.conv_kernel + (m.conv_bias ? 1 : 0) + 2 + m.state);
    if (m.projection_bias) {
      all.split_vectors += 2 * inner;
      all.whole_vectors = task.model.hidden;
    }
    if (m.selection_norms && m.norm) all.whole_vectors += selected_columns(m);
    return all;
  }

  SequenceCache cache(const LlmConfig& model, const LayerConfig& /*layer*/, int tp) const override {
    const MambaConfig& m = model.mamba;
    return {0, real(m.inner() / tp * (m.state + m.conv_kernel - 1)) * kChannelStateBytes};
  }
  double multiply_adds(const LlmConfig& model, const LayerConfig& /*layer*/) const override {
    return kSelectiveFlops / 2 * real(model.mamba.inner() * model.mamba.state);
  }
  void require_split(const LlmConfig& model, const LayerConfig& /*layer*/, int tp) const override {
    require_divides(model.mamba.inner(), tp, "tp", "channels of Mamba");
  }
  bool trains() const override { return false; }
  std::vector<LayerOp> ops(const LayerTask& task) const override {
    std::vector<Kernel> convolutions, passes;
    for (const AttentionPart& part : task.work.batch.attention_kernels()) {
      convolutions.push_back(selective_convolution(task, part));
      passes.push_back(state_pass(task, part));
    }
    return {input_op({selective_input(task)}, "mamba norm"),
            {kernels(std::move(convolutions))},
            {select_by_channel},
            {next_turn},
            {kernels(std::move(passes))},
            row_op(selective_output(task))};
  }

  void part_forward(StepList& steps, const LayerTask& task,
                    const AttentionPart& part) const override {
    steps.then(selective_convolution(task, part));
    steps.then(state_pass(task, part));
  }
};

const Mamba1 mamba1{};
const AddedMixer added_mamba1(MixerKind::kMamba1, mamba1);

}  // namespace

}  // namespace orrery
