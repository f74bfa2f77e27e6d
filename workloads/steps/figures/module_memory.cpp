// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/figures/module_memory.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/steps/training/pieces.h"
#include "workloads/steps/training/sharded_weights.h"

namespace orrery {
namespace {

using Parts = std::map<std::string, double>;

double total_of(const Parts& parts) {
  double all = 0;
  for (const auto& [name, value] : parts) all += value;
  return all;
}

/// The part of a piece that is no layer.
std::string part_of(Piece::Kind kind) {
  using Kind = Piece::Kind;
  if (kind == Kind::kEmbedding || kind == Kind::kDecoderEmbedding) return "embedding";
  return kind == Kind::kModule ? "MTP" : "head and loss";
}

const char* feed_name(const LayerConfig& layer) { return layer.moe ? "experts" : "MLP"; }

std::string mixer_name(const LlmConfig& model, const LayerConfig& layer) {
  const Mixer* mixer = mixer_of(model, layer);
  return mixer != nullptr ? mixer->name() : feed_name(layer);
}

/// The part that a layer keeps a tensor for.
std::string part_of(const std::string& tensor, const LlmConfig& model, const LayerConfig& layer) {
  for (const char* feed : {"mlp", "down", "router", "shared", "expert"})
    if (tensor.starts_with(feed)) return feed_name(layer);
  return mixer_name(model, layer);
}

class StageParts {
 public:
  StageParts(const LlmConfig& model, const TrainingConfig& config, int stage)
      : model_(model), config_(config), stage_(stage), pieces_(model_, config) {
    work_ = rank_work(model, config);
    work_.passes.tensors = true;
  }

  std::map<std::string, RankParameters> parameters() const {
    std::map<std::string, RankParameters> parts;
    for (const Piece& piece : pieces_.of_stage(stage_)) {
      if (piece.kind != Piece::Kind::kLayer) {
        parts[part_of(piece.kind)] += pieces_.held(piece, stage_);
        continue;
      }
      const LayerConfig& layer = pieces_.layer(piece);
      const LayerHalves halves = layer_halves(model_, layer, config_.parallel);
      parts[mixer_name(model_, layer)] += halves.attention;
      parts[feed_name(layer)] += halves.feed;
    }
    return parts;
  }

  /// Bytes that passes have left after the one that leaves most.
  Parts activations() const {
    std::vector<Parts> of_chunk;
    of_chunk.reserve(static_cast<std::size_t>(config_.parallel.vpp));
    for (int chunk = 0; chunk < config_.parallel.vpp; ++chunk)
      of_chunk.push_back(kept({stage_, chunk}));
    std::vector<int> alive(of_chunk.size(), 0), most = alive;
    double bytes = 0, largest = -1;
    for (const Pass& pass : schedule_of(config_).passes(pipeline_shape(config_), stage_)) {
      const auto chunk = static_cast<std::size_t>(pass.chunk);
      if (pass.kind == Pass::Kind::kInputGradient) continue;
      const int change = pass.kind == Pass::Kind::kForward ? 1 : -1;
      alive[chunk] += change;
      bytes += change * total_of(of_chunk[chunk]);
      if (bytes <= largest || pass.with_next) continue;  // the next frees as this makes
      largest = bytes;
      most = alive;
    }
    Parts all;
    for (std::size_t chunk = 0; chunk < of_chunk.size(); ++chunk)
      for (const auto& [name, value] : of_chunk[chunk]) all[name] += most[chunk] * value;
    return all;
  }

 private:
  Parts kept(ChunkPlace place) const {
    Parts parts;
    for (const Piece& piece : pieces_.of(place)) {
      if (pieces_.is_offloaded(piece, place)) continue;
      const bool layer = piece.kind == Piece::Kind::kLayer;
      const StepList steps = pieces_.forward(piece, work_);
      for (const Tensor& tensor : steps.left(TensorRole::kActivation)) {
        const std::string part =
            layer ? part_of(tensor.name, model_, pieces_.layer(piece)) : part_of(piece.kind);
        parts[part] += tensor.bytes.base();
      }
    }
    return parts;
  }

  LlmConfig model_;
  const TrainingConfig& config_;
  int stage_;
  Pieces pieces_;
  RankWork work_;
};

}  // namespace

std::vector<ModuleMemory> module_memory(const LlmConfig& model, const TrainingConfig& config,
                                        int stage, const MemoryUse& use) {
  if (config.lora) return {};
  const StageParts parts(trained_model(model, config), config, stage);
  Parts whole, shards;
  for (const auto& [name, parameters] : parts.parameters()) {
    whole[name] = real(parameters.total());
    shards[name] = shard_of(parameters, config).total();
  }
  const Parts kept = parts.activations();
  const int zero = config.layers_only > 0 ? 0 : config.parallel.zero;
  const auto share = [](const Parts& all, const std::string& name, Bytes bytes) {
    const auto found = all.find(name);
    const double total = total_of(all);
    return found == all.end() || total == 0 ? Bytes() : bytes * (found->second / total);
  };
  std::map<std::string, ModuleMemory> rows;
  for (const Parts* some : {&std::as_const(whole), &kept})
    for (const auto& [name, value] : *some) rows[name].module = name;
  std::vector<ModuleMemory> all;
  for (auto& [name, row] : rows) {
    const auto held = whole.find(name);
    row.parameters = held == whole.end() ? 0 : held->second;
    row.weights = share(zero >= 3 ? shards : whole, name, use.weights);
    row.gradients = share(has_fresh_gradients(config) ? shards : whole, name, use.gradients);
    row.optimizer = share(zero >= 1 ? shards : whole, name, use.optimizer);
    row.activations = share(kept, name, use.activations);
    all.push_back(std::move(row));
  }
  const auto bytes = [](const ModuleMemory& row) {
    return (row.weights + row.gradients + row.optimizer + row.activations).base();
  };
  std::ranges::stable_sort(all, std::greater<>(), bytes);
  return all;
}

}  // namespace orrery
