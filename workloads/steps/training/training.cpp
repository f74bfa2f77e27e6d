// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/training.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "workloads/layers/attention/context_training.h"
#include "workloads/steps/training/optimizer_step.h"
#include "workloads/steps/training/pass_blocks.h"
#include "workloads/steps/training/sharded_weights.h"

namespace orrery {
namespace {

/// What tells the block of a pass, and of the one beside it, among those of a stage.
struct BlockKey {
  int chunk = 0;
  Pass::Kind kind = Pass::Kind::kForward;
  std::optional<std::pair<int, Pass::Kind>> beside = std::nullopt;
  auto operator<=>(const BlockKey&) const = default;
};

/// Builds the blocks of all stages and chunks.
class TrainingBuilder {
 public:
  TrainingBuilder(const LlmConfig& model, const TrainingConfig& config, bool tensors)
      : model_(trained_model(model, config)),
        config_(config),
        program_(config.parallel, placement_of(config).goes_both_ways(),
                 config.optimizer_offload.fraction > 0),
        passes_(program_, model_, config, tensors) {}

  TrainingProgram build() {
    const PipelineSchedule& schedule = schedule_of(config_);
    TrainingProgram result;
    std::vector<std::vector<BlockId>> calls;
    for (int stage = 0; stage < config_.parallel.pp; ++stage) {
      calls.push_back(add_stage(stage, schedule.passes(pipeline_shape(config_), stage), result));
      if (config_.layers_only > 0) continue;
      result.optimizer.push_back(
          optimizer_block(program_, model_, config_, stage, passes_.take_reduced()));
      calls.back().push_back(result.optimizer.back());
    }
    result.program = program_.finish(std::move(calls));
    return result;
  }

 private:
  /// Adds the blocks that the passes of a stage need.
  /// @returns the blocks in the order of the passes
  std::vector<BlockId> add_stage(int stage, std::vector<Pass> passes, TrainingProgram& result) {
    const std::vector<std::size_t> gathering = gathering_passes(passes);
    const std::vector<std::size_t> reducing = reducing_passes(passes);
    std::map<BlockKey, BlockId> blocks;
    std::set<BlockId> forward, backward;
    std::vector<BlockId> calls;
    for (std::size_t i = 0; i < passes.size(); ++i) {
      const Pass& pass = passes[i];
      const bool beside = pass.with_next && !syncs_every_pass();
      const ChunkPlace place{stage, pass.chunk};
      const auto has = [i](const std::vector<std::size_t>& all) {
        return std::ranges::find(all, i) != all.end();
      };
      if (has(gathering)) {
        calls.push_back(passes_.gathering_forward(place));
      } else if (has(reducing)) {
        calls.push_back(passes_.reducing(place, pass.kind));
      } else if (beside) {
        const Pass& next = passes[++i];
        const auto [block, added] =
            blocks.try_emplace({pass.chunk, pass.kind, std::pair(next.chunk, next.kind)});
        if (added) block->second = passes_.side_by_side(stage, pass, next);
        calls.push_back(block->second);
      } else {
        const auto [block, added] = blocks.try_emplace({pass.chunk, pass.kind});
        if (added) block->second = passes_.block(place, pass.kind);
        calls.push_back(block->second);
      }
      // A pass beside another counts as what it is itself.
      (pass.kind == Pass::Kind::kForward && !beside ? forward : backward).insert(calls.back());
    }
    result.forward.emplace_back(forward.begin(), forward.end());
    result.backward.emplace_back(backward.begin(), backward.end());
    return calls;
  }

  /// Passes that gather the weights of their chunk: its first forward. They run alone.
  std::vector<std::size_t> gathering_passes(std::vector<Pass>& passes) const {
    std::vector<std::size_t> all;
    if (orrery::gathering_passes(model_, config_) != SyncPasses::kOne) return all;
    for (int chunk = 0; chunk < config_.parallel.vpp; ++chunk) {
      const auto first = std::ranges::find_if(passes, [chunk](const Pass& pass) {
        return pass.kind == Pass::Kind::kForward && pass.chunk == chunk;
      });
      all.push_back(alone(passes, static_cast<std::size_t>(first - passes.begin())));
    }
    return all;
  }

  /// Passes that reduce the gradients of their chunk: the last that ends with those of weights.
  std::vector<std::size_t> reducing_passes(std::vector<Pass>& passes) const {
    std::vector<std::size_t> all;
    if (orrery::reducing_passes(model_, config_) != SyncPasses::kOne) return all;
    for (int chunk = 0; chunk < config_.parallel.vpp; ++chunk) {
      const auto last = std::find_if(passes.rbegin(), passes.rend(), [chunk](const Pass& pass) {
        return has_weight_gradients(pass.kind) && pass.chunk == chunk;
      });
      all.push_back(alone(passes, static_cast<std::size_t>(last.base() - passes.begin()) - 1));
    }
    return all;
  }

  /// Takes a pass away from the side of another.
  static std::size_t alone(std::vector<Pass>& passes, std::size_t pass) {
    passes[pass].with_next = false;
    if (pass > 0) passes[pass - 1].with_next = false;
    return pass;
  }

  /// Whether passes that gather or reduce, all of them, can run side by side: they run alone.
  bool syncs_every_pass() const {
    return orrery::gathering_passes(model_, config_) == SyncPasses::kEvery ||
           orrery::reducing_passes(model_, config_) == SyncPasses::kEvery;
  }

  LlmConfig model_;
  const TrainingConfig& config_;
  ProgramBuilder program_;
  PassBlocks passes_;
};

}  // namespace

RankWork rank_work(const TrainingConfig& config) {
  RankWork work;
  work.batch.phase = Phase::kTraining;
  work.batch.sequences = config.micro_batch;
  work.split.context = context_split(config.parallel, config.software->cp_comm_type.value);
  work.batch.query = config.sequence / config.parallel.cp;
  work.batch.context = work.batch.query;
  work.batch.encoder = config.encoder_sequence > 0 ? config.encoder_sequence : config.sequence;
  work.split.tp = config.parallel.tp;
  work.split.sp = config.parallel.sp;
  work.split.ep = config.parallel.ep;
  work.split.etp = config.parallel.etp;
  work.formats.narrow_inputs = config.narrow_inputs;
  work.formats.sparse_weights = config.sparse_weights;
  work.formats.fp8_gradient_rate = config.fp8_gradient_rate;
  work.passes.fresh_gradients = has_fresh_gradients(config);
  work.formats.precision = config.precision;
  work.flash_attention = config.flash_attention;
  work.passes.dropout = config.dropout;
  set_recompute(config.recompute, work);
  work.batch.samples = config.packed.equal_samples(config.sequence);
  if (config.lora) {
    work.lora.adapters = 1;
    work.lora.rank = config.lora->rank;
    work.lora.trains = true;
    work.lora.drops = config.lora->dropout > 0;
    work.lora.trains_embedding = config.lora->saves(SavedModule::kEmbedTokens);
    work.lora.trains_head = config.lora->saves(SavedModule::kLmHead);
    work.lora.frozen = config.lora->base;
    for (const LoraModule module : config.lora->target_modules)
      work.lora.changes[static_cast<std::size_t>(module)] = true;
  }
  work.software = config.software;
  work.passes.expert_capacity = config.expert_capacity;
  return work;
}

RankWork rank_work(const LlmConfig& model, const TrainingConfig& config) {
  RankWork work = rank_work(config);
  if (config.expert_routing && config.expert_capacity == 0)
    work.split.heaviest = heaviest_rank(model.moe, config.parallel.ep, *config.expert_routing);
  return work;
}

LlmConfig trained_model(const LlmConfig& model, const TrainingConfig& config) {
  LlmConfig cut = model;
  cut.vision.reset();
  if (config.layers_only > 0)
    cut.layers.resize(std::min(cut.layers.size(), static_cast<std::size_t>(config.layers_only)));
  return cut;
}

const PipelineSchedule& schedule_of(const TrainingConfig& config) {
  if (config.written) return *config.written;
  const std::string name = resolved_schedule(config.schedule, config.parallel.vpp);
  return *ScheduleRegistry::at("schedule", name);
}

PipelineShape pipeline_shape(const TrainingConfig& config) {
  return {.ranks = config.parallel.pp,
          .chunks = config.parallel.vpp,
          .micro_batches = config.micro_batches(),
          .pairs = config.software->experts.batch_overlap.value && config.parallel.ep > 1};
}

Placement placement_of(const TrainingConfig& config) {
  return schedule_of(config).place(pipeline_shape(config));
}

TrainingProgram build_training(const LlmConfig& model, const TrainingConfig& config, bool tensors) {
  require_supported(model, config);
  return TrainingBuilder(model, config, tensors).build();
}

}  // namespace orrery
