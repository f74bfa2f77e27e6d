// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/serving/cost.h"

#include <algorithm>
#include <optional>

#include "sim/app/experiments/common_metrics.h"
#include "sim/app/experiments/price_list.h"
#include "sim/app/experiments/simulate.h"
#include "sim/machine/kernel_model.h"
#include "workloads/llm/closed_forms.h"

namespace orrery {
namespace {

const DeclaredMetric kTokenCost{
    {"usd_per_million_output_tokens", "USD",
     "price of the accelerators that are charged over the duration, for 10^6 output tokens",
     "serving", Follows::kTime}};
const DeclaredMetric kReplicas{
    {"mean_replicas", "1", "replicas that are held, on average over the duration", "serving"}};
const DeclaredMetric kServers{{"mean_servers", "1",
                               "systems whose power and price are charged, on average over the "
                               "duration: those that are held, "
                               "or the shares of them that replicas use (`unused: absent`)",
                               "serving"}};

/// When each instance was held, from the first arrival on.
std::vector<std::vector<HeldPeriod>> held_periods(const ServingConfig& serving,
                                                  const Service& service,
                                                  const Autoscaler* autoscaler) {
  const HeldPeriod whole{service.first_arrival(), service.now()};
  std::size_t instances = 0;
  for (const ServingGroup& group : serving.fleet)
    instances += static_cast<std::size_t>(group.replicas);
  std::vector<std::vector<HeldPeriod>> held(instances, {whole});
  for (std::size_t i = 0; autoscaler != nullptr && i < instances; ++i) {
    held[i].clear();
    for (HeldPeriod period : autoscaler->periods(i, whole.end)) {
      period.begin = std::max(period.begin, whole.begin);
      if (period.begin < period.end) held[i].push_back(period);
    }
  }
  return held;
}

std::optional<double> group_price(const ServingGroup& group, const std::optional<PriceList>& list) {
  if (group.usd_per_hour) return group.usd_per_hour;
  return list ? list->of(group.system.accelerator.id) : std::nullopt;
}

}  // namespace

ServedWork served_work(const ServingConfig& serving, const LlmConfig& model, const Service& service,
                       const ServingLog& log, const Autoscaler* autoscaler) {
  ServedWork work;
  work.duration = to_seconds(service.now() - service.first_arrival());
  const AnswerFlops flops(model);
  for (const ServedRequest& answer : log.answers()) {
    work.output_tokens += answer.output;
    work.flops += flops.of(answer.prompt, answer.found, answer.output);
  }
  const std::vector<std::vector<HeldPeriod>> held = held_periods(serving, service, autoscaler);
  for (const std::vector<HeldPeriod>& periods : held) {
    Picoseconds all = 0;
    for (const HeldPeriod& period : periods) all += period.end - period.begin;
    work.held.push_back(to_seconds(all));
  }
  work.accelerators = held_accelerators(serving, held);
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
                           const std::vector<Instance>& instances, const ServedWork& work,
                           RunRecord& record) {
  Joules all{}, systems{};
  bool told = true;
  std::size_t next = 0;
  for (std::size_t i = 0; i < serving.fleet.size(); ++i) {
    const ServingGroup& group = serving.fleet[i];
    const HeldAccelerators& held = work.accelerators[i];
    const Watts idle = group.system.accelerator.power.idle.value;
    Joules used = idle * held.used;
    for (int replica = 0; replica < group.replicas; ++replica, ++next)
      used += Joules(instances[next].energy());
    all += used;
    const std::optional<Watts> hosts = fleet.machine(i).host_power();
    told = told && hosts.has_value();
    if (!hosts) continue;
    const Seconds of_systems = held.charged / group.system.accelerators.value;
    systems += used + idle * (held.charged - held.used) + *hosts * of_systems;
  }
  add_metric(record, kEnergy, all.base());
  add_metric(record, kAveragePower, all.base() / work.duration.base());
  add_metric(record, kTokensPerJoule, work.output_tokens / all.base());
  if (!told) return;
  add_metric(record, kSystemPower, (systems / work.duration).base());
  add_metric(record, kSystemTokensPerJoule, work.output_tokens / systems.base());
}

void report_serving_cost(const ServingConfig& serving, const ServedWork& work, RunRecord& record) {
  constexpr double kMillion = 1e6;
  const std::optional<PriceList> list = price_list(serving.prices);
  double cost = 0;
  bool from_list = false;
  for (std::size_t i = 0; i < serving.fleet.size(); ++i) {
    const ServingGroup& group = serving.fleet[i];
    const Seconds charged = work.accelerators[i].charged;
    const std::optional<double> price = group_price(group, list);
    if (!price) return;
    from_list = from_list || !group.usd_per_hour;
    cost += *price * charged.base() / kSecondsAnHour;
  }
  add_metric(record, kUsdPerHour, cost / work.duration.base() * kSecondsAnHour);
  add_metric(record, kTokenCost, cost / work.output_tokens * kMillion);
  if (from_list) add_label(record, kPrices, list->text());
}

}  // namespace orrery
