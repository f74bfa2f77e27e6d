// SPDX-License-Identifier: Apache-2.0
// Channel mixing of RWKV (rwkv.cpp): an MLP of squared ReLU that looks one token back, gated by a
// receptance up to version 6. Its receptance is whole on each tensor parallel rank, an estimate.
#include "workloads/base/require.h"
#include "workloads/layers/parts/layer_op.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/layers/recurrent/rwkv_kernels.h"

namespace orrery {
namespace {

bool gates_channels(const LayerTask& task) { return task.model.rwkv.version < 7; }

Linear channel_key(const LayerTask& task) {
  return mixer_matrix(task, "channel mix key", task.model.hidden,
                      task.model.rwkv.channels / task.work.split.tp, MatrixSplit::kColumns);
}
Linear channel_value(const LayerTask& task) {
  return mixer_matrix(task, "channel mix value", task.model.rwkv.channels / task.work.split.tp,
                      task.model.hidden, MatrixSplit::kRows);
}
Linear channel_receptance(const LayerTask& task) {
  return mixer_matrix(task, "channel mix receptance", task.model.hidden, task.model.hidden,
                      MatrixSplit::kNone);
}

/// What is mixed, and what keys and receptances read.
Tensor channel_mix_inputs(const LayerTask& task) {
  const double copies = gates_channels(task) ? 3 : 2;
  return kept::of_layer("channel mix inputs", task,
                        copies * real(task.work.row_tokens() * task.model.hidden) * task.bytes());
}

Tensor channel_mix_function_input(const LayerTask& task) {
  return kept::of_tokens("channel mix function input", task,
                         real(task.model.rwkv.channels / task.work.split.tp), task.bytes());
}

Tensor channel_mix_value_input(const LayerTask& task) {
  return kept::of_tokens("channel mix value input", task,
                         real(task.model.rwkv.channels / task.work.split.tp),
                         kept::input_bytes(task.work));
}

/// Both factors of the gate.
Tensor channel_mix_gate(const LayerTask& task) {
  const double copies = gates_channels(task) ? 2 : 0;
  return kept::of_layer("channel mix gate", task,
                        copies * real(task.work.row_tokens() * task.model.hidden) * task.bytes());
}

class ChannelMix final : public Mixer {
 public:
  std::string name() const override { return "channel mix"; }
  std::string sizes(const LlmConfig& model, const LayerConfig& /*layer*/) const override {
    return " " + std::to_string(model.rwkv.channels);
  }
  PartWeights weights(const LayerTask& task) const override {
    PartWeights all{{channel_key(task), channel_value(task)}};
    if (gates_channels(task)) all.matrices.push_back(channel_receptance(task));
    all.whole_vectors = (gates_channels(task) ? 2 : 1) * task.model.hidden;
    return all;
  }

  SequenceCache cache(const LlmConfig& model, const LayerConfig& /*layer*/,
                      int /*tp*/) const override {
    return {0, rwkv_shift_bytes(model)};
  }
  void require_split(const LlmConfig& model, const LayerConfig& /*layer*/, int tp) const override {
    require_divides(model.rwkv.channels, tp, "tp", "columns of channel mixing");
  }
  std::vector<LayerOp> ops(const LayerTask& task) const override {
    constexpr double kSquaredRelu = 2, kSquaredReluGradient = 3;
    const RankWork& w = task.work;
    const std::int64_t hidden = task.model.hidden, rows = w.row_tokens();
    const std::int64_t mixtures = gates_channels(task) ? 2 : 1;
    const double bytes = task.bytes();
    const auto pass = [](const char* name, std::int64_t of, std::int64_t width, StreamCost cost) {
      return kernels({elementwise(name, of, width, cost)});
    };
    const Linear key = channel_key(task);
    std::vector<LayerOp> all = {
        {kernels({token_shift("channel mix inputs", rows, hidden, mixtures, bytes)}),
         kernels(
             {token_shift_backward("channel mix inputs backward", rows, hidden, mixtures, bytes)}),
         {channel_mix_inputs}},
        column_op({key}, hidden),
        {pass("channel mix function", w.tokens(), key.out, {bytes, bytes, kSquaredRelu}),
         pass("channel mix function backward", w.tokens(), key.out,
              {2 * bytes, bytes, kSquaredReluGradient}),
         {channel_mix_function_input},
         {channel_mix_value_input}},
        row_op(channel_value(task), {channel_mix_value_input}, row_reduction(w))};
    if (!gates_channels(task)) return all;
    all.push_back(local_op(channel_receptance(task), rows));
    all.push_back({pass("channel mix gate", rows, hidden, {2 * bytes, bytes, vector_cost::kSilu}),
                   pass("channel mix gate backward", rows, hidden,
                        {3 * bytes, 2 * bytes, 2 * vector_cost::kSilu}),
                   {channel_mix_gate}});
    return all;
  }

  /// All of it is between projections of all tokens.
  void part_forward(StepList& /*steps*/, const LayerTask& /*task*/,
                    const AttentionPart& /*part*/) const override {}
};

const ChannelMix channel_mix{};
const AddedMixer added_channel_mix(MixerKind::kChannelMix, channel_mix);

}  // namespace

}  // namespace orrery
