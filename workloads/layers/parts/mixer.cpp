// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/parts/mixer.h"

#include <algorithm>
#include <utility>

namespace orrery {

MixerWeights& MixerWeights::operator+=(const MixerWeights& other) {
  matrices.insert(matrices.end(), other.matrices.begin(), other.matrices.end());
  split_vectors += other.split_vectors;
  whole_vectors += other.whole_vectors;
  return *this;
}

MixerWeights Mixer::weights(const LlmConfig& model, const LayerConfig& layer, int tp) const {
  RankWork work;
  work.split.tp = tp;
  return weights({model, layer, work});
}

PartParameters Mixer::parameters(const LlmConfig& model, const LayerConfig& layer, int tp) const {
  const MixerWeights all = weights(model, layer, tp);
  PartParameters p;
  p.split_vectors = all.split_vectors;
  p.whole_vectors = all.whole_vectors;
  for (const Linear& matrix : all.matrices) {
    const bool whole = matrix.split == MatrixSplit::kNone;
    (whole ? p.whole : p.split) += matrix.in * matrix.out;
    p.sixteen_bit += matrix.in * matrix.sixteen_bit;
    if (matrix.bias == Bias::kNone) continue;
    // Ranks that split rows add up outputs, of which one has the bias.
    const bool columns = matrix.split == MatrixSplit::kColumns;
    (columns ? p.split_vectors : p.whole_vectors) += matrix.out;
  }
  p.sixteen_bit += p.split_vectors + p.whole_vectors;
  return p;
}

void Mixer::forward(StepList& steps, const LayerTask& task) const {
  run_forward(steps, task, ops(task));
}

void Mixer::backward(StepList& steps, const LayerTask& task) const {
  run_backward(steps, task, ops(task));
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

const Mixer* mixer_of(const LlmConfig& model, const LayerConfig& layer) {
  switch (layer.mixer) {
    case MixerKind::kAttention:
      return model.attention_of(layer).kind == AttentionKind::kLatent ? &latent_attention()
                                                                      : &grouped_attention();
    case MixerKind::kMamba1:
      return &mamba1();
    case MixerKind::kMamba2:
      return &mamba2();
    case MixerKind::kDeltaNet:
      return &delta_net();
    case MixerKind::kSparse:
      return &sparse_attention();
    case MixerKind::kSharedSparse:
      return &shared_sparse_attention();
    case MixerKind::kBlockSparse:
      return &block_sparse_attention();
    case MixerKind::kWindowedKey:
      return &windowed_key_attention();
    case MixerKind::kCompressed:
      return &compressed_attention();
    case MixerKind::kCompressedSparse:
      return &compressed_sparse_attention();
    case MixerKind::kKimiDelta:
      return &kimi_delta();
    case MixerKind::kMambaAttention:
      return &mamba_attention();
    case MixerKind::kTimeMix:
      return &time_mix();
    case MixerKind::kChannelMix:
      return &channel_mix();
    case MixerKind::kSharedBlock:
      return &shared_block();
    case MixerKind::kNone:
      break;
  }
  return nullptr;
}

const char* to_string(MixerKind kind) {
  switch (kind) {
    case MixerKind::kAttention:
      return "attention";
    case MixerKind::kMamba1:
      return "Mamba-1";
    case MixerKind::kMamba2:
      return "Mamba";
    case MixerKind::kDeltaNet:
      return "gated delta networks";
    case MixerKind::kKimiDelta:
      return "Kimi delta attention";
    case MixerKind::kSparse:
      return "sparse attention";
    case MixerKind::kSharedSparse:
      return "sparse attention by shared selections";
    case MixerKind::kBlockSparse:
      return "block-sparse attention";
    case MixerKind::kWindowedKey:
      return "attention to one windowed key";
    case MixerKind::kCompressed:
      return "compressed attention";
    case MixerKind::kCompressedSparse:
      return "compressed sparse attention";
    case MixerKind::kMambaAttention:
      return "Mamba beside attention";
    case MixerKind::kTimeMix:
      return "time mixing of RWKV";
    case MixerKind::kChannelMix:
      return "channel mixing of RWKV";
    case MixerKind::kSharedBlock:
      return "blocks that layers share";
    case MixerKind::kNone:
      return "no mixer";
  }
  return "?";
}

std::string unlike_attention(const LlmConfig& model) {
  for (const LayerConfig& layer : model.layers)
    if (layer.mixer != MixerKind::kAttention && layer.mixer != MixerKind::kNone)
      return to_string(layer.mixer);
  return {};
}

bool holds_states(const LlmConfig& model) {
  return std::any_of(model.layers.begin(), model.layers.end(), [&](const LayerConfig& layer) {
    const Mixer* mixer = mixer_of(model, layer);
    return mixer != nullptr && mixer->cache(model, layer, 1).state_bytes > 0;
  });
}

}  // namespace orrery
