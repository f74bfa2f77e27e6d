// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/core/carbon.h"

#include "sim/app/experiments/core/simulate.h"
#include "sim/results/metric_table.h"

namespace orrery {
namespace {

const DeclaredMetric kTokenCarbon{
    {"co2_per_million_tokens", "gCO2",
     "CO2 of the energy of 10^6 tokens (of serving: output tokens), at `carbon_intensity`: of the "
     "systems that are charged where their power is known, else of the accelerators used",
     "training, inference, serving"}};
const DeclaredMetric kStepCarbon{
    {"co2_per_step", "gCO2",
     "CO2 of the energy of a step, or of a replayed graph, at `carbon_intensity`: of the systems "
     "that are charged where their power is known, else of the accelerators used",
     "training, inference, layers, replay"}};

}  // namespace

void report_carbon(std::optional<CarbonIntensity> intensity, RunRecord& record) {
  if (!intensity || *intensity == CarbonIntensity(0)) return;
  constexpr double kMillion = 1e6;
  const auto mass = [&](double joules) { return (*intensity * Joules(joules)).base(); };
  const Metric* tokens = record.find("system_tokens_per_joule");
  if (tokens == nullptr) tokens = record.find("tokens_per_joule");
  if (tokens != nullptr && tokens->value > 0)
    add_metric(record, kTokenCarbon, mass(kMillion / tokens->value));
  const Metric* time = record.find("step_time_s");
  if (time == nullptr) time = record.find("time_s");
  if (time == nullptr) return;
  const Metric* power = record.find("system_power_w");
  const double energy =
      power != nullptr ? power->value * time->value : record.find("energy_j")->value;
  add_metric(record, kStepCarbon, mass(energy));
}

}  // namespace orrery
