// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/fitting_changes.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "sim/config/diagnostics.h"
#include "sim/results/table.h"
#include "workloads/llm/enum_names.h"
#include "workloads/memory.h"

namespace orrery {
namespace {

class Changes {
 public:
  Changes(const LlmConfig& model, const TrainingConfig& config, const FittingRoom& room)
      : model_(model), config_(config), usable_(room.usable), host_(room.host) {}

  std::vector<FittingChange> all() {
    shard_states();
    narrow_activations();
    recompute_modules();
    offload_layers();
    recompute_layers();
    halve_micro_batch();
    split_more("tp", &ParallelConfig::tp);
    split_more("pp", &ParallelConfig::pp);
    split_more("cp", &ParallelConfig::cp);
    return std::move(found_);
  }

 private:
  /// What the fullest rank needs; nothing where the model cannot be trained so.
  std::optional<Bytes> needs(const TrainingConfig& changed) const {
    try {
      return worst_stage(training_memory(model_, changed)).total();
    } catch (const config::ConfigError&) {
      return std::nullopt;
    }
  }

  /// @return whether it fits
  bool offer(const TrainingConfig& changed, const std::string& text) {
    const std::optional<Bytes> bytes = needs(changed);
    if (!bytes || *bytes > usable_) return false;
    found_.push_back({text, *bytes});
    return true;
  }

  void shard_states() {
    if (config_.parallel.zero > 0 || config_.parallel.replicas() == 1) return;
    TrainingConfig changed = config_;
    changed.parallel.zero = 1;
    offer(changed, "parallel.zero: 1");
  }

  void narrow_activations() {
    if (config_.narrow_inputs) return;
    TrainingConfig changed = config_;
    changed.narrow_inputs = true;
    offer(changed, "activation_precision: fp8");
  }

  /// The modules that a model has, cheap ones before whole ones.
  void recompute_modules() {
    using M = RecomputeModule;
    const Recompute now = config_.recompute.granularity;
    if (now == Recompute::kFull) return;
    TrainingConfig changed = config_;
    if (now == Recompute::kNone) changed.recompute = Recompute::kSelective;
    if (now == Recompute::kNone && offer(changed, "recompute: selective")) return;
    std::string text;
    for (const M module : changed.recompute.modules) add_name(text, module);
    for (const M module :
         {M::kLayernorm, M::kMoeAct, M::kMlaUpProj, M::kSharedExperts, M::kMlp, M::kMoe}) {
      std::vector<M>& modules = changed.recompute.modules;
      if (std::find(modules.begin(), modules.end(), module) != modules.end()) continue;
      modules.push_back(module);
      if (!needs(changed)) {  // a model without it
        modules.pop_back();
        continue;
      }
      add_name(text, module);
      if (offer(changed, "recompute: {granularity: selective, modules: [" + text + "]}")) return;
    }
  }
  static void add_name(std::string& text, RecomputeModule module) {
    for (const auto& [value, name] : config::EnumNames<RecomputeModule>::values)
      if (value == module) text += (text.empty() ? "" : ", ") + std::string(name);
  }

  /// The fewest layers with which a change fits that all layers make fit; 0: none.
  template <class Change>
  int fewest_layers(Change change) const {
    const auto fits = [&](int layers) {
      TrainingConfig changed = config_;
      change(changed, layers);
      const std::optional<Bytes> bytes = needs(changed);
      return bytes && *bytes <= usable_;
    };
    int none = 0, most = static_cast<int>(model_.layer_count());
    if (!fits(most)) return 0;
    while (most - none > 1) {
      const int middle = (none + most) / 2;
      (fits(middle) ? most : none) = middle;
    }
    return most;
  }

  void offload_layers() {
    if (!host_ || config_.activation_offload > 0) return;
    const auto change = [](TrainingConfig& changed, int layers) {
      changed.activation_offload = layers;
    };
    const int layers = fewest_layers(change);
    if (layers == 0) return;
    TrainingConfig changed = config_;
    change(changed, layers);
    offer(changed, "activation_offload: " + std::to_string(layers));
  }

  void recompute_layers() {
    const RecomputeConfig& now = config_.recompute;
    if (now.granularity == Recompute::kFull && now.method == RecomputeMethod::kUniform) return;
    const auto change = [](TrainingConfig& changed, int layers) {
      changed.recompute = Recompute::kFull;
      changed.recompute.method = RecomputeMethod::kBlock;
      changed.recompute.num_layers = layers;
    };
    const int layers = fewest_layers(change);
    if (layers == 0) return;
    TrainingConfig changed = config_;
    change(changed, layers);
    offer(changed, "recompute: {granularity: full, method: block, num_layers: " +
                       std::to_string(layers) + "}");
    changed.recompute = Recompute::kFull;
    offer(changed, "recompute: full");
  }

  void halve_micro_batch() {
    for (std::int64_t micro = config_.micro_batch / 2; micro >= 1; micro /= 2) {
      TrainingConfig changed = config_;
      changed.micro_batch = micro;
      if (offer(changed, "batch.micro: " + std::to_string(micro))) return;
    }
  }

  /// Twice the ranks along an axis, and half the replicas.
  void split_more(const std::string& key, int ParallelConfig::*axis) {
    TrainingConfig changed = config_;
    while (changed.parallel.dp % 2 == 0) {
      changed.parallel.dp /= 2;
      changed.parallel.*axis *= 2;
      std::string plan = "parallel: {" + key + ": " + std::to_string(changed.parallel.*axis) +
                         ", dp: " + std::to_string(changed.parallel.dp);
      if (offer(changed, plan + "}")) return;
    }
  }

  const LlmConfig& model_;
  const TrainingConfig& config_;
  Bytes usable_;
  bool host_;
  std::vector<FittingChange> found_;
};

}  // namespace

std::vector<FittingChange> fitting_changes(const LlmConfig& model, const TrainingConfig& config,
                                           const FittingRoom& room) {
  return Changes(model, config, room).all();
}

std::string fitting_text(const std::vector<FittingChange>& changes) {
  if (changes.empty())
    return "; no change of recomputation, micro-batch or plan alone makes it fit on these ranks";
  std::string text = "; fits with, each alone:";
  for (const FittingChange& change : changes) {
    text += (&change == changes.data() ? " " : ", ") + change.text + " (" +
            format_si(change.needs.base(), "B") + ")";
  }
  return text;
}

}  // namespace orrery
