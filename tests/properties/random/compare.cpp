// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/random/compare.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "sim/app/sweeps/workers/run_point.h"

namespace orrery {

double metric(const RunRecord& record, const std::string& name) {
  const Metric* found = record.find(name);
  return found != nullptr ? found->value : std::nan("");
}

std::string label(const RunRecord& record, const std::string& name) {
  for (const Label& l : record.labels)
    if (l.name == name) return l.value;
  return {};
}

double duration(const RunRecord& record) {
  const double step = metric(record, "step_time_s");
  return std::isnan(step) ? metric(record, "time_s") : step;
}

std::string figures(const char* first, double a, const char* second, double b) {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), "%s %.9g, %s %.9g", first, a, second, b);
  return text.data();
}

RunRecord simulate_again(const RandomExperiment& experiment) {
  return simulate_isolated(load_experiment(experiment.file(), experiment.assignments)).record;
}

std::vector<std::string> without_cap(const MachineExperiment& e) {
  std::vector<std::string> set = {"system.accelerator.power.tdp=100 kW"};
  if (e.system.accelerator.power.limit) set.emplace_back("system.accelerator.power.limit=100 kW");
  return set;
}

}  // namespace orrery
