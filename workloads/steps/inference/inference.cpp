// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/inference/inference.h"

#include <fmt/core.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "workloads/base/require.h"
#include "workloads/layers/attention/context_parallel.h"
#include "workloads/layers/layers.h"
#include "workloads/layers/parts/attention_kernels.h"
#include "workloads/layers/parts/residuals.h"
#include "workloads/models/encoder_alone.h"
#include "workloads/ops/kernels.h"
#include "workloads/plan/program_builder.h"
#include "workloads/plan/stages.h"
#include "workloads/software/engine_switches.h"
#include "workloads/steps/inference/drafts.h"
#include "workloads/steps/inference/two_batches.h"

namespace orrery {
namespace {

/// What the layers of a stage work on: all tokens, or in layers of experts two batches in turn.
struct StepWork {
  RankWork whole;
  std::vector<RankWork> halves;  ///< two, or none
  std::vector<StepList> drafts;
  StepList tower;              ///< what the first stage does with images
  StepList taps;               ///< what is added behind each of the first layers
  std::int64_t deepstack = 0;  ///< number of those layers
};

/// A layer, or of layers of experts as many as follow each other.
struct LayersInTurn {
  StepList steps;
  std::int64_t count = 1;
};

LayersInTurn layers_in_turn(const LlmConfig& model, const StepWork& work, LayerRange range) {
  const auto name = [](std::int64_t i) { return "layer " + std::to_string(i) + " "; };
  const LayerConfig& first = model.layer(range.first);
  LayersInTurn all;
  if (work.halves.empty() || !first.moe) {
    all.steps.append(layer_forward(model, first, work.whole), name(range.first));
    return all;
  }
  while (all.count < range.count && model.layer(range.first + all.count).moe) ++all.count;
  std::array<StepList, 2> chains;
  for (std::size_t half = 0; half < chains.size(); ++half) {
    const std::string which = half == 0 ? "first " : "second ";
    for (std::int64_t i = range.first; i < range.first + all.count; ++i)
      chains.at(half).append(layer_forward(model, model.layer(i), work.halves[half]),
                             name(i) + which);
  }
  all.steps = StepList::alternating(chains[0], chains[1], merge_batches(model, work.whole));
  return all;
}

BlockId stage_block(ProgramBuilder& program, const LlmConfig& model, const StepWork& step,
                    int stage) {
  const RankWork& work = step.whole;
  const ParallelConfig& parallel = program.mesh().parallel();
  const int last = parallel.pp - 1;
  const LayerRange layers = layers_of_stage(model.layer_count(), parallel, stage);
  const auto message = [&](std::int64_t next_layer) {
    return Bytes(static_cast<double>(work.row_tokens() * model.hidden) *
                 residual_copies(model, next_layer) * activation_bytes(work.formats.precision));
  };
  BlockBuilder block(program, stage);
  if (stage == 0) {
    block.append("", step.tower);
    block.append("", embedding_forward(model, work));
  } else {
    block.receive(program.message("forward", stage - 1, stage, message(layers.first)),
                  kReceiveForwardStream);
  }
  for (std::int64_t done = 0; done < layers.count;) {
    const LayersInTurn next =
        layers_in_turn(model, step, {layers.first + done, layers.count - done});
    block.append("", next.steps);
    done += next.count;
    if (layers.first + done <= step.deepstack) block.append("", step.taps);
  }
  if (stage == last) {
    block.append("", hidden_gather(model, work));
    block.append("", head_forward(model, work));
    int draft = 0;
    for (const StepList& pass : step.drafts) block.append(fmt::format("draft {} ", ++draft), pass);
  } else {
    block.send(program.message("forward", stage, stage + 1, message(layers.end())),
               kSendForwardStream);
  }
  return block.finish(fmt::format("{} {}", to_string(work.batch.phase), stage));
}

/// All decodes of a batch: attention is one kernel, whatever their contexts.
AttentionPart decode_part(const MixedBatch& batch) {
  AttentionPart part{Phase::kDecode, batch.decoding(), batch.queries, 1, {}, true};
  bool equal = true;
  for (const DecodeGroup& group : batch.decodes) {
    equal = equal && group.context == batch.decodes.front().context;
    part.contexts.insert(part.contexts.end(), static_cast<std::size_t>(group.count),
                         group.context + batch.queries);
  }
  part.context = mean_length(part.contexts);
  if (equal) part.contexts.clear();
  return part;
}

std::vector<AttentionPart> parts_of(const MixedBatch& batch) {
  std::vector<AttentionPart> parts;
  for (const auto& [tokens, context, count, samples] : batch.chunks)
    parts.push_back({Phase::kPrefill, count, tokens, context + tokens, {}, samples});
  if (!batch.decodes.empty()) parts.push_back(decode_part(batch));
  return parts;
}

/// What a batch has for a layer to do.
void set_batch(RankWork& work, const MixedBatch& batch) {
  std::vector<AttentionPart> parts = parts_of(batch);
  const AttentionPart& first = parts.front();
  if (parts.size() == 1 && first.contexts.empty() && first.samples) {
    work.batch.phase = first.phase;
    work.batch.sequences = first.sequences;
    work.batch.query = first.query;
    work.batch.context = first.context;
    return;
  }
  work.batch.phase = batch.chunks.empty() ? Phase::kDecode : Phase::kMixed;
  work.batch.sequences = batch.tokens();
  work.batch.query = 1;
  work.batch.context = batch.longest();
  work.batch.parts = std::move(parts);
}

/// Layers also work on rows for nothing, which attention and the head do not see.
void fill_up(RankWork& work, std::int64_t tokens) {
  if (tokens <= work.tokens()) return;
  work.batch.parts = work.batch.attention_parts();
  work.batch.sequences = tokens;
  work.batch.query = 1;
}

/// Tokens of a rank, in the place of those of all that share prompts.
void share_tokens(RankWork& work) {
  work.batch.parts = work.batch.attention_parts();
  work.batch.sequences = rank_tokens(*work.batch.parts, work.split.cp);
  work.batch.query = 1;
}

void require_batch(const LlmConfig& model, const MixedBatch& batch) {
  require(!batch.empty(), "mixed", "a mixed step needs mixed.chunks or mixed.decodes");
  for (const PrefillChunk& chunk : batch.chunks)
    require(chunk.tokens > 0 && chunk.context >= 0 && chunk.count > 0, "mixed.chunks",
            "tokens and count must be at least 1, context at least 0");
  for (const DecodeGroup& group : batch.decodes)
    require(group.context >= 0 && group.count > 0, "mixed.decodes",
            "count must be at least 1, context at least 0");
  require(model.positions == 0 || batch.longest() <= model.positions, "mixed",
          fmt::format("model '{}' has {} positions, got {}", model.name, model.positions,
                      batch.longest()));
}

void require_decoder(const LlmConfig& model, const InferenceConfig& config) {
  if (is_encoder_alone(model)) {
    const std::string is = "model '" + model.name + "' is an encoder, which reads whole sequences";
    require(config.phase == Phase::kPrefill, "phase", is + " and has no next token",
            {"prefill", {}});
    require(config.kv_length == 0, "kv_length", is + " and keeps nothing of them", {"0", {}});
    require(config.parallel.cache_shards() == 1, "parallel.cp",
            "context parallelism of encoders is not modelled", {"1", {}});
    return;
  }
  require(!model.has_encoder(), "model",
          "unsupported: inference of model '" + model.name +
              "', which has an encoder; training is modelled");
}

void require_images(const LlmConfig& model, const InferenceConfig& config) {
  if (config.images == 0) return;
  require(model.vision.has_value(), "images",
          "model '" + model.name + "' has no vision tower, so that prompts have no images",
          {"0", {}});
  const bool known = config.image.height > 0 && config.image.width > 0;
  require(known || model.vision->rule.same_for_all(), "images",
          "how many tokens '" + model.name + "' has for an image depends on its size: say 'image'",
          {{}, {"image: {height: 1024, width: 1024}"}});
  require(!config.two_batch_overlap, "two_batch_overlap",
          "images in prompts of two batches in turn are not modelled", {"false", {}});
  require(config.parallel.cp == 1, "parallel.cp",
          "images in prompts that ranks share are not modelled", {"1", {}});
}

void require_sequences(const LlmConfig& model, const InferenceConfig& config) {
  require(config.micro_batch > 0 && config.sequence > 0 && config.kv_length >= 0, "batch",
          "micro and sequence must be at least 1, kv_length at least 0");
  const std::int64_t context = rank_work(config).batch.context;
  require(model.positions == 0 || context <= model.positions,
          config.phase == Phase::kDecode ? "kv_length" : "batch.sequence",
          fmt::format("model '{}' has {} positions, got {}", model.name, model.positions, context),
          {std::to_string(model.positions - (config.phase == Phase::kDecode ? 1 : 0)), {}});
}

/// Prompts that begin in the step: their images stand in front.
std::int64_t begun(const InferenceConfig& config) {
  if (config.phase == Phase::kPrefill) return config.micro_batch;
  std::int64_t prompts = 0;
  if (config.phase == Phase::kMixed)
    for (const PrefillChunk& chunk : config.batch.chunks)
      prompts += chunk.context == 0 ? chunk.count : 0;
  return prompts;
}

}  // namespace

std::int64_t step_tokens(const InferenceConfig& config) {
  if (config.phase == Phase::kMixed) return config.batch.tokens();
  return config.micro_batch * (config.phase == Phase::kPrefill ? config.sequence : 1);
}

TowerWork tower_work(const LlmConfig& model, const InferenceConfig& config) {
  TowerWork work;
  work.images = config.images * begun(config);
  if (work.images > 0) work.image = model.vision->patches(config.image);
  work.tp = config.parallel.tp;
  work.hidden = model.hidden;
  work.precision = config.precision;
  return work;
}

RankWork rank_work(const InferenceConfig& config) {
  RankWork work;
  if (config.phase == Phase::kMixed) {
    set_batch(work, config.batch);
  } else {
    work.batch.phase = config.phase;
    work.batch.sequences = config.micro_batch;
    work.batch.query = config.phase == Phase::kPrefill ? config.sequence : 1;
    work.batch.context = config.kv_length + work.batch.query;
  }
  work.split.tp = config.parallel.tp;
  work.split.sp = config.parallel.sp;
  work.split.cp = config.parallel.cp;
  work.split.dcp = config.parallel.dcp;
  work.split.ep = config.parallel.ep;
  work.split.etp = config.parallel.etp;
  work.split.all_reduces_experts = !work.split.sp && work.split.tp > 1 && config.parallel.dp == 1 &&
                                   work.split.ep * work.split.etp == work.split.tp;
  work.formats.mx_products = config.mx_products;
  work.formats.widened_bits = config.widened_bits;
  work.kernels = config.kernels;
  work.normed_all_reduce = config.normed_all_reduce;
  work.lora = lora_work(config.lora, config.adapters);
  work.batch.mean_lengths = config.mean_lengths;
  work.formats.precision = config.precision;
  work.formats.kv_precision = config.kv_precision;
  work.formats.index_precision = config.index_precision;
  if (work.split.cp > 1) share_tokens(work);
  fill_up(work, config.layer_tokens);
  return work;
}

RankWork rank_work(const LlmConfig& model, const InferenceConfig& config) {
  RankWork work = rank_work(config);
  if (config.expert_routing)
    work.split.heaviest = heaviest_rank(model.moe, config.parallel.ep, *config.expert_routing);
  return work;
}

void require_supported(const LlmConfig& model, const InferenceConfig& config) {
  require_decoder(model, config);
  require(config.phase != Phase::kTraining, "phase", "expected prefill, decode or mixed");
  require_consistent(config.parallel);
  require(config.parallel.vpp == 1, "parallel.vpp", "inference has one chunk per stage", {"1", {}});
  require_divisible(model, config.parallel);
  require_context_parallel(model, config.parallel);
  require(config.parallel.cp_a2a == 1, "parallel.cp_a2a",
          "context parallelism of inference gathers keys and values: cp_a2a is of training",
          {"1", {}});
  if (config.phase == Phase::kMixed) {
    require_batch(model, config.batch);
  } else {
    require_sequences(model, config);
  }
  require(!model.has_moe() || model.moe.experts_per_token <= model.moe.experts, "model",
          "more experts per token than experts");
  require_images(model, config);
  if (config.two_batch_overlap) require_two_batches(model, config);
  if (config.expert_routing) require_supported(*config.expert_routing, model, config.parallel.ep);
  if (config.lora) require_adapters(model, *config.lora, config.adapters, step_tokens(config));
  layer_ranges(model.layer_count(), config.parallel);
  if (config.drafts) require_supported(*config.drafts->model, draft_step(config, batch_of(config)));
}

Program build_inference(const LlmConfig& model, const InferenceConfig& config) {
  require_supported(model, config);
  StepWork work{rank_work(model, config), {}, {}, {}, {}};
  if (const TowerWork images = tower_work(model, config); images.images > 0) {
    work.tower = tower_forward(*model.vision, images);
    work.taps = deepstack_addition(images);
    work.deepstack = model.vision->deepstack();
  }
  if (config.drafts) work.drafts = draft_passes(model, config);
  const MixedBatch batch = batch_of(config);
  if (runs_two_batches(config, batch.tokens(), batch.chunks.empty())) {
    for (const MixedBatch& half : halves(batch)) {
      work.halves.push_back(rank_work(model, half_step(config, half)));
      work.halves.back().takes_turns = true;
      work.halves.back().turns_by_stages = config.kernels.on(kDecodesByStages);
    }
  }
  ProgramBuilder program(config.parallel);
  std::vector<std::vector<BlockId>> calls;
  calls.reserve(static_cast<std::size_t>(config.parallel.pp));
  for (int stage = 0; stage < config.parallel.pp; ++stage)
    calls.push_back({stage_block(program, model, work, stage)});
  return program.finish(std::move(calls));
}

}  // namespace orrery
