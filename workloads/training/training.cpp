// SPDX-License-Identifier: Apache-2.0
#include "workloads/training/training.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "workloads/llm/context_training.h"
#include "workloads/parallelism/program_builder.h"
#include "workloads/require.h"
#include "workloads/training/optimizer_step.h"
#include "workloads/training/pass_blocks.h"
#include "workloads/training/sharded_weights.h"

namespace orrery {
namespace {

constexpr std::size_t kPassKinds = 4;
/// Blocks of a stage by chunk and Pass::Kind; none for kinds that its schedule does not have.
using StageBlocks = std::vector<std::array<std::optional<BlockId>, kPassKinds>>;

std::optional<BlockId>& block_of(StageBlocks& blocks, const Pass& pass) {
  return blocks.at(static_cast<std::size_t>(pass.chunk))[static_cast<std::size_t>(pass.kind)];
}

/// Builds the blocks of all stages and chunks.
class TrainingBuilder {
 public:
  TrainingBuilder(const LlmConfig& model, const TrainingConfig& config, bool tensors)
      : model_(trained_model(model, config)),
        config_(config),
        program_(config.parallel),
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
  /// @returns the block of each pass
  std::vector<BlockId> add_stage(int stage, const std::vector<Pass>& passes,
                                 TrainingProgram& result) {
    StageBlocks blocks = build_blocks(stage, passes);
    std::vector<BlockId> forward, backward, calls;
    for (const auto& kinds : blocks) {
      if (kinds.front()) forward.push_back(*kinds.front());
      for (std::size_t kind = 1; kind < kPassKinds; ++kind) {
        if (kinds[kind]) backward.push_back(*kinds[kind]);
      }
    }
    calls.reserve(passes.size() + 1);
    for (const Pass& pass : passes) calls.push_back(*block_of(blocks, pass));
    gather_in_first_passes(stage, passes, calls, forward);
    reduce_in_last_passes(stage, passes, calls, backward);
    result.forward.push_back(std::move(forward));
    result.backward.push_back(std::move(backward));
    return calls;
  }

  /// The first forward pass of each chunk gathers its weights.
  void gather_in_first_passes(int stage, const std::vector<Pass>& passes,
                              std::vector<BlockId>& calls, std::vector<BlockId>& forward) {
    if (gathering_passes(model_, config_) != SyncPasses::kOne) return;
    for (int chunk = 0; chunk < config_.parallel.vpp; ++chunk) {
      const auto first = std::find_if(passes.begin(), passes.end(), [chunk](const Pass& pass) {
        return pass.kind == Pass::Kind::kForward && pass.chunk == chunk;
      });
      forward.push_back(passes_.gathering_forward({stage, chunk}));
      calls[static_cast<std::size_t>(first - passes.begin())] = forward.back();
    }
  }

  /// The last pass of each chunk that ends with gradients of weights reduces them.
  void reduce_in_last_passes(int stage, const std::vector<Pass>& passes,
                             std::vector<BlockId>& calls, std::vector<BlockId>& backward) {
    if (reducing_passes(model_, config_) != SyncPasses::kOne) return;
    for (int chunk = 0; chunk < config_.parallel.vpp; ++chunk) {
      const auto last = std::find_if(passes.rbegin(), passes.rend(), [chunk](const Pass& pass) {
        return has_weight_gradients(pass.kind) && pass.chunk == chunk;
      });
      backward.push_back(passes_.reducing({stage, chunk}, last->kind));
      calls[static_cast<std::size_t>(last.base() - passes.begin()) - 1] = backward.back();
    }
  }

  StageBlocks build_blocks(int stage, const std::vector<Pass>& passes) {
    StageBlocks blocks(static_cast<std::size_t>(config_.parallel.vpp));
    for (const Pass& pass : passes) {
      require(!pass.with_next, "schedule",
              "schedule '" + config_.schedule +
                  "' runs passes side by side (with_next), which is not modelled");
      block_of(blocks, pass) = BlockId{};
    }
    for (std::size_t chunk = 0; chunk < blocks.size(); ++chunk) {
      for (std::size_t kind = 0; kind < kPassKinds; ++kind) {
        std::optional<BlockId>& block = blocks[chunk][kind];
        const ChunkPlace place{stage, static_cast<int>(chunk)};
        if (block) block = passes_.block(place, static_cast<Pass::Kind>(kind));
      }
    }
    return blocks;
  }

  LlmConfig model_;
  const TrainingConfig& config_;
  ProgramBuilder program_;
  PassBlocks passes_;
};

}  // namespace

LayerWork layer_work(const TrainingConfig& config) {
  LayerWork work;
  work.phase = Phase::kTraining;
  work.sequences = config.micro_batch;
  work.split = context_split(config.parallel, config.software->cp_comm_type.value);
  work.query = config.sequence / config.parallel.cp;
  work.context = work.query;
  work.tp = config.parallel.tp;
  work.sp = config.parallel.sp;
  work.ep = config.parallel.ep;
  work.etp = config.parallel.etp;
  work.narrow_inputs = config.narrow_inputs;
  work.fp8_gradient_rate = config.fp8_gradient_rate;
  work.fresh_gradients = has_fresh_gradients(config);
  work.precision = config.precision;
  work.flash_attention = config.flash_attention;
  work.dropout = config.dropout;
  set_recompute(config.recompute, work);
  work.samples = config.packed.equal_samples(config.sequence);
  if (config.lora) {
    work.lora.adapters = 1;
    work.lora.rank = config.lora->rank;
    work.lora.trains = true;
    for (const LoraModule module : config.lora->target_modules)
      work.lora.changes[static_cast<std::size_t>(module)] = true;
  }
  work.software = config.software;
  work.expert_capacity = config.expert_capacity;
  return work;
}

LayerWork layer_work(const LlmConfig& model, const TrainingConfig& config) {
  LayerWork work = layer_work(config);
  if (config.expert_routing && config.expert_capacity == 0)
    work.heaviest = heaviest_rank(model.moe, config.parallel.ep, *config.expert_routing);
  return work;
}

LlmConfig trained_model(const LlmConfig& model, const TrainingConfig& config) {
  LlmConfig cut = model;
  if (config.layers_only > 0) {
    cut.layers.resize(std::min(cut.layers.size(), static_cast<std::size_t>(config.layers_only)));
  }
  return cut;
}

const PipelineSchedule& schedule_of(const TrainingConfig& config) {
  const std::string name = resolved_schedule(config.schedule, config.parallel.vpp);
  return *ScheduleRegistry::at("schedule", name);
}

PipelineShape pipeline_shape(const TrainingConfig& config) {
  return {.ranks = config.parallel.pp,
          .chunks = config.parallel.vpp,
          .micro_batches = config.micro_batches()};
}

Placement placement_of(const TrainingConfig& config) {
  return schedule_of(config).place(pipeline_shape(config));
}

TrainingProgram build_training(const LlmConfig& model, const TrainingConfig& config, bool tensors) {
  require_supported(model, config);
  return TrainingBuilder(model, config, tensors).build();
}

}  // namespace orrery
