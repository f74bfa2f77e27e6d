// SPDX-License-Identifier: Apache-2.0
// Kimi delta attention (arXiv 2510.26692) as Kimi K3 has it (vLLM,
// model_executor/models/kimi_linear.py and layers/kda.py): a gated delta network with one head of
// queries, keys and values each, decays by column of keys through a narrow pair of matrices, and a
// sigmoid gate behind the norm of heads. Every tensor parallel rank has the first of the narrow
// matrices whole. Training is not modelled.
#include <stdexcept>

#include "workloads/llm/kernels.h"
#include "workloads/llm/kimi_delta_kernels.h"
#include "workloads/llm/linear.h"
#include "workloads/llm/mixer.h"
#include "workloads/llm/real.h"
#include "workloads/require.h"

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
  return {"delta input", task.model.hidden, (net.conv_channels() + gate) / task.work.tp,
          task.work.precision, task.weights(task.layer.attention)};
}

Linear kimi_output(const LayerTask& task) {
  return {"delta output", task.model.delta_net.values() / task.work.tp, task.model.hidden,
          task.work.precision, task.weights(task.layer.attention)};
}

DeltaShape kimi_shape(const LayerTask& task, std::int64_t sequences, std::int64_t query) {
  return delta_shape(task.model.delta_net, task.work.tp, sequences, query,
                     activation_bytes(task.work.precision));
}

class KimiDelta final : public Mixer {
 public:
  std::string name() const override { return "delta"; }
  PartParameters parameters(const LlmConfig& model, const LayerConfig& layer,
                            int tp) const override;
  SequenceCache cache(const LlmConfig& model, const LayerConfig& layer, int tp) const override;
  double multiply_adds(const LlmConfig& model, const LayerConfig& /*layer*/) const override {
    return kKimiMultiplyAdds * real(model.delta_net.states());
  }
  std::int64_t widest(const LayerTask& task) const override { return kimi_input(task).out; }
  void require_split(const LlmConfig& model, const LayerConfig& /*layer*/, int tp) const override {
    require_divides(model.delta_net.value_heads, tp, "tp", "heads of Kimi delta attention");
  }
  bool trains() const override { return false; }
  void forward(StepList& steps, const LayerTask& task) const override;
  void backward(StepList& /*steps*/, const LayerTask& /*task*/) const override {
    throw std::logic_error("training of Kimi delta attention was not refused");
  }
  void part_forward(StepList& steps, const LayerTask& task,
                    const AttentionPart& part) const override;
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

void KimiDelta::forward(StepList& steps, const LayerTask& task) const {
  const DeltaNetConfig& net = task.model.delta_net;
  const LayerWork& w = task.work;
  const WeightFormat weights = task.weights(task.layer.attention);
  const std::int64_t tokens = w.tokens();
  column_forward(steps, w, {kimi_input(task)}, task.model.hidden);
  steps.then(gemm("delta step input", unquantised(w.precision),
                  {tokens, net.value_heads / w.tp, task.model.hidden}));
  steps.then(gemm("delta narrow input", w.precision,
                  {tokens, narrow_columns(net), task.model.hidden}, weights));
  steps.then(gemm("delta decay up", w.precision,
                  {tokens, net.value_heads * net.key_dim / w.tp, net.decay_rank}, weights));
  if (net.gate_rank > 0)
    steps.then(
        gemm("delta gate up", w.precision, {tokens, net.values() / w.tp, net.gate_rank}, weights));
  for (const AttentionPart& part : w.attention_kernels()) part_forward(steps, task, part);
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
