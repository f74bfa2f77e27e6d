// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/explain/switches.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/pricing/tile_store.h"
#include "sim/app/questions/explain/effects.h"
#include "sim/config/leaf.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

bool is_switch(const config::Leaf& leaf) {
  const bool said = leaf.path.starts_with("software.") ||
                    leaf.path.starts_with("engine.kernels.") || leaf.path == "two_batch_overlap";
  return said && !leaf.path.ends_with(".source") &&
         (leaf.type->kind == config::TypeKind::kEnum || leaf.type->kind == config::TypeKind::kFlag);
}

/// Seconds of the step with another value; nothing where it cannot have that.
std::optional<double> step_time(const LoadedExperiment& loaded, const std::string& set,
                                TileStore& tiles) {
  config::Diagnostics diagnostics;
  SimulateOptions options;
  options.tiles = &tiles;
  options.configuration = false;
  options.beyond_memory = true;
  try {
    const RunRecord record = simulate(load_experiment(loaded.node, {set}, diagnostics), options);
    const Metric* time = record.find("step_time_s");
    return time != nullptr ? std::optional(time->value) : std::nullopt;
  } catch (const config::ConfigError&) {
    return std::nullopt;
  }
}

}  // namespace

nlohmann::ordered_json switch_changes(const LoadedExperiment& loaded, double now) {
  TileStore tiles;
  std::vector<ordered_json> rows;
  for (const config::Leaf& leaf : loaded.leaves()) {
    if (!is_switch(leaf)) continue;
    for (const std::string& other : other_values(leaf)) {
      const std::optional<double> time = step_time(loaded, leaf.path + "=" + other, tiles);
      if (!time) continue;
      const std::string software = "software.";
      const bool trains = leaf.path.starts_with(software);
      rows.push_back({{"switch", trains ? leaf.path.substr(software.size()) : leaf.path},
                      {"value", leaf.text},
                      {"other", other},
                      {"step_time_s", *time},
                      {"change_s", *time - now}});
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const ordered_json& a, const ordered_json& b) {
    return std::abs(a["change_s"].get<double>()) > std::abs(b["change_s"].get<double>());
  });
  return rows;
}

}  // namespace orrery
