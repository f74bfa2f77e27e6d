// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/core/simulate.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "sim/app/experiments/core/intervals.h"
#include "sim/config/load.h"
#include "sim/config/output.h"
#include "sim/replay/replay.h"
#include "sim/trace/timeline.h"
#include "sim/units/printable.h"

namespace orrery {

void close_timeline(Timeline& timeline, const SimulateOptions& options) {
  timeline.close();
  if (timeline.left_out() == 0 || !options.warn) return;
  options.warn(fmt::format("{}: the last {} spans are left out, a viewer takes no more",
                           options.trace, timeline.left_out()));
}

void set_infeasible(RunRecord& record, std::string reason) {
  record.status = RunStatus::kInfeasible;
  record.reason = std::move(reason);
}

void add_metric(RunRecord& record, const DeclaredMetric& metric, double value) {
  record.metrics.push_back({metric.info().name, value, metric.info().unit});
}

void add_list(RunRecord& record, const DeclaredMetric& metric, std::vector<double> values) {
  record.lists.push_back({metric.info().name, std::move(values), metric.info().unit});
}

void add_label(RunRecord& record, const DeclaredMetric& metric, std::string text) {
  record.labels.push_back({metric.info().name, std::move(text)});
}

std::shared_ptr<const Configuration> configuration_of(const LoadedExperiment& loaded) {
  auto configuration = std::make_shared<Configuration>();
  for (config::Leaf& leaf : loaded.leaves()) {
    configuration->parameters.push_back({std::move(leaf.path), std::move(leaf.text), leaf.value,
                                         std::move(leaf.unit), std::move(leaf.origin)});
  }
  configuration->canonical = std::make_shared<const nlohmann::ordered_json>(loaded.configuration);
  return configuration;
}

RunRecord simulate(const LoadedExperiment& loaded, const SimulateOptions& options) {
  const Experiment& experiment = *loaded.experiment;
  RunRecord record;
  record.identity = loaded.identity;
  record.experiment = experiment.kind;
  record.name = printable(experiment.name);
  if (options.configuration) record.base = configuration_of(loaded);
  record.provenance = provenance_json({}, {});  // until a kind of experiment knows better
  try {
    experiment.run(options, record);
  } catch (const config::KeyError& error) {
    config::throw_located(error, loaded.node);
  } catch (const LinkDownError& error) {
    set_infeasible(record, error.what());
  } catch (const std::overflow_error& error) {  // what is asked for is too large, not wrong
    set_infeasible(record, error.what());
  }
  if (const std::vector<std::string> errors = experiment.known_errors(); !errors.empty())
    record.provenance["known_errors"] = errors;
  require_unchanged(loaded.files);
  return record;
}

}  // namespace orrery
