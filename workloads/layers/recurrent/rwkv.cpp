// SPDX-License-Identifier: Apache-2.0
// RWKV-5 and 6 (arXiv 2404.05892) and 7 (2503.14456) as BlinkDL's rwkv package runs them
// (RWKV-LM, RWKV-v7/rwkv_v7_demo.py; transformers' modeling_rwkv5.py of RWKV/rwkv-5-world): time
// mixing with a state a head; channel mixing is rwkv_channels.cpp. Tensor parallel ranks share
// heads, as no engine has published it: low-rank matrices are whole on each, an estimate. Training
// is RWKV-LM's (RWKV-v5/src/model.py, RWKV-v7/train_temp): its kernels of the recurrence, all else
// elementwise, with a mixture kept for each product.
#include <fmt/core.h>

#include "workloads/base/require.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/layers/recurrent/rwkv_kernels.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// Mixtures of version 6 that follow from the token: of receptance, key, value, gate and decay.
constexpr std::int64_t kMixtures = 5;

/// Ranks of the pairs of matrices in time mixing that give vectors of its width: decays, learning
/// rates, gates, and what values take from those of the first layer.
std::vector<std::int64_t> low_ranks(const RwkvConfig& r, const LayerConfig& layer) {
  std::vector<std::int64_t> ranks = {r.decay_rank, r.rate_rank, r.gate_rank,
                                     layer.first ? 0 : r.value_rank};
  std::erase(ranks, 0);
  return ranks;
}

/// A pair of low-rank matrices: the first is whole on each rank.
Linear rank_down(const LayerTask& task, std::int64_t rank) {
  return sixteen_bit_matrix(task, "time mix rank down", task.model.hidden, rank,
                            MatrixSplit::kNone);
}
Linear rank_up(const LayerTask& task, std::int64_t rank) {
  return sixteen_bit_matrix(task, "time mix rank up", rank,
                            task.model.rwkv.width() / task.work.split.tp, MatrixSplit::kColumns);
}

/// Version 6: the pair that mixtures follow from, with a second matrix for each mixture.
Linear mixtures_down(const LayerTask& task) {
  return sixteen_bit_matrix(task, "time mix mixtures down", task.model.hidden,
                            kMixtures * task.model.rwkv.mix_rank, MatrixSplit::kNone);
}
Linear mixtures_up(const LayerTask& task) {
  Linear up = sixteen_bit_matrix(task, "time mix mixtures up", task.model.rwkv.mix_rank,
                                 kMixtures * task.model.hidden, MatrixSplit::kNone);
  up.parts = {{.out = up.out, .count = kMixtures}};
  return up;
}

/// Sizes of the products of a matrix, one for each of its parts.
GemmShape product_of(const LayerTask& task, const Linear& linear) {
  const std::int64_t batch = linear.parts.empty() ? 1 : linear.parts.front().count;
  return {task.work.tokens(), linear.out / batch, linear.in, batch};
}

Kernel whole_product(const LayerTask& task, const Linear& linear) {
  return gemm(linear.name, linear.precision, product_of(task, linear));
}

Linear time_output(const LayerTask& task) {
  return mixer_matrix(task, "time mix output", task.model.rwkv.width() / task.work.split.tp,
                      task.model.hidden, MatrixSplit::kRows);
}

WkvShape wkv_shape_of(const LayerTask& task, std::int64_t sequences, std::int64_t query) {
  return wkv_shape(task.model.rwkv, task.work.split.tp, sequences, query, task.bytes());
}

/// All tokens of a training step.
WkvShape trained_wkv(const LayerTask& task) {
  const AttentionPart all = task.work.batch.attention_parts().front();
  return wkv_shape_of(task, all.sequences, all.query);
}

// Tensors that forward passes leave.

std::int64_t time_mixtures(const RwkvConfig& r) {
  return r.version == 5 ? 4 : r.version == 6 ? kMixtures : 6;
}

/// What is mixed, and every mixture; version 6: the first one and what makes the others besides.
Tensor time_mix_inputs(const LayerTask& task) {
  const RwkvConfig& r = task.model.rwkv;
  const double rows = real(task.work.row_tokens() * task.model.hidden);
  const double learned = r.version == 6 ? 1 + kMixtures : 0;
  const double columns =
      r.version == 6 ? real(task.work.tokens()) * real(2 * kMixtures * r.mix_rank) : 0;
  return kept::of_layer("time mix inputs", task,
                        (rows * (1 + real(time_mixtures(r)) + learned) + columns) * task.bytes());
}

/// Receptances, keys, values, gates, and the columns of low-rank pairs: in front of their function
/// and behind it, and what they give; version 7: what keys are made of these besides.
Tensor time_mix_columns(const LayerTask& task) {
  const RwkvConfig& r = task.model.rwkv;
  const double width = real(r.width() / task.work.split.tp);
  double columns = (r.version < 7 ? 4 : 3 + 4) * width;
  for (const std::int64_t rank : low_ranks(r, task.layer)) columns += 2 * real(rank) + width;
  return kept::of_tokens("time mix columns", task, columns, task.bytes());
}

/// With what the recurrence leaves.
Tensor time_mix_result(const LayerTask& task) {
  const WkvShape s = trained_wkv(task);
  return kept::of_layer("time mix result", task,
                        real(s.tokens() * s.width()) * s.bytes + wkv_kept_bytes(s));
}

Tensor time_mix_output_input(const LayerTask& task) {
  return kept::of_tokens("time mix output input", task,
                         real(task.model.rwkv.width() / task.work.split.tp),
                         kept::input_bytes(task.work));
}

Tensor embedding_norm_input(const LayerTask& task) {
  const double rows = task.layer.first ? real(task.work.row_tokens() * task.model.hidden) : 0;
  return kept::of_layer("time mix embedding norm input", task, rows * task.bytes());
}

/// Receptance, key, value, and a gate where that is one matrix.
std::vector<Linear> time_columns(const LayerTask& task) {
  std::vector<Linear> columns;
  for (const char* name :
       {"time mix receptance", "time mix key", "time mix value", "time mix gate"}) {
    if (task.model.rwkv.version >= 7 && columns.size() == 3) break;
    columns.push_back(mixer_matrix(task, name, task.model.hidden,
                                   task.model.rwkv.width() / task.work.split.tp,
                                   MatrixSplit::kColumns));
  }
  return columns;
}

/// What the products read: mixtures of each token with the one before.
void mix_inputs(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  const RwkvConfig& r = task.model.rwkv;
  const std::int64_t hidden = task.model.hidden;
  const double bytes = activation_bytes(w.formats.precision);
  if (r.version != 6) {
    steps.then(
        token_shift("time mix inputs", w.row_tokens(), hidden, r.version == 5 ? 4 : 6, bytes));
    return;
  }
  steps.then(token_shift("time mix first mixture", w.row_tokens(), hidden, 1, bytes));
  const std::int64_t columns = kMixtures * r.mix_rank;
  steps.then(whole_product(task, mixtures_down(task)));
  steps.then(elementwise("time mix mixtures function", w.tokens(), columns, {bytes, bytes, 1}));
  steps.then(whole_product(task, mixtures_up(task)));
  steps.then(
      token_shift("time mix inputs", w.row_tokens(), hidden, kMixtures, bytes, /*learned=*/true));
}

void mix_inputs_backward(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  const RwkvConfig& r = task.model.rwkv;
  const std::int64_t hidden = task.model.hidden;
  const double bytes = activation_bytes(w.formats.precision);
  const bool learned = r.version == 6;
  steps.then(token_shift_backward("time mix inputs backward", w.row_tokens(), hidden,
                                  time_mixtures(r), bytes, learned));
  if (!learned) return;
  const std::int64_t columns = kMixtures * r.mix_rank;
  const Linear up = mixtures_up(task), down = mixtures_down(task);
  batched_backward(steps, w, up.name, product_of(task, up));
  steps.then(elementwise("time mix mixtures function backward", w.tokens(), columns,
                         {2 * bytes, bytes, 2}));
  batched_backward(steps, w, down.name, product_of(task, down));
  steps.then(
      token_shift_backward("time mix first mixture backward", w.row_tokens(), hidden, 1, bytes));
}

void low_rank_pairs(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  const double bytes = activation_bytes(w.formats.precision);
  for (const std::int64_t rank : low_ranks(task.model.rwkv, task.layer)) {
    steps.then(whole_product(task, rank_down(task, rank)));
    steps.then(elementwise("time mix rank function", w.tokens(), rank, {bytes, bytes, 1}));
    steps.then(whole_product(task, rank_up(task, rank)));
  }
}

void low_rank_gradients(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  const double bytes = activation_bytes(w.formats.precision);
  for (const std::int64_t rank : low_ranks(task.model.rwkv, task.layer)) {
    const Linear up = rank_up(task, rank), down = rank_down(task, rank);
    batched_backward(steps, w, up.name, product_of(task, up));
    steps.then(
        elementwise("time mix rank function backward", w.tokens(), rank, {2 * bytes, bytes, 2}));
    batched_backward(steps, w, down.name, product_of(task, down));
  }
}

/// Version 7: keys of length 1 times rates, values between those of the first layer and their own:
/// one kernel where the package compiles it.
LayerOp time_keys(const LayerTask& task) {
  const RankWork& w = task.work;
  const double bytes = activation_bytes(w.formats.precision);
  const std::int64_t width = task.model.rwkv.width() / w.split.tp;
  LayerOp keys{.makes = {time_mix_columns}};
  if (task.model.rwkv.version < 7) return keys;
  keys.forward =
      kernels({elementwise("time mix keys", w.tokens(), width, {5 * bytes, 4 * bytes, 12})});
  keys.gradient = kernels(
      {elementwise("time mix keys backward", w.tokens(), width, {9 * bytes, 5 * bytes, 24})});
  return keys;
}

void recurrence_backward(StepList& steps, const LayerTask& task) {
  steps.then(wkv_backward(trained_wkv(task)));
}

class TimeMix final : public Mixer {
 public:
  std::string name() const override { return "time mix"; }
  std::string sizes(const LlmConfig& model, const LayerConfig& /*layer*/) const override {
    return fmt::format(" {} x {}", model.rwkv.heads, model.rwkv.head_dim);
  }
  PartWeights weights(const LayerTask& task) const override {
    const RwkvConfig& r = task.model.rwkv;
    const bool first = task.layer.first;
    PartWeights all{time_columns(task)};
    for (const std::int64_t rank : low_ranks(r, task.layer)) {
      all.matrices.push_back(rank_down(task, rank));
      all.matrices.push_back(rank_up(task, rank));
    }
    if (r.version == 6) {
      all.matrices.push_back(mixtures_down(task));
      all.matrices.push_back(mixtures_up(task));
    }
    all.matrices.push_back(time_output(task));
    // Weights of mixtures, and of the norm behind the embeddings; decays, bonuses and the norm of
    // heads by column. Version 7: biases of decays, rates and values, three scales of keys.
    all.whole_vectors = ((r.version == 5 ? 4 : 6) + (first ? 2 : 0)) * task.model.hidden;
    all.split_vectors = (r.version < 7 ? 4 : first ? 7 : 8) * (r.width() / task.work.split.tp);
    return all;
  }

  SequenceCache cache(const LlmConfig& model, const LayerConfig& /*layer*/, int tp) const override {
    return {0, real(model.rwkv.states()) * kWkvStateBytes / tp + rwkv_shift_bytes(model)};
  }
  double multiply_adds(const LlmConfig& model, const LayerConfig& /*layer*/) const override {
    return wkv_flops(model.rwkv.version) / 2 * real(model.rwkv.states());
  }
  std::int64_t widest(const LayerTask& task) const override {
    return 4 * task.model.rwkv.width() / task.work.split.tp;
  }
  void require_split(const LlmConfig& model, const LayerConfig& /*layer*/, int tp) const override {
    require_divides(model.rwkv.heads, tp, "tp", "heads of RWKV");
  }
  std::vector<LayerOp> ops(const LayerTask& task) const override {
    const WkvShape s = wkv_shape_of(task, task.work.tokens(), 1);
    std::vector<LayerOp> all;
    if (task.layer.first)
      all.push_back(norm_op("embedding norm", task, PastBlock::kNothing, {embedding_norm_input}));
    all.insert(
        all.end(),
        {{mix_inputs, mix_inputs_backward, {time_mix_inputs}},
         column_op(time_columns(task), task.model.hidden, {time_mix_columns}),
         {low_rank_pairs, low_rank_gradients},
         time_keys(task),
         {parts_forward(), recurrence_backward, {time_mix_result}},
         {kernels({wkv_norm(s)}), kernels({wkv_norm_backward(s)}), {}, {time_mix_output_input}},
         row_op(time_output(task), {time_mix_output_input}, row_reduction(task.work))});
    return all;
  }

  void part_forward(StepList& steps, const LayerTask& task,
                    const AttentionPart& part) const override {
    if (task.work.trains()) {
      steps.then(wkv_training(trained_wkv(task)));
      return;
    }
    const bool continues = part.phase == Phase::kDecode || part.context > part.query;
    steps.then(wkv(wkv_shape_of(task, part.sequences, part.query), continues));
  }
};

const TimeMix time_mix{};
const AddedMixer added_time_mix(MixerKind::kTimeMix, time_mix);

}  // namespace

}  // namespace orrery
