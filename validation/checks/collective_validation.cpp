// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/collective_validation.h"

#include <algorithm>
#include <cmath>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/experiments/engines/engine_site.h"
#include "sim/app/pricing/engine_network.h"
#include "sim/config/load.h"

namespace orrery {
namespace {

std::optional<CollectiveValidation::Machine> machine_of(const std::string& accelerator,
                                                        const std::string& calibration) {
  const std::string name = measured_system(accelerator);
  if (name.empty()) return {};
  const config::Library& library = config::default_library();
  auto system = config::load<SystemConfig>(library.locate("systems", name, ""), library, "systems");
  CollectiveValidation::Machine machine;
  machine.name = name;
  const std::string file = network_calibration_file(calibration, system);
  if (!file.empty()) {
    machine.calibration = loaded_network_calibration(file);
    machine.calibration->apply(system);
  }
  machine.predictor = std::make_unique<CollectivePredictor>(system);
  machine.system = std::move(system);
  return machine;
}

void add_to(CollectiveValidation::Group& group, const Comparison& comparison,
            const CollectiveRow& row) {
  group.rows.push_back(comparison);
  if (std::abs(comparison.error()) <= group.worst) return;
  group.worst = std::abs(comparison.error());
  group.worst_row = row.text;
}

}  // namespace

const char* CollectiveValidation::Machine::provenance(const CollectiveRow& row) const {
  if (!calibration) return "analytic";
  const bool own = calibration->system == name &&
                   calibration->covers(Bytes(static_cast<double>(row.bytes)), row.ranks);
  return own ? "calibrated" : "extrapolated";
}

const Network* CollectiveValidation::Machine::engine(CollectiveTableKind kind,
                                                     const CollectiveRow& row) {
  if (kind != CollectiveTableKind::kAllReduceCustom || row.engine.framework.empty()) return nullptr;
  const auto [at, is_new] = engines.try_emplace({row.engine, row.ranks});
  if (!is_new) return at->second.get();
  ParallelConfig parallel;
  parallel.tp = static_cast<int>(row.ranks);
  const auto measured = measured_engine(row.engine.framework, row.engine.version,
                                        engine_site(system.accelerator, parallel));
  if (!measured.object) return nullptr;
  EngineAllReduce rules = measured.object->all_reduce;
  rules.fused = Bytes(0);  // alone an all-reduce norms nothing
  at->second = std::make_unique<EngineNetwork>(system, 1, rules);
  return at->second.get();
}

PricedTransfer CollectiveValidation::Machine::price(CollectiveTableKind kind,
                                                    const CollectiveRow& row) {
  if (const Network* own = engine(kind, row)) return own->price(predictor->transfer(row));
  const std::vector<PricedTransfer> ways = predictor->priced(kind, row);
  return *std::min_element(ways.begin(), ways.end(), [](const auto& a, const auto& b) {
    return a.isolated_time < b.isolated_time;
  });
}

std::optional<CollectiveValidation::Machine>& CollectiveValidation::machine(
    const std::string& accelerator) {
  const auto [at, added] = machines_.try_emplace(accelerator);
  if (added) at->second = machine_of(accelerator, calibration_);
  return at->second;
}

void CollectiveValidation::add(const CollectiveTable& table, const RowSink& sink) {
  const std::string name = to_string(table.kind);
  for (const CollectiveRow& row : table.rows) {
    if (row.kernel.ends_with("_eager")) {
      ++left_out_[row.kernel + ": the host launched them one by one"];
      continue;
    }
    std::optional<Machine>& predicted = machine(row.system);
    if (!predicted) {
      ++left_out_["no system of '" + row.system + "' has protocols"];
      continue;
    }
    if (held_out_ && !is_held_out(row)) continue;
    const PricedTransfer priced = predicted->price(table.kind, row);
    if (sink) sink(row, priced, predicted->provenance(row));
    const Comparison comparison{priced.isolated_time.base() * 1e6, row.latency_us};
    for (const std::string& system : {row.system, std::string("all")}) {
      for (const std::string& label : {row.precision, row.collective, std::string("all")})
        add_to(groups_[{name, system, row.engine, label, byte_class(row.bytes)}], comparison, row);
    }
  }
}

void CollectiveValidation::check_rows() const {
  if (!groups_.empty()) return;
  std::string reasons = "no row can be predicted";
  for (const auto& [reason, count] : left_out_) reasons += "\n  " + reason;
  throw UsageError(reasons);
}

const std::vector<std::string>& byte_classes() {
  static const std::vector<std::string> classes = {"<1MiB", "1-8MiB", ">8MiB"};
  return classes;
}

}  // namespace orrery
