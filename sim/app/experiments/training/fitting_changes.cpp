// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/training/fitting_changes.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "sim/config/diagnostics.h"
#include "sim/results/table.h"
#include "sim/units/comma_separated.h"
#include "sim/units/text.h"
#include "workloads/layers/work/enum_names.h"
#include "workloads/steps/figures/memory.h"

namespace orrery {
namespace {

/// A change of a step.
struct Change {
  std::string text;  ///< the keys to write
  std::function<void(TrainingConfig&)> apply;
  Bytes saves = {};
};

std::string module_name(RecomputeModule module) {
  const auto& names = config::EnumNames<RecomputeModule>::values;
  return std::ranges::find(names, module, [](const auto& name) { return name.first; })->second;
}

Change sharded(int zero) {
  return {fmt::format("parallel.zero: {}", zero),
          [zero](TrainingConfig& c) { c.parallel.zero = zero; }};
}

Change moments_in(MomentFormat format) {
  return {fmt::format("optimizer_states: {{momentum: {0}, variance: {0}}}",
                      format == MomentFormat::kBf16 ? "bf16" : "int8"),
          [format](TrainingConfig& c) {
            c.optimizer_states.momentum = format;
            c.optimizer_states.variance = format;
          }};
}

Change states_offloaded(double fraction) {
  return {"optimizer_offload.fraction: " + print_number(fraction),
          [fraction](TrainingConfig& c) { c.optimizer_offload.fraction = fraction; }};
}

Change recomputed(Recompute granularity) {
  return {granularity == Recompute::kFull ? "recompute: full" : "recompute: selective",
          [granularity](TrainingConfig& c) { c.recompute = granularity; }};
}

Change layers_recomputed(int layers) {
  return {fmt::format("recompute: {{granularity: full, method: block, num_layers: {}}}", layers),
          [layers](TrainingConfig& c) {
            c.recompute = Recompute::kFull;
            c.recompute.method = RecomputeMethod::kBlock;
            c.recompute.num_layers = layers;
          }};
}

Change layers_offloaded(int layers) {
  return {fmt::format("activation_offload: {}", layers),
          [layers](TrainingConfig& c) { c.activation_offload = layers; }};
}

Change micro_batch_of(std::int64_t micro) {
  return {fmt::format("batch.micro: {}", micro),
          [micro](TrainingConfig& c) { c.micro_batch = micro; }};
}

/// Plans with more ranks along an axis, and fewer replicas.
std::vector<Change> splits(const ParallelConfig& now, const char* key, int ParallelConfig::*axis) {
  std::vector<Change> all;
  for (int ranks = 2; now.dp % ranks == 0; ranks *= 2) {
    const int size = now.*axis * ranks, replicas = now.dp / ranks;
    all.push_back(
        {fmt::format("parallel: {{{}: {}, dp: {}}}", key, size, replicas), [=](TrainingConfig& c) {
           c.parallel.*axis = size;
           c.parallel.dp = replicas;
         }});
  }
  return all;
}

class Changes {
 public:
  Changes(const LlmConfig& model, const TrainingConfig& config, const FittingRoom& room)
      : model_(model), config_(config), usable_(room.usable), host_(room.host) {}

  FittingChanges all() {
    offer_first(shardings());
    if (!config_.narrow_inputs)
      offer({"activation_precision: fp8", [](TrainingConfig& c) { c.narrow_inputs = true; }});
    if (config_.optimizer != OptimizerKind::kMuon)
      offer_first({moments_in(MomentFormat::kBf16), moments_in(MomentFormat::kInt8)});
    if (offloads_states())
      for (const double fraction : {0.25, 0.5, 0.75, 1.0})
        if (offer(states_offloaded(fraction))) break;
    recompute_modules();
    if (host_ && config_.activation_offload == 0) offer_fewest(layers_offloaded);
    const RecomputeConfig& now = config_.recompute;
    if (now.granularity != Recompute::kFull || now.method != RecomputeMethod::kUniform)
      if (offer_fewest(layers_recomputed)) offer(recomputed(Recompute::kFull));
    for (std::int64_t micro = config_.micro_batch / 2; micro >= 1; micro /= 2)
      if (offer(micro_batch_of(micro))) break;
    for (const auto& [key, axis] : kAxes) offer_first(splits(config_.parallel, key, axis));
    FittingChanges changes{std::move(found_), {}};
    if (changes.alone.empty()) changes.pairs = pairs();
    return changes;
  }

 private:
  static constexpr std::pair<const char*, int ParallelConfig::*> kAxes[] = {
      {"tp", &ParallelConfig::tp}, {"pp", &ParallelConfig::pp}, {"cp", &ParallelConfig::cp}};

  /// What the fullest rank needs; nothing where the model cannot be trained so.
  std::optional<Bytes> needs(const TrainingConfig& changed) const {
    try {
      return worst_stage(training_memory(model_, changed)).total();
    } catch (const config::ConfigError&) {
      return std::nullopt;
    }
  }

  std::optional<Bytes> needs(const Change& change) const {
    TrainingConfig changed = config_;
    change.apply(changed);
    return needs(changed);
  }

  /// @return whether it fits
  bool offer(const Change& change) {
    const std::optional<Bytes> bytes = needs(change);
    if (!bytes || *bytes > usable_) return false;
    found_.push_back({change.text, *bytes});
    return true;
  }

  void offer_first(const std::vector<Change>& changes) {
    for (const Change& change : changes)
      if (offer(change)) return;
  }

  /// The fewest layers with which a change fits that all layers make fit.
  /// @return whether there are any
  bool offer_fewest(Change (*change)(int layers)) {
    const auto fits = [&](int layers) {
      const std::optional<Bytes> bytes = needs(change(layers));
      return bytes && *bytes <= usable_;
    };
    int none = 0, most = static_cast<int>(model_.layer_count());
    if (!fits(most)) return false;
    while (most - none > 1) {
      const int middle = (none + most) / 2;
      (fits(middle) ? most : none) = middle;
    }
    return offer(change(most));
  }

  std::vector<Change> shardings() const {
    std::vector<Change> all;
    for (int zero = config_.parallel.zero + 1; config_.parallel.replicas() > 1 && zero <= 3; ++zero)
      all.push_back(sharded(zero));
    return all;
  }

  bool offloads_states() const { return host_ && !(config_.optimizer_offload.fraction > 0); }

  /// The modules that a model has, cheap ones before whole ones.
  void recompute_modules() {
    using M = RecomputeModule;
    const Recompute now = config_.recompute.granularity;
    if (now == Recompute::kFull) return;
    if (now == Recompute::kNone && offer(recomputed(Recompute::kSelective))) return;
    TrainingConfig changed = config_;
    if (now == Recompute::kNone) changed.recompute = Recompute::kSelective;
    std::vector<M>& modules = changed.recompute.modules;
    for (const M module :
         {M::kLayernorm, M::kMoeAct, M::kMlaUpProj, M::kSharedExperts, M::kMlp, M::kMoe}) {
      if (std::ranges::find(modules, module) != modules.end()) continue;
      modules.push_back(module);
      if (!needs(changed)) {  // a model without it
        modules.pop_back();
        continue;
      }
      if (offer({fmt::format("recompute: {{granularity: selective, modules: [{}]}}",
                             comma_joined(modules, module_name)),
                 [&](TrainingConfig& c) { c = changed; }}))
        return;
    }
  }

  /// Changes that may go with another.
  std::vector<Change> parts() const {
    std::vector<Change> all = shardings();
    all.push_back(moments_in(MomentFormat::kBf16));
    all.push_back(moments_in(MomentFormat::kInt8));
    if (offloads_states()) all.push_back(states_offloaded(1));
    if (config_.recompute.granularity != Recompute::kFull) {
      all.push_back(recomputed(Recompute::kSelective));
      all.push_back(recomputed(Recompute::kFull));
    }
    if (config_.micro_batch > 1) all.push_back(micro_batch_of(1));
    for (const auto& [key, axis] : kAxes)
      for (Change& split : splits(config_.parallel, key, axis)) all.push_back(std::move(split));
    const Bytes now = worst_stage(training_memory(model_, config_)).total();
    std::erase_if(all, [&](Change& change) {
      const std::optional<Bytes> bytes = needs(change);
      if (bytes) change.saves = now - *bytes;
      return !bytes || *bytes >= now;
    });
    return all;
  }

  /// Tries pairs whose savings add up to the missing memory. A pair may save up to a quarter more
  /// than the sum of its single changes, because another stage may then have the highest peak.
  std::vector<FittingChange> pairs() {
    constexpr std::size_t kMost = 3;
    constexpr double kMore = 1.25;
    const std::vector<Change> all = parts();
    const Bytes missing = worst_stage(training_memory(model_, config_)).total() - usable_;
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t j = i + 1; j < all.size() && found_.size() < kMost; ++j) {
        if (key_of(all[i].text) == key_of(all[j].text)) continue;
        if ((all[i].saves + all[j].saves) * kMore < missing) continue;
        offer({all[i].text + " and " + all[j].text, [&](TrainingConfig& c) {
                 all[i].apply(c);
                 all[j].apply(c);
               }});
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
  return " " + comma_joined(changes, [](const FittingChange& change) {
           return fmt::format("{} ({})", change.text, format_si(change.needs.base(), "B"));
         });
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
