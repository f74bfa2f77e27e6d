// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/parts/mixer.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace orrery {

PartWeights Mixer::weights(const LlmConfig& model, const LayerConfig& layer, int tp) const {
  return weights({model, layer, training_rank(tp)});
}

LayerOp::Emit Mixer::parts_forward() const {
  return [this](StepList& steps, const LayerTask& task) {
    next_turn(steps, task);
    for (const AttentionPart& part : task.work.batch.attention_kernels())
      part_forward(steps, task, part);
  };
}

std::int64_t Mixer::widest(const LayerTask& task) const {
  std::int64_t columns = 0;
  for (const Linear& matrix : weights(task).matrices)
    if (matrix.split == MatrixSplit::kColumns) columns = std::max(columns, matrix.out);
  return columns;
}

Linear mixer_matrix(const LayerTask& task, std::string name, std::int64_t in, std::int64_t out,
                    MatrixSplit split) {
  Linear matrix{std::move(name), in, out, task.work.formats.precision,
                task.weights(task.layer.attention)};
  matrix.split = split;
  return matrix;
}

Linear sixteen_bit_matrix(const LayerTask& task, std::string name, std::int64_t in,
                          std::int64_t out, MatrixSplit split) {
  Linear matrix{std::move(name), in, out, unquantised(task.work.formats.precision)};
  matrix.split = split;
  matrix.sixteen_bit = out;
  return matrix;
}

namespace {

using MixerKey = std::pair<std::string_view, AttentionKind>;

std::map<MixerKey, const Mixer*>& mixers() {
  static std::map<MixerKey, const Mixer*> all;
  return all;
}

}  // namespace

AddedMixer::AddedMixer(MixerKind kind, const Mixer& mixer, AttentionKind attention) {
  mixers()[{kind.name, attention}] = &mixer;
}

const Mixer* mixer_of(const LlmConfig& model, const LayerConfig& layer) {
  if (layer.mixer == MixerKind::kNone) return nullptr;
  if (layer.mixer != MixerKind::kAttention) return &mixer_of(layer.mixer);
  return mixers().at({layer.mixer.name, model.attention_of(layer).kind});
}

const Mixer& mixer_of(MixerKind kind) { return *mixers().at({kind.name, AttentionKind::kGrouped}); }

std::string unlike_attention(const LlmConfig& model) {
  for (const LayerConfig& layer : model.layers)
    if (layer.mixer != MixerKind::kAttention && layer.mixer != MixerKind::kNone)
      return std::string(layer.mixer.name);
  return {};
}

bool holds_states(const LlmConfig& model) {
  return std::ranges::any_of(model.layers, [&](const LayerConfig& layer) {
    const Mixer* mixer = mixer_of(model, layer);
    return mixer != nullptr && mixer->cache(model, layer, 1).state_bytes > 0;
  });
}

}  // namespace orrery
