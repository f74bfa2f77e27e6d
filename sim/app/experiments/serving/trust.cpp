// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/serving/trust.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "sim/app/pricing/pricing.h"
#include "sim/graph/executions.h"
#include "sim/machine/draws.h"

namespace orrery {
namespace {

/// Iterations of all replicas of a group, which follow each other among the instances.
IterationKinds kinds_of(const std::vector<Instance>& instances, std::size_t first, int replicas) {
  IterationKinds all;
  for (std::size_t i = first; i < first + static_cast<std::size_t>(replicas); ++i)
    all.add(instances[i].iteration_kinds());
  return all;
}

/// What the time of a step rests on, and how much longer it may take.
struct StepTrust {
  ProvenanceTime seconds;       ///< seconds of kernels and transfers
  std::vector<double> factors;  ///< how many times longer it takes, by draw (draws.h)
};

/// The trust of a step whose kernels and collectives follow each other, as those of inference do on
/// each rank.
StepTrust step_trust(const StepMachine& machine, const Program& program, std::int64_t seed) {
  const AcceleratorConfig accelerator = machine.accelerator();
  const auto prices = machine.kernels->on(accelerator);
  const PricedProgram priced = price(program, accelerator, *machine.kernels, *machine.network);
  StepTrust trust;
  double total = 0;
  std::vector<double> longer(kDraws);
  const auto add = [&](Provenance provenance, double seconds, const std::vector<double>& draws) {
    trust.seconds.add(provenance, seconds);
    total += seconds;
    for (std::size_t i = 0; i < draws.size(); ++i) longer[i] += seconds * (draws[i] - 1);
  };
  for (const Role& role : program.roles) {
    const ExecutionCounts counts = count_executions(program, role);
    each_run(counts.kernels, [&](std::size_t id, std::uint64_t runs) {
      const KernelCost& cost = priced.costs.kernels[id];
      add(cost.provenance, static_cast<double>(runs) * to_seconds(cost.duration).base(),
          prices->draws(program.kernels[id], seed));
    });
    each_run(counts.transfers, [&](std::size_t id, std::uint64_t runs) {
      const Seconds time = priced.transfers[id].isolated_time;
      const Transfer& transfer = program.transfers[id];
      add(machine.machine->provenance(transfer), static_cast<double>(runs) * time.base(),
          machine.machine->draws(transfer, time, seed));
    });
  }
  for (const double each : longer) trust.factors.push_back(1 + (total > 0 ? each / total : 0));
  return trust;
}

}  // namespace

ServingTrust::ServingTrust(const ServingFleet& fleet, const std::vector<ServingGroup>& groups,
                           const std::vector<Instance>& instances, std::int64_t seed) {
  const std::vector<double> left_out = beyond_graphs(fleet.model().has_moe(), seed);
  std::size_t first = 0;
  std::vector<Chunk> chunks;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const IterationKinds kinds = kinds_of(instances, first, groups[group].replicas);
    first += static_cast<std::size_t>(groups[group].replicas);
    const double slower = slowest_of(groups[group].system.accelerator.known_errors, "serving",
                                     groups[group].precision);
    const std::vector<double> beyond = some_slower(left_out, slower);
    for (auto& bound : bounds) bound.emplace_back();
    const auto look = [&](const IterationMeans& means, double Slowness::*figure) {
      if (means.seconds() <= 0) return;
      const StepPricer& pricer = fleet.pricer(group);
      const StepTrust trust =
          step_trust(pricer.machine(), pricer.program(means.shape(chunks)), seed);
      time.add(trust.seconds, means.seconds());
      const auto [p10, p90] = p10_p90(times(trust.factors, beyond));
      bounds[0].back().*figure = p10;
      bounds[1].back().*figure = p90;
    };
    look(kinds.decodes, &Slowness::decodes);
    look(kinds.prompts, &Slowness::prompts);
  }
}

void add_bounds(RunRecord& record, const std::array<RunRecord, 2>& bounds) {
  for (Metric& metric : record.metrics) {
    double least = metric.value, most = metric.value;
    for (const RunRecord& bound : bounds) {
      const Metric* other = bound.find(metric.name);
      if (other == nullptr) continue;
      least = std::min(least, other->value);
      most = std::max(most, other->value);
    }
    if (least < most) metric.interval = {least, most};
  }
}

namespace {

/// Accelerators that the groups may hold, by what they may draw.
struct FleetPower {
  double cap = 0;        ///< W of all of them
  double deviation = 0;  ///< standard deviation of the logarithm of their power
};

FleetPower power_of(const std::vector<ServingGroup>& groups) {
  FleetPower fleet;
  for (const ServingGroup& group : groups) {
    const PowerConfig& power = group.system.accelerator.power;
    const double cap = power.cap().base() * group.parallel.ranks() * group.replicas /
                       group.system.accelerator.dies;
    fleet.deviation += power.uncertainty.value * cap;
    fleet.cap += cap;
  }
  if (fleet.cap > 0) fleet.deviation /= fleet.cap;
  return fleet;
}

/// @param deviation of the logarithm of the metric, by what widens it
void widen(Metric& metric, double deviation) {
  if (!(metric.value > 0) || deviation == 0) return;
  constexpr double kOfP90 = 1.2815515655446004;  // standard deviations from p50 to p90
  const auto [least, most] =
      metric.interval.value_or(std::pair<double, double>(metric.value, metric.value));
  const double more = kOfP90 * deviation;
  metric.interval = {metric.value * std::exp(-std::hypot(std::log(metric.value / least), more)),
                     metric.value * std::exp(std::hypot(std::log(most / metric.value), more))};
}

/// How much times to first token vary beyond the iterations before them: standard deviations of
/// log(measured / predicted). Measured runs (orrery validate serving: 371 rows of dense models, 466
/// of experts) need 0.16 and 0.41 for 80 % of them to lie in p10 to p90. Leaving out one group of
/// model, device and engine at a time, they need 0.06 to 0.22 and 0.31 to 0.44.
constexpr double kFirstOfDense = 0.165, kFirstOfExperts = 0.44;

Metric* find(RunRecord& record, const std::string& name) {
  for (Metric& metric : record.metrics)
    if (metric.name == name) return &metric;
  return nullptr;
}

}  // namespace

std::vector<std::string> known_errors(const std::vector<ServingGroup>& groups,
                                      const std::string& experiment) {
  std::vector<std::string> all;
  for (const ServingGroup& group : groups) {
    const AcceleratorConfig& device = group.system.accelerator;
    for (std::string& line :
         lines_of(device.known_errors, device.name, experiment, group.precision))
      if (std::ranges::find(all, line) == all.end()) all.push_back(std::move(line));
  }
  return all;
}

void widen_first_tokens(RunRecord& record, bool has_experts) {
  const double deviation = has_experts ? kFirstOfExperts : kFirstOfDense;
  for (Metric& metric : record.metrics)
    if (metric.name.ends_with("_ttft_ms")) widen(metric, deviation);
}

void widen_by_power(RunRecord& record, const std::vector<ServingGroup>& groups) {
  const FleetPower fleet = power_of(groups);
  for (const std::string part : {"", "steady_"}) {
    Metric* power = find(record, part + "average_power_w");
    if (power == nullptr) continue;
    double share = 1;  // of the systems' power
    if (Metric* systems = find(record, part + "system_power_w")) {
      share = power->value / systems->value;
      widen(*systems, fleet.deviation * share);
    }
    if (Metric* tokens = find(record, part + "system_tokens_per_joule"))
      widen(*tokens, fleet.deviation * share);
    if (Metric* emitted = find(record, part + "co2_per_million_tokens"))
      widen(*emitted, fleet.deviation * share);
    for (const char* name : {"energy_j", "average_power_w", "tokens_per_joule"})
      if (Metric* metric = find(record, part + name)) widen(*metric, fleet.deviation);
    if (power->interval)
      power->interval->second =
          std::max(power->value, std::min(power->interval->second, fleet.cap));
  }
}

}  // namespace orrery
