// SPDX-License-Identifier: Apache-2.0
#include "workloads/memory.h"

#include <algorithm>
#include <cstddef>

#include "workloads/llm/kernels.h"
#include "workloads/llm/layer_parts.h"
#include "workloads/llm/real.h"
#include "workloads/parallelism/rank_parameters.h"
#include "workloads/parallelism/stages.h"
#include "workloads/training/optimizer_step.h"

namespace orrery {
namespace {

/// fp32 probabilities of the loss beside the logits.
constexpr double kProbabilityBytes = 4;

double local_vocabulary(const LlmConfig& model, int tp) {
  return real((model.vocabulary + tp - 1) / tp);
}

/// Of what matrix products read and keep for their weight gradients.
double input_bytes(const LayerWork& work) {
  return work.narrow_inputs ? 1 : activation_bytes(work.precision);
}

/// Kept by latent attention besides what the core keeps: latents before and after their norm, the
/// rotary key, and (where queries have no latent) nothing more, for the input of the layer's first
/// matrix is counted by the caller.
double latent_bytes(const LayerTask& task) {
  const AttentionConfig& a = task.model.attention;
  const double latents = real(a.q_lora_rank + a.kv_lora_rank);
  const double before = latents + real(a.qk_rope_head_dim);
  return real(task.work.row_tokens()) *
         (before * activation_bytes(task.work.precision) + latents * input_bytes(task.work));
}

/// Queries, keys, values and the output of the core, which is the input of the next matrix as well:
/// a second copy where that is in another format and the core needs its own (FlashAttention does);
/// with FlashAttention the fp32 log-sum-exp of every row.
double projection_bytes(const LayerTask& task) {
  const LayerWork& w = task.work;
  const CoreShape c = core_shape(task);
  const double bytes = activation_bytes(w.precision);
  const double columns = real(c.query_heads * c.qk_dim + c.kv_heads * (c.qk_dim + c.v_dim));
  const double own = w.flash_attention ? bytes : 0;
  const double output = w.narrow_inputs ? own + input_bytes(w) : bytes;
  const double sums = w.flash_attention ? 4 * real(c.query_heads) : 0;
  const bool normed = task.model.attention.qk_norm;
  const double unnormed = normed ? real((c.query_heads + c.kv_heads) * c.qk_dim) : 0;
  return real(w.tokens()) *
         ((columns + unnormed) * bytes + real(c.query_heads * c.v_dim) * output + sums);
}

/// Softmax, dropout mask and dropout output; without dropout the softmax alone.
double square_bytes(const LayerTask& task) {
  const LayerWork& w = task.work;
  if (w.flash_attention) return 0;
  const double bytes = activation_bytes(w.precision);
  const double element = w.dropout ? 2 * bytes + 1 : bytes;
  return element * real(w.sequences * core_shape(task).query_heads) * real(w.query) *
         real(w.context);
}

double attention_bytes(const LayerTask& task) {
  const LayerWork& w = task.work;
  const double input = real(w.row_tokens() * task.model.hidden) * input_bytes(w);
  const bool latent = task.model.attention.kind == AttentionKind::kLatent;
  return input + projection_bytes(task) + (latent ? latent_bytes(task) : 0);
}

/// Of a token, in front of and behind the elementwise function of an MLP of `width`.
double mlp_columns_bytes(const LayerTask& task, double width) {
  return width * ((task.model.mlp.gated ? 2 : 1) * activation_bytes(task.work.precision) +
                  input_bytes(task.work));
}

double mlp_bytes(const LayerTask& task) {
  const LayerWork& w = task.work;
  const double width = real(task.model.mlp.intermediate) / w.tp;
  return real(w.row_tokens() * task.model.hidden) * input_bytes(w) +
         real(w.tokens()) * mlp_columns_bytes(task, width);
}

/// Input (of the router, which is not quantised, and a copy of shared experts that are), scores,
/// rows sent to experts, their hidden columns and their outputs (for the gates' gradients). Where
/// etp ranks share each expert, every one has the rows of all and its part of the columns; with
/// expert parallelism outputs are reduced before the gates see them.
double moe_bytes(const LayerTask& task) {
  const LayerWork& w = task.work;
  const MoeConfig& m = task.model.moe;
  const double bytes = activation_bytes(w.precision);
  const double hidden = real(task.model.hidden);
  const double outputs = w.ep == 1 ? w.etp : 1;
  const double routed = hidden * (w.etp * input_bytes(w) + outputs * bytes) +
                        mlp_columns_bytes(task, real(m.intermediate));
  const bool copied = w.narrow_inputs && m.shared_intermediate > 0;
  return real(w.split_tokens()) * (hidden * (bytes + (copied ? input_bytes(w) : 0)) +
                                   real(m.experts) * bytes + real(m.experts_per_token) * routed +
                                   mlp_columns_bytes(task, real(m.shared_intermediate)));
}

/// Inputs of the norms and masks of hidden dropout.
double stream_bytes(const LayerTask& task) {
  const LayerWork& w = task.work;
  const double element =
      task.model.norms_per_layer * activation_bytes(w.precision) + (w.dropout ? 2 : 0);
  return real(w.row_tokens() * task.model.hidden) * element;
}

double kept_without_recompute(const LayerTask& task) {
  return stream_bytes(task) + attention_bytes(task) + square_bytes(task) +
         (task.layer.moe ? moe_bytes(task) : mlp_bytes(task));
}

double kept(const LayerTask& task) {
  switch (task.work.recompute) {
    case Recompute::kNone:
      return kept_without_recompute(task);
    case Recompute::kSelective:
      return kept_without_recompute(task) - square_bytes(task);
    case Recompute::kFull:
      return real(task.work.row_tokens() * task.model.hidden) *
             activation_bytes(task.work.precision);
  }
  return 0;
}

/// What recomputation brings back while the backward pass of one layer runs.
double recomputed(const LayerTask& task) {
  switch (task.work.recompute) {
    case Recompute::kNone:
      return 0;
    case Recompute::kSelective:
      return square_bytes(task);
    case Recompute::kFull:
      return kept_without_recompute(task);
  }
  return 0;
}

/// Activations of a stage at its peak, and the largest working set of its layers.
struct StageActivations {
  double kept = 0, working = 0;
};

StageActivations stage_activations(const LlmConfig& model, const TrainingConfig& config,
                                   int stage) {
  const LayerWork work = layer_work(config);
  const auto ranges = layer_ranges(model.layer_count(), config.parallel, placement_of(config));
  const auto& chunks = ranges[static_cast<std::size_t>(stage)];
  std::vector<double> chunk_bytes;
  StageActivations result;
  for (const LayerRange& range : chunks) {
    double bytes = 0;
    for (std::int64_t i = range.first; i < range.first + range.count; ++i) {
      const LayerTask task{model, model.layers[static_cast<std::size_t>(i)], work};
      bytes += kept(task);
      result.working = std::max(result.working, recomputed(task));
    }
    chunk_bytes.push_back(bytes);
  }
  double now = 0;
  for (const Pass& pass : schedule_of(config).passes(pipeline_shape(config), stage)) {
    now += (pass.kind == Pass::Kind::kForward ? 1 : -1) *
           chunk_bytes[static_cast<std::size_t>(pass.chunk)];
    result.kept = std::max(result.kept, now);
  }
  return result;
}

/// Largest pair of consecutive activations of a layer in inference: input and output of its widest
/// matrix.
double inference_working(const LayerTask& task) {
  const LayerWork& w = task.work;
  const double bytes = activation_bytes(w.precision);
  const double hidden = real(task.model.hidden);
  const CoreShape c = core_shape(task);
  const double attention = real((c.query_heads + 2 * c.kv_heads) * std::max(c.qk_dim, c.v_dim));
  const double columns = task.model.mlp.gated ? 2.0 : 1.0;
  double widest = real(w.tokens()) * (hidden + attention);
  if (task.layer.moe) {
    const double rows = real(w.split_tokens() * task.model.moe.experts_per_token) * w.etp;
    const double width = real(task.model.moe.intermediate) / w.etp;
    widest = std::max(widest, rows * (hidden + columns * width));
  } else {
    const double width = real(task.model.mlp.intermediate) / w.tp;
    widest = std::max(widest, real(w.tokens()) * (hidden + columns * width));
  }
  return (widest + real(w.tokens()) * hidden) * bytes;  // the residual stream stays
}

double cache_bytes(const LayerTask& task) {
  const LayerWork& w = task.work;
  const AttentionConfig& a = task.model.attention;
  const std::int64_t window = task.layer.window;
  const auto kept = [window](std::int64_t context) {
    return window > 0 ? std::min(window, context) : context;
  };
  std::int64_t tokens = 0;
  for (const AttentionPart& part : w.attention_parts()) {
    if (part.contexts.empty()) tokens += part.sequences * kept(part.context);
    for (const std::int64_t context : part.contexts) tokens += kept(context);
  }
  const std::int64_t elements = a.kind == AttentionKind::kLatent
                                    ? a.kv_elements_per_token()
                                    : 2 * local_kv_heads(a, w.tp) * a.head_dim;
  return real(tokens * elements) * element_bytes(w.kv_precision);
}

MemoryUse inference_stage(const LlmConfig& model, const InferenceConfig& config, int stage) {
  const LayerWork work = layer_work(config);
  const RankParameters p = stage_parameters(model, config.parallel, stage);
  const double quantised = real(p.total() - p.sixteen_bit);
  MemoryUse use;
  use.weights = Bytes(quantised * element_bytes(config.precision) +
                      real(p.sixteen_bit) * activation_bytes(config.precision) -
                      saved_weight_bytes(model, config.parallel, stage, config.precision));
  const auto ranges = layer_ranges(model.layer_count(), config.parallel);
  const LayerRange range = ranges[static_cast<std::size_t>(stage)].front();
  for (std::int64_t i = range.first; i < range.first + range.count; ++i) {
    const LayerTask task{model, model.layers[static_cast<std::size_t>(i)], work};
    use.kv_cache += Bytes(cache_bytes(task));
    use.working = std::max(use.working, Bytes(inference_working(task)));
  }
  if (stage == config.parallel.pp - 1) {
    // Gathered on every rank, for prefill only the last token of every sequence.
    use.logits = Bytes(real(work.logit_rows()) * real(model.vocabulary) * activation_bytes(config.precision));
  }
  return use;
}

}  // namespace

Bytes layer_activation_bytes(const LlmConfig& model, const LayerConfig& layer,
                             const LayerWork& work) {
  return Bytes(kept({model, layer, work}));
}

std::vector<MemoryUse> training_memory(const LlmConfig& model, const TrainingConfig& config) {
  require_supported(model, config);
  const LlmConfig trained = trained_model(model, config);
  const bool with_ends = config.layers_only == 0;
  const Placement placement = placement_of(config);
  std::vector<MemoryUse> stages;
  for (int stage = 0; stage < config.parallel.pp; ++stage) {
    const RankParameters p =
        stage_parameters(trained, config.parallel, placement, stage, with_ends);
    MemoryUse use;
    use.weights = Bytes(real(p.total()) * kWeightBytes);
    use.gradients = Bytes(real(p.total()) * kGradientBytes);
    if (with_ends) {
      const OptimizerShard shard = optimizer_shard(trained, config, stage);
      use.optimizer = Bytes(shard.total() * kOptimizerBytes);
    }
    const StageActivations activations = stage_activations(trained, config, stage);
    use.activations = Bytes(activations.kept);
    use.working = Bytes(activations.working);
    if (with_ends && stage == config.parallel.pp - 1) {
      const double element = activation_bytes(config.precision) + kProbabilityBytes;
      use.logits = Bytes(real(config.micro_batch * config.sequence) *
                         local_vocabulary(trained, config.parallel.tp) * element);
    }
    stages.push_back(use);
  }
  return stages;
}

std::vector<MemoryUse> inference_memory(const LlmConfig& model, const InferenceConfig& config) {
  require_supported(model, config);
  std::vector<MemoryUse> stages;
  stages.reserve(static_cast<std::size_t>(config.parallel.pp));
  for (int stage = 0; stage < config.parallel.pp; ++stage) {
    stages.push_back(inference_stage(model, config, stage));
  }
  return stages;
}

const MemoryUse& worst_stage(const std::vector<MemoryUse>& stages) {
  return *std::max_element(
      stages.begin(), stages.end(),
      [](const MemoryUse& a, const MemoryUse& b) { return a.total() < b.total(); });
}

}  // namespace orrery
