// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "workloads/base/real.h"
#include "workloads/layers/parts/layer_parts.h"
#include "workloads/ops/kernels.h"
#include "workloads/plan/stages.h"
#include "workloads/steps/training/training.h"

/// What a rank keeps for its backward passes in closed form (Korthikanti et al. 2022, equations 1
/// to 6, by tensor), written down apart from the steps that make those tensors: what these are
/// tested against.
namespace orrery::formulas {

/// fp32 probabilities of the loss beside the logits.
inline constexpr double kProbabilityBytes = 4;

inline double local_vocabulary(const LlmConfig& model, int tp) {
  return real((model.vocabulary + tp - 1) / tp);
}

/// Bytes of an element that matrix products read and keep for their weight gradients.
inline double input_bytes(const RankWork& work) {
  return work.formats.narrow_inputs ? 1 : activation_bytes(work.formats.precision);
}

/// Kept by latent attention besides what the core keeps: latents before and after their norm, the
/// rotary key, and (where queries have no latent) nothing more, for the input of the layer's first
/// matrix is counted by the caller.
inline double latent_bytes(const LayerTask& task) {
  const AttentionConfig& a = task.model.attention;
  const double latents = real(a.q_lora_rank + a.kv_lora_rank);
  const double before = latents + real(a.qk_rope_head_dim);
  return real(task.work.row_tokens()) * (before * activation_bytes(task.work.formats.precision) +
                                         latents * input_bytes(task.work));
}

/// Queries, keys, values and the output of the core, which is the input of the next matrix as well:
/// a second copy where that is in another format and the core needs its own (FlashAttention does);
/// with FlashAttention the fp32 log-sum-exp of every row.
inline double projection_bytes(const LayerTask& task) {
  const RankWork& w = task.work;
  const CoreShape c = core_shape(task);
  const double bytes = activation_bytes(w.formats.precision);
  const double columns = real(c.query_heads * c.qk_dim + c.kv_heads * (c.qk_dim + c.v_dim));
  const double own = w.flash_attention ? bytes : 0;
  const double output = w.formats.narrow_inputs ? own + input_bytes(w) : bytes;
  const double sums = w.flash_attention ? 4 * real(c.query_heads) : 0;
  const bool normed = task.model.attention.qk_norm;
  const double unnormed = normed ? real((c.query_heads + c.kv_heads) * c.qk_dim) : 0;
  return real(w.tokens()) *
         ((columns + unnormed) * bytes + real(c.query_heads * c.v_dim) * output + sums);
}

/// Softmax, dropout mask and dropout output; without dropout the softmax alone.
inline double square_bytes(const LayerTask& task) {
  const RankWork& w = task.work;
  if (w.flash_attention) return 0;
  const double bytes = activation_bytes(w.formats.precision);
  const double element = w.passes.dropout ? 2 * bytes + 1 : bytes;
  return element * real(w.batch.sequences * core_shape(task).query_heads) * real(w.batch.query) *
         real(w.batch.context);
}

inline double attention_bytes(const LayerTask& task) {
  const RankWork& w = task.work;
  const double input = real(w.row_tokens() * task.model.hidden) * input_bytes(w);
  const bool latent = task.model.attention.kind == AttentionKind::kLatent;
  return input + projection_bytes(task) + (latent ? latent_bytes(task) : 0);
}

/// Bytes of a token, in front of and behind the elementwise function of an MLP of `width`.
inline double mlp_columns_bytes(const LayerTask& task, double width) {
  return width * ((task.model.mlp.gated ? 2 : 1) * activation_bytes(task.work.formats.precision) +
                  input_bytes(task.work));
}

inline double mlp_bytes(const LayerTask& task) {
  const RankWork& w = task.work;
  const double width = real(task.model.mlp.intermediate) / w.split.tp;
  return real(w.row_tokens() * task.model.hidden) * input_bytes(w) +
         real(w.tokens()) * mlp_columns_bytes(task, width);
}

/// Input (of the router, which is not quantised, and a copy of shared experts that are), scores,
/// rows sent to experts, their hidden columns and their outputs (for the gates' gradients). Where
/// etp ranks share each expert, every one has the rows of all and its part of the columns; with
/// expert parallelism outputs are reduced before the gates see them.
inline double moe_bytes(const LayerTask& task) {
  const RankWork& w = task.work;
  const MoeConfig& m = task.model.moe;
  const double bytes = activation_bytes(w.formats.precision);
  const double hidden = real(task.model.hidden);
  const double outputs = w.split.ep == 1 ? w.split.etp : 1;
  const double routed = hidden * (w.split.etp * input_bytes(w) + outputs * bytes) +
                        mlp_columns_bytes(task, real(m.intermediate));
  const bool copied = w.formats.narrow_inputs && m.shared_intermediate > 0;
  return real(w.split_tokens()) * (hidden * (bytes + (copied ? input_bytes(w) : 0)) +
                                   real(m.experts) * bytes + real(m.experts_per_token) * routed +
                                   mlp_columns_bytes(task, real(m.shared_intermediate)));
}

/// Inputs of the norms and masks of hidden dropout.
inline double stream_bytes(const LayerTask& task) {
  const RankWork& w = task.work;
  const double element = task.model.norms_per_layer * activation_bytes(w.formats.precision) +
                         (w.passes.dropout ? 2 : 0);
  return real(w.row_tokens() * task.model.hidden) * element;
}

inline double kept_without_recompute(const LayerTask& task) {
  return stream_bytes(task) + attention_bytes(task) + square_bytes(task) +
         (task.layer.moe ? moe_bytes(task) : mlp_bytes(task));
}

inline double kept_bytes(const LayerTask& task) {
  switch (task.work.passes.recompute) {
    case Recompute::kNone:
      return kept_without_recompute(task);
    case Recompute::kSelective:
      return kept_without_recompute(task) - square_bytes(task);
    case Recompute::kFull:
      return real(task.work.row_tokens() * task.model.hidden) *
             activation_bytes(task.work.formats.precision);
  }
  return 0;
}

/// What recomputation brings back while the backward pass of one layer runs.
inline double recomputed(const LayerTask& task) {
  switch (task.work.passes.recompute) {
    case Recompute::kNone:
      return 0;
    case Recompute::kSelective:
      return square_bytes(task);
    case Recompute::kFull:
      return kept_without_recompute(task);
  }
  return 0;
}

/// Bytes of a stage at its peak, by what they are for.
struct StageActivations {
  double kept = 0, working = 0, logits = 0;
};

/// Chunks are kept whole from their forward pass to their backward pass (to the gradients of their
/// weights, where these are apart).
inline StageActivations stage_activations(const LlmConfig& model, const TrainingConfig& config,
                                          int stage) {
  const RankWork work = rank_work(config);
  const Placement placement = placement_of(config);
  const auto ranges = layer_ranges(model.layer_count(), config.parallel, placement);
  std::vector<double> chunk_bytes;
  StageActivations result;
  for (const LayerRange& range : ranges[static_cast<std::size_t>(stage)]) {
    double bytes = 0;
    for (std::int64_t i = range.first; i < range.first + range.count; ++i) {
      const LayerTask task{model, model.layers[static_cast<std::size_t>(i)], work};
      bytes += kept_bytes(task);
      result.working = std::max(result.working, recomputed(task));
    }
    chunk_bytes.push_back(bytes);
  }
  double now = 0;
  for (const Pass& pass : schedule_of(config).passes(pipeline_shape(config), stage)) {
    const double bytes = chunk_bytes[static_cast<std::size_t>(pass.chunk)];
    if (pass.kind == Pass::Kind::kForward) now += bytes;
    if (pass.kind == Pass::Kind::kBackward) now -= bytes;
    result.kept = std::max(result.kept, now);
  }
  if (config.layers_only == 0 && placement.place(placement.slices() - 1).rank == stage) {
    result.logits = real(config.micro_batch * config.sequence) *
                    local_vocabulary(model, config.parallel.tp) *
                    (activation_bytes(config.precision) + kProbabilityBytes);
  }
  return result;
}

}  // namespace orrery::formulas
