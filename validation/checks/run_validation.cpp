// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/run_validation.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "models/transfers/flow_model.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/config/load.h"
#include "validation/checks/golden_section.h"

namespace orrery {
namespace {

/// Tokens of all ranks go to all of them and their results back, as vLLM's collectives of experts
/// do where no library for it is there (all2all_backend allgather_reducescatter).
std::function<Seconds(std::int64_t)> exchange_of(const Machine& machine, int ranks,
                                                 std::int64_t hidden) {
  if (ranks == 1) return {};
  const auto network = std::make_shared<FlowModel>(machine.system(), machine.nodes());
  return [network, ranks, hidden](std::int64_t tokens) {
    Transfer transfer;
    transfer.groups.emplace_back(static_cast<std::size_t>(ranks));
    std::iota(transfer.groups[0].begin(), transfer.groups[0].end(), 0);
    transfer.bytes = Bytes(2.0 * static_cast<double>(tokens * hidden));
    Seconds time{};
    for (const TransferKind kind : {TransferKind::kAllGather, TransferKind::kReduceScatter}) {
      transfer.kind = kind;
      time = time + network->isolated_time(transfer);
    }
    return time;
  };
}

RunErrors::Of errors_of(const std::vector<double>& measured, const std::vector<double>& predicted) {
  const auto mean = [](const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  const auto at = [&](double share) {
    return quantile(predicted, share) / quantile(measured, share) - 1;
  };
  return {mean(predicted) / mean(measured) - 1, at(0.5), at(0.9), at(0.99)};
}

double squares(const RunErrors::Of& e) {
  return e.mean * e.mean + e.p50 * e.p50 + e.p90 * e.p90 + e.p99 * e.p99;
}

}  // namespace

RunCase::RunCase(ServingRun run, const std::string& model, const std::string& tables)
    : run_(std::move(run)), measured_(measured_times(run_)) {
  config::Diagnostics diagnostics;
  config::Node node = config::load_text(run_experiment(run_, model), run_.name, diagnostics);
  diagnostics.throw_if_errors();
  experiment_ = std::dynamic_pointer_cast<const ServingExperiment>(
      load_experiment(std::move(node), {}, diagnostics).experiment);
  fleet_ = std::make_unique<ServingFleet>(experiment_->fleet());
  if (tables.empty()) return;
  EngineTables::Plan plan;
  plan.tp = run_.tp;
  plan.ranks = run_.dp;
  plan.units = fleet_->machine(0).accelerator().compute.units.value;
  plan.exchange = exchange_of(fleet_->machine(0), run_.dp, fleet_->model().hidden);
  tables_ =
      std::make_unique<EngineTables>(tables + "/" + run_.model + "/bf16", fleet_->model(), plan);
}

ServedTimes RunCase::predicted(const HostCosts& host) const {
  return served_times(run_, *experiment_, *fleet_, tables_.get(), host);
}

RunErrors run_errors(const ServedTimes& measured, const ServedTimes& predicted) {
  return {errors_of(measured.ttft, predicted.ttft), errors_of(measured.tpot, predicted.tpot),
          errors_of(measured.e2el, predicted.e2el)};
}

HostCosts RunCase::host() const {
  HostCosts host = experiment_->serving.fleet.front().engine->host;
  host.request = Seconds(0);
  return host;
}

HostCosts fitted_host(const std::vector<const RunCase*>& runs) {
  constexpr double kMostIteration = 10e-3, kShare = 1e-3;
  HostCosts host = runs.front()->host();
  const auto sum = [&](auto&& of_run) {
    double all = 0;
    for (const RunCase* run : runs)
      all += of_run(run_errors(run->measured(), run->predicted(host)));
    return all;
  };
  host.iteration = Seconds(least_of(kMostIteration, kShare, [&](double time) {
    host.iteration = Seconds(time);
    return sum([](const RunErrors& e) { return squares(e.tpot); });
  }));
  return host;
}

}  // namespace orrery
