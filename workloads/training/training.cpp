// SPDX-License-Identifier: Apache-2.0
#include "workloads/training/training.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "workloads/llm/kernels.h"
#include "workloads/llm/layers.h"
#include "workloads/parallelism/program_builder.h"
#include "workloads/parallelism/stages.h"
#include "workloads/training/optimizer_step.h"

namespace orrery {
namespace {

/// Builds the blocks of all stages and chunks.
class TrainingBuilder {
 public:
  TrainingBuilder(const LlmConfig& model, const TrainingConfig& config)
      : model_(trained_model(model, config)),
        config_(config),
        work_(layer_work(config)),
        ranges_(layer_ranges(model_.layer_count(), config.parallel)),
        program_(config.parallel) {}

  TrainingProgram build() {
    TrainingProgram result;
    std::vector<std::vector<BlockId>> calls;
    for (int stage = 0; stage < config_.parallel.pp; ++stage) {
      std::vector<BlockId> forward, backward;
      for (int chunk = 0; chunk < config_.parallel.vpp; ++chunk) {
        forward.push_back(forward_block(stage, chunk));
        backward.push_back(backward_block(stage, chunk));
      }
      calls.push_back(stage_calls(stage, forward, backward));
      result.forward.push_back(std::move(forward));
      result.backward.push_back(std::move(backward));
      if (config_.layers_only > 0) continue;
      result.optimizer.push_back(optimizer_block(program_, model_, config_, stage));
      calls.back().push_back(result.optimizer.back());
    }
    result.program = program_.finish(std::move(calls));
    return result;
  }

 private:
  std::vector<BlockId> stage_calls(int stage, const std::vector<BlockId>& forward,
                                   const std::vector<BlockId>& backward) const {
    std::vector<BlockId> calls;
    for (const PipelineSlot& slot : pipeline_slots(config_, stage)) {
      calls.push_back((slot.forward ? forward : backward)[static_cast<std::size_t>(slot.chunk)]);
    }
    return calls;
  }

  bool is_first(int stage, int chunk) const { return stage == 0 && chunk == 0; }
  bool is_last(int stage, int chunk) const {
    return stage == config_.parallel.pp - 1 && chunk == config_.parallel.vpp - 1;
  }
  bool has_ends() const { return config_.layers_only == 0; }
  LayerRange range(int stage, int chunk) const {
    return ranges_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(chunk)];
  }

  /// Activations or gradients of a micro-batch; under sequence parallelism every tensor parallel
  /// rank sends its part.
  TransferId message(const std::string& direction, int from, int to) {
    const double values = static_cast<double>(work_.row_tokens() * model_.hidden);
    return program_.message(direction, from, to, Bytes(values * activation_bytes(work_.precision)));
  }

  BlockId forward_block(int stage, int chunk) {
    const int pp = config_.parallel.pp;
    BlockBuilder block(program_, stage);
    if (!is_first(stage, chunk)) {
      block.receive(message("forward", (stage + pp - 1) % pp, stage), kReceiveForwardStream);
    } else if (has_ends()) {
      block.append("", embedding_forward(model_, work_));
    }
    const LayerRange layers = range(stage, chunk);
    for (std::int64_t i = layers.first; i < layers.first + layers.count; ++i) {
      block.append(layer_name(i), layer_forward(model_, layer(i), work_));
    }
    if (!is_last(stage, chunk)) {
      block.send(message("forward", stage, (stage + 1) % pp), kSendForwardStream);
    } else if (has_ends()) {
      block.append("", head_forward(model_, work_));
    }
    return block.finish("forward " + block_name(stage, chunk));
  }

  BlockId backward_block(int stage, int chunk) {
    const int pp = config_.parallel.pp;
    BlockBuilder block(program_, stage);
    if (!is_last(stage, chunk)) {
      block.receive(message("backward", (stage + 1) % pp, stage), kReceiveBackwardStream);
    } else if (has_ends()) {
      block.append("", head_backward(model_, work_));
    }
    const LayerRange layers = range(stage, chunk);
    for (std::int64_t i = layers.first + layers.count; i-- > layers.first;) {
      block.append(layer_name(i), layer_backward(model_, layer(i), work_));
    }
    if (!is_first(stage, chunk)) {
      block.send(message("backward", stage, (stage + pp - 1) % pp), kSendBackwardStream);
    } else if (has_ends()) {
      block.append("", embedding_backward(model_, work_));
    }
    return block.finish("backward " + block_name(stage, chunk));
  }

  const LayerConfig& layer(std::int64_t index) const {
    return model_.layers[static_cast<std::size_t>(index)];
  }
  static std::string layer_name(std::int64_t index) {
    return "layer " + std::to_string(index) + " ";
  }
  static std::string block_name(int stage, int chunk) {
    return std::to_string(stage) + "." + std::to_string(chunk);
  }

  LlmConfig model_;
  const TrainingConfig& config_;
  LayerWork work_;
  std::vector<std::vector<LayerRange>> ranges_;
  ProgramBuilder program_;
};

}  // namespace

LayerWork layer_work(const TrainingConfig& config) {
  LayerWork work;
  work.phase = Phase::kTraining;
  work.sequences = config.micro_batch;
  work.query = config.sequence;
  work.context = config.sequence;
  work.tp = config.parallel.tp;
  work.sp = config.parallel.sp;
  work.ep = config.parallel.ep;
  work.etp = config.parallel.etp;
  work.narrow_inputs = config.narrow_inputs;
  work.precision = config.precision;
  work.flash_attention = config.flash_attention;
  work.dropout = config.dropout;
  work.recompute = config.recompute;
  return work;
}

LlmConfig trained_model(const LlmConfig& model, const TrainingConfig& config) {
  LlmConfig cut = model;
  if (config.layers_only > 0) {
    cut.layers.resize(std::min(cut.layers.size(), static_cast<std::size_t>(config.layers_only)));
  }
  return cut;
}

std::vector<PipelineSlot> pipeline_slots(const TrainingConfig& config, int stage) {
  const ParallelConfig& p = config.parallel;
  return p.vpp > 1 ? interleaved(p.pp, p.vpp, stage, config.micro_batches())
                   : one_forward_one_backward(p.pp, stage, config.micro_batches());
}

TrainingProgram build_training(const LlmConfig& model, const TrainingConfig& config) {
  require_supported(model, config);
  return TrainingBuilder(model, config).build();
}

}  // namespace orrery
