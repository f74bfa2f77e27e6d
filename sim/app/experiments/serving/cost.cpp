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
     "price of the accelerators that are held over the duration, for 10^6 tokens of answers",
     "serving", Follows::kTime}};
const DeclaredMetric kReplicas{
    {"mean_replicas", "1", "replicas that are held, on average over the duration", "serving"}};

std::optional<double> group_price(const ServingGroup& group, const std::optional<PriceList>& list) {
  if (group.usd_per_hour) return group.usd_per_hour;
  return list ? list->of(group.system.accelerator.id) : std::nullopt;
}

}  // namespace

ServedWork served_work(const LlmConfig& model, const Service& service, const ServingLog& log,
                       const std::vector<Instance>& instances, const Autoscaler* autoscaler) {
  ServedWork work;
  work.duration = to_seconds(service.now() - service.first_arrival());
  const AnswerFlops flops(model);
  for (const ServedRequest& answer : log.answers()) {
    work.output_tokens += answer.output;
    work.flops += flops.of(answer.prompt, answer.found, answer.output);
  }
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const Seconds held =
        autoscaler == nullptr ? work.duration : to_seconds(autoscaler->held(i, service.now()));
    work.held.push_back(std::min(held, work.duration));
  }
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

void report_serving_energy(const ServingConfig& serving, const ServingFleet& fleet,
                           const std::vector<Instance>& instances, const ServedWork& work,
                           RunRecord& record) {
  Joules all{}, systems{};
  bool told = serving.kv_transfer.over == KvLinks::kScaleOut;
  std::size_t next = 0;
  for (std::size_t i = 0; i < serving.fleet.size(); ++i) {
    const ServingGroup& group = serving.fleet[i];
    const Watts idle = group.system.accelerator.power.idle.value * group.accelerators();
    for (int replica = 0; replica < group.replicas; ++replica, ++next) {
      const Joules used = idle * work.duration + Joules(instances[next].energy());
      all = all + used;
      const auto system = fleet.machine(i).system_power(used / work.duration, group.accelerators());
      told = told && system.has_value();
      if (system) systems = systems + *system * work.duration;
    }
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
  double cost = 0, replicas = 0;
  bool from_list = false;
  std::size_t next = 0;
  for (const ServingGroup& group : serving.fleet) {
    const std::optional<double> price = group_price(group, list);
    if (!price) return;
    from_list = from_list || !group.usd_per_hour;
    for (int replica = 0; replica < group.replicas; ++replica, ++next) {
      cost += *price * group.accelerators() * work.held[next].base() / kSecondsAnHour;
      replicas += work.held[next] / work.duration;
    }
  }
  add_metric(record, kReplicas, replicas);
  add_metric(record, kUsdPerHour, cost / work.duration.base() * kSecondsAnHour);
  add_metric(record, kTokenCost, cost / work.output_tokens * kMillion);
  if (from_list) add_label(record, kPrices, list->text());
}

}  // namespace orrery
