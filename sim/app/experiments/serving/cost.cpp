// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/serving/cost.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/files/price_list.h"
#include "sim/app/experiments/keys/common_metrics.h"
#include "sim/app/experiments/serving/request_times.h"
#include "sim/app/experiments/serving/steady.h"
#include "sim/machine/kernel_model.h"
#include "workloads/layers/closed_forms.h"

namespace orrery {
namespace {

const DeclaredMetric kTokenCost =
    served_metric("usd_per_million_output_tokens", "USD",
                  "price of the accelerators that are charged, for 10^6 output tokens: over the "
                  "steady window of requests that arrive over time, otherwise over the duration",
                  Follows::kTime);
const DeclaredMetric kSteadyPower = served_metric(
    "steady_average_power_w", "W", "average power of the accelerators in the steady window");
const DeclaredMetric kSteadyTokensPerJoule =
    served_metric("steady_tokens_per_joule", "1/J",
                  "output tokens per joule of the accelerators in the steady window");
const DeclaredMetric kSteadySystemPower = served_metric(
    "steady_system_power_w", "W", "average power of the systems in the steady window");
const DeclaredMetric kSteadySystemTokensPerJoule =
    served_metric("steady_system_tokens_per_joule", "1/J",
                  "output tokens per joule of the systems in the steady window");
const DeclaredMetric kSteadyUsdPerHour =
    served_metric("steady_usd_per_hour", "USD/h",
                  "price of the accelerators that are charged in the steady window, per hour");
const DeclaredMetric kSteadyTokenCost = served_metric(
    "steady_usd_per_million_output_tokens", "USD",
    "price of the accelerators that are charged in the steady window, for its 10^6 output tokens",
    Follows::kTime);
const DeclaredMetric kReplicas =
    served_metric("mean_replicas", "1", "replicas that are held, on average over the duration");
const DeclaredMetric kServers =
    served_metric("mean_servers", "1",
                  "systems whose power and price are charged, on average over the duration: those "
                  "that are held, or the shares of them that replicas use (`unused: absent`)");

/// When each instance was held within a time.
std::vector<std::vector<HeldPeriod>> held_periods(const ServingConfig& serving,
                                                  const HeldPeriod& within,
                                                  const Autoscaler* autoscaler) {
  std::size_t instances = 0;
  for (const ServingGroup& group : serving.fleet)
    instances += static_cast<std::size_t>(group.replicas);
  std::vector<std::vector<HeldPeriod>> held(instances, {within});
  for (std::size_t i = 0; autoscaler != nullptr && i < instances; ++i) {
    held[i].clear();
    for (HeldPeriod period : autoscaler->periods(i, within.end)) {
      period.begin = std::max(period.begin, within.begin);
      period.end = std::min(period.end, within.end);
      if (period.begin < period.end) held[i].push_back(period);
    }
  }
  return held;
}

/// The accelerators that are held within a time.
ServedWork held_work(const ServingConfig& serving, const HeldPeriod& within,
                     const Autoscaler* autoscaler) {
  ServedWork work;
  work.duration = to_seconds(within.end - within.begin);
  const std::vector<std::vector<HeldPeriod>> held = held_periods(serving, within, autoscaler);
  std::ranges::transform(held, std::back_inserter(work.held), held_time);
  work.accelerators = held_accelerators(serving, held);
  return work;
}

/// Energy of the accelerators of replicas, and of their systems if all tell their power.
struct FleetEnergy {
  Joules accelerators{};
  std::optional<Joules> systems;
};

FleetEnergy energy_of(const ServingConfig& serving, const ServingFleet& fleet,
                      const ServedWork& work) {
  FleetEnergy energy{{}, Joules(0)};
  std::size_t next = 0;
  for (std::size_t i = 0; i < serving.fleet.size(); ++i) {
    const ServingGroup& group = serving.fleet[i];
    const HeldAccelerators& held = work.accelerators[i];
    const PowerConfig& power = group.system.accelerator.power;
    const Watts idle = power.idle.value;
    Joules used = power.floor() * held.used;
    for (int replica = 0; replica < group.replicas; ++replica, ++next)
      used += Joules(work.energy[next]);
    energy.accelerators += used;
    const std::optional<Watts> hosts = fleet.machine(i).host_power();
    if (!hosts) energy.systems.reset();
    if (!energy.systems) continue;
    const Seconds of_systems = held.charged / group.system.accelerators.value;
    *energy.systems += used + idle * (held.charged - held.used) + *hosts * of_systems;
  }
  return energy;
}

std::optional<double> group_price(const ServingGroup& group, const std::optional<PriceList>& list) {
  if (group.usd_per_hour) return group.usd_per_hour;
  return list ? list->of(group.system.accelerator.id) : std::nullopt;
}

/// USD of the accelerators that are charged; none where a price is unknown.
std::optional<double> cost_of(const ServingConfig& serving, const ServedWork& work,
                              const std::optional<PriceList>& list) {
  double cost = 0;
  for (std::size_t i = 0; i < serving.fleet.size(); ++i) {
    const std::optional<double> price = group_price(serving.fleet[i], list);
    if (!price) return std::nullopt;
    cost += *price * work.accelerators[i].charged.base() / kSecondsAnHour;
  }
  return cost;
}

}  // namespace

ServedWork served_work(const ServingConfig& serving, const LlmConfig& model, const Service& service,
                       const ServingLog& log, const std::vector<Instance>& instances,
                       const Autoscaler* autoscaler) {
  ServedWork work = held_work(serving, {service.first_arrival(), service.now()}, autoscaler);
  const AnswerFlops flops(model);
  for (const ServedRequest& answer : log.served()) {
    work.output_tokens += answer.output;
    work.flops += flops.of(answer.prompt, answer.found, answer.output);
  }
  for (const Instance& instance : instances) work.energy.push_back(instance.energy());
  return work;
}

ServedWork steady_work(const ServingConfig& serving, const SteadyWindow& window,
                       const ServingLog& log, const Autoscaler* autoscaler) {
  ServedWork work = held_work(serving, {window.from(), window.until()}, autoscaler);
  work.output_tokens = steady_output_tokens(window, log);
  work.energy = window.energies();
  return work;
}

void report_serving_utilization(const ServingConfig& serving, const ServedWork& work,
                                RunRecord& record) {
  Flops most;
  std::size_t next = 0;
  for (const ServingGroup& group : serving.fleet) {
    const FlopsPerSecond peak =
        matrix_peak(group.system.accelerator, group.precision) * group.parallel.ranks();
    for (int replica = 0; replica < group.replicas; ++replica, ++next)
      most += peak * work.held[next];
  }
  add_metric(record, kModelFlopsUtilization, work.flops / most);
}

void report_serving_servers(const ServingConfig& serving, const ServedWork& work,
                            RunRecord& record) {
  double replicas = 0, servers = 0;
  for (const Seconds held : work.held) replicas += held / work.duration;
  for (std::size_t i = 0; i < serving.fleet.size(); ++i)
    servers +=
        work.accelerators[i].charged / work.duration / serving.fleet[i].system.accelerators.value;
  add_metric(record, kReplicas, replicas);
  add_metric(record, kServers, servers);
}

void report_serving_energy(const ServingConfig& serving, const ServingFleet& fleet,
                           const ServedWork& work, const ServedWork& per_token, RunRecord& record) {
  const FleetEnergy all = energy_of(serving, fleet, work);
  const FleetEnergy part = energy_of(serving, fleet, per_token);
  add_metric(record, kEnergy, all.accelerators.base());
  add_metric(record, kAveragePower, all.accelerators.base() / work.duration.base());
  add_metric(record, kTokensPerJoule, per_token.output_tokens / part.accelerators.base());
  if (!all.systems) return;
  add_metric(record, kSystemPower, (*all.systems / work.duration).base());
  add_metric(record, kSystemTokensPerJoule, per_token.output_tokens / part.systems->base());
}

void report_serving_cost(const ServingConfig& serving, const ServedWork& work,
                         const ServedWork& per_token, RunRecord& record) {
  const std::optional<PriceList> list = price_list(serving.prices);
  const std::optional<double> cost = cost_of(serving, work, list);
  if (!cost) return;
  add_metric(record, kUsdPerHour, *cost / work.duration.base() * kSecondsAnHour);
  add_metric(record, kTokenCost,
             *cost_of(serving, per_token, list) / per_token.output_tokens * 1e6);
  if (std::ranges::any_of(serving.fleet,
                          [](const ServingGroup& group) { return !group.usd_per_hour; }))
    add_label(record, kPrices, list->text());
}

void report_steady_cost(const ServingConfig& serving, const ServingFleet& fleet,
                        const ServedWork& steady, RunRecord& record) {
  const FleetEnergy energy = energy_of(serving, fleet, steady);
  add_metric(record, kSteadyPower, (energy.accelerators / steady.duration).base());
  add_metric(record, kSteadyTokensPerJoule, steady.output_tokens / energy.accelerators.base());
  if (energy.systems) {
    add_metric(record, kSteadySystemPower, (*energy.systems / steady.duration).base());
    add_metric(record, kSteadySystemTokensPerJoule, steady.output_tokens / energy.systems->base());
  }
  const std::optional<double> cost = cost_of(serving, steady, price_list(serving.prices));
  if (!cost) return;
  add_metric(record, kSteadyUsdPerHour, *cost / steady.duration.base() * kSecondsAnHour);
  add_metric(record, kSteadyTokenCost, *cost / steady.output_tokens * 1e6);
}

}  // namespace orrery
