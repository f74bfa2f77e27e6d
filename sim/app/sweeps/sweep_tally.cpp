// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/sweep_tally.h"

#include <utility>

namespace orrery {
namespace {

ObjectiveConfig first_objective(const SweepConfig& config) {
  if (config.cases.empty()) return {};
  const SweepCaseConfig& first = config.cases.front();
  const auto& objectives = config.objectives_of(first);
  if (!objectives.empty()) return objectives.front();
  return {first.choose.maximize, first.choose.minimize};
}

}  // namespace

BestSoFar::BestSoFar(const SweepConfig& config)
    : config_(config), objective_(first_objective(config)) {}

void BestSoFar::look_at(const RunRecord& record, std::size_t case_index,
                        const std::function<std::string()>& name) {
  const std::string& objective = objective_.name();
  if (objective.empty() || !keeps_limits(config_.cases[case_index].choose, record)) return;
  std::optional<NamedValue> found = value_of(record, objective);
  if (!found) return;
  const bool most = !objective_.maximize.empty();
  if (best_ && (most ? found->value <= best_->value : found->value >= best_->value)) return;
  best_ = {objective, most, found->value, std::move(found->unit), name(), record.identity};
}

}  // namespace orrery
