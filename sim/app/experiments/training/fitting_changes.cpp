// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/training/fitting_changes.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "sim/config/diagnostics.h"
#include "sim/results/table.h"
#include "workloads/layers/work/enum_names.h"
#include "workloads/steps/figures/memory.h"

namespace orrery {
namespace {

class Changes {
 public:
  Changes(const LlmConfig& model, const TrainingConfig& config, const FittingRoom& room)
      : model_(model), config_(config), usable_(room.usable), host_(room.host) {}

  FittingChanges all() {
    shard_states();
    narrow_activations();
    narrow_states();
    offload_states();
    recompute_modules();
    offload_layers();
    recompute_layers();
    halve_micro_batch();
    split_more("tp", &ParallelConfig::tp);
    split_more("pp", &ParallelConfig::pp);
    split_more("cp", &ParallelConfig::cp);
    FittingChanges changes{std::move(found_), {}};
    if (changes.alone.empty()) changes.pairs = pairs();
    return changes;
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

  /// The lowest level at which it fits.
  void shard_states() {
    if (config_.parallel.replicas() == 1) return;
    for (int zero = config_.parallel.zero + 1; zero <= 3; ++zero) {
      TrainingConfig changed = config_;
      changed.parallel.zero = zero;
      if (offer(changed, "parallel.zero: " + std::to_string(zero))) return;
    }
  }

  /// Moments in fewer bits, the widest that fit.
  void narrow_states() {
    if (config_.optimizer == OptimizerKind::kMuon) return;
    for (const MomentFormat format : {MomentFormat::kBf16, MomentFormat::kInt8}) {
      TrainingConfig changed = config_;
      set_moments(changed, format);
      if (offer(changed, moments_text(format))) return;
    }
  }
  static void set_moments(TrainingConfig& changed, MomentFormat format) {
    changed.optimizer_states.momentum = format;
    changed.optimizer_states.variance = format;
  }
  static std::string moments_text(MomentFormat format) {
    const std::string name = format == MomentFormat::kBf16 ? "bf16" : "int8";
    return "optimizer_states: {momentum: " + name + ", variance: " + name + "}";
  }

  /// The smallest share that is offered.
  void offload_states() {
    if (!host_ || config_.optimizer_offload.fraction > 0) return;
    for (const auto& [fraction, text] : {std::pair(0.25, "0.25"), std::pair(0.5, "0.5"),
                                         std::pair(0.75, "0.75"), std::pair(1.0, "1")}) {
      TrainingConfig changed = config_;
      changed.optimizer_offload.fraction = fraction;
      if (offer(changed, "optimizer_offload.fraction: " + std::string(text))) return;
    }
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

  /// A change that may go with another.
  struct Part {
    std::string text;
    std::function<void(TrainingConfig&)> change;
    Bytes saves;
  };

  /// Plans with more ranks along an axis, and fewer replicas.
  template <class Add>
  void split_parts(const std::string& key, int ParallelConfig::*axis, const Add& add) const {
    for (int ranks = 2; config_.parallel.dp % ranks == 0; ranks *= 2) {
      const int size = config_.parallel.*axis * ranks, replicas = config_.parallel.dp / ranks;
      add("parallel: {" + key + ": " + std::to_string(size) + ", dp: " + std::to_string(replicas) +
              "}",
          [axis, size, replicas](TrainingConfig& changed) {
            changed.parallel.*axis = size;
            changed.parallel.dp = replicas;
          });
    }
  }

  std::vector<Part> parts() const {
    using C = TrainingConfig;
    std::vector<Part> all;
    const Bytes now = worst_stage(training_memory(model_, config_)).total();
    const auto add = [&](const std::string& text, std::function<void(C&)> change) {
      C changed = config_;
      change(changed);
      const std::optional<Bytes> bytes = needs(changed);
      if (bytes && *bytes < now) all.push_back({text, std::move(change), now - *bytes});
    };
    for (int zero = config_.parallel.zero + 1; config_.parallel.replicas() > 1 && zero <= 3; ++zero)
      add("parallel.zero: " + std::to_string(zero),
          [zero](C& changed) { changed.parallel.zero = zero; });
    for (const MomentFormat format : {MomentFormat::kBf16, MomentFormat::kInt8})
      add(moments_text(format), [format](C& changed) { set_moments(changed, format); });
    if (host_ && config_.optimizer_offload.fraction == 0)
      add("optimizer_offload.fraction: 1",
          [](C& changed) { changed.optimizer_offload.fraction = 1; });
    if (config_.recompute.granularity != Recompute::kFull) {
      add("recompute: selective", [](C& changed) { changed.recompute = Recompute::kSelective; });
      add("recompute: full", [](C& changed) { changed.recompute = Recompute::kFull; });
    }
    if (config_.micro_batch > 1) add("batch.micro: 1", [](C& changed) { changed.micro_batch = 1; });
    split_parts("tp", &ParallelConfig::tp, add);
    split_parts("pp", &ParallelConfig::pp, add);
    split_parts("cp", &ParallelConfig::cp, add);
    return all;
  }

  /// Tries pairs whose savings add up to the missing memory. A pair may save up to a quarter more
  /// than the sum of its single changes, because another stage may then have the highest peak.
  std::vector<FittingChange> pairs() {
    constexpr std::size_t kMost = 3;
    constexpr double kMore = 1.25;
    const std::vector<Part> all = parts();
    const Bytes missing = worst_stage(training_memory(model_, config_)).total() - usable_;
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t j = i + 1; j < all.size() && found_.size() < kMost; ++j) {
        if (key_of(all[i].text) == key_of(all[j].text)) continue;
        if ((all[i].saves + all[j].saves) * kMore < missing) continue;
        TrainingConfig changed = config_;
        all[i].change(changed);
        all[j].change(changed);
        offer(changed, all[i].text + " and " + all[j].text);
      }
    }
    return std::move(found_);
  }
  static std::string key_of(const std::string& text) { return text.substr(0, text.find(':')); }

  const LlmConfig& model_;
  const TrainingConfig& config_;
  Bytes usable_;
  bool host_;
  std::vector<FittingChange> found_;
};

std::string listed(const std::vector<FittingChange>& changes) {
  std::string text;
  for (const FittingChange& change : changes) {
    text += (text.empty() ? " " : ", ") + change.text + " (" + format_si(change.needs.base(), "B") +
            ")";
  }
  return text;
}

}  // namespace

FittingChanges fitting_changes(const LlmConfig& model, const TrainingConfig& config,
                               const FittingRoom& room) {
  return Changes(model, config, room).all();
}

std::string fitting_text(const FittingChanges& changes) {
  if (!changes.alone.empty()) return "; fits with, each alone:" + listed(changes.alone);
  if (!changes.pairs.empty()) return "; fits with two changes:" + listed(changes.pairs);
  return "; no change of sharding, optimizer, recomputation, micro-batch or plan makes it fit on "
         "these ranks, and no two of them do";
}

}  // namespace orrery
