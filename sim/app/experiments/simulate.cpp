// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/simulate.h"

#include <stdexcept>

#include "sim/app/experiments/intervals.h"
#include "sim/config/load.h"
#include "sim/config/output.h"
#include "sim/replay/replay.h"
#include "sim/results/metric_table.h"
#include "sim/units/printable.h"

namespace orrery {
namespace {

std::vector<Parameter> parameters_of(const LoadedExperiment& loaded) {
  std::vector<Parameter> parameters;
  for (config::Leaf& leaf : loaded.leaves()) {
    parameters.push_back({std::move(leaf.path), std::move(leaf.text), leaf.value,
                          std::move(leaf.unit), std::move(leaf.origin)});
  }
  return parameters;
}

}  // namespace

void add_metric(RunRecord& record, std::string_view name, double value) {
  const MetricInfo* metric = find_metric(name);
  if (metric == nullptr) {
    throw std::logic_error("metric '" + std::string(name) + "' is not in the table");
  }
  record.metrics.push_back({metric->name, value, metric->unit});
}

RunRecord simulate(const LoadedExperiment& loaded, const SimulateOptions& options) {
  const Experiment& experiment = *loaded.experiment;
  RunRecord record;
  record.identity = loaded.identity;
  record.experiment = experiment.kind;
  record.name = printable(experiment.name);
  record.parameters = parameters_of(loaded);
  record.configuration = loaded.configuration;
  record.provenance = provenance_json({}, {});  // until a kind of experiment knows better
  try {
    experiment.run(options, record);
  } catch (const config::KeyError& error) {
    config::throw_located(error, loaded.node);
  } catch (const LinkDownError& error) {
    record.status = RunStatus::kInfeasible;
    record.reason = error.what();
  } catch (const std::overflow_error& error) {  // what is asked for is too large, not wrong
    record.status = RunStatus::kInfeasible;
    record.reason = error.what();
  }
  require_unchanged(loaded.files);
  return record;
}

}  // namespace orrery
