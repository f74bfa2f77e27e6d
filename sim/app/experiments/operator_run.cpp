// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "sim/app/experiments/simulate.h"
#include "sim/app/pricing/intervals.h"
#include "sim/app/pricing/kernel_pricing.h"
#include "sim/app/pricing/operator_power.h"
#include "sim/app/pricing/pricing.h"
#include "sim/app/pricing/step_power.h"
#include "sim/machine/draws.h"
#include "sim/machine/limits.h"
#include "workloads/fusion.h"

namespace orrery {
namespace {

/// Kernels that run one after the other, with their prices.
struct PricedOperator {
  std::vector<Kernel> kernels;
  OperatorPower power;
  double time = 0;  ///< s

  const KernelCost& cost(std::size_t i) const { return power.costs[i]; }
  double seconds(std::size_t i) const { return to_seconds(cost(i).duration).base(); }
};

PricedOperator price_operator(const Experiment& experiment, const KernelModel& model) {
  const AcceleratorConfig& accelerator = experiment.system.accelerator;
  PricedOperator priced;
  priced.kernels = (*experiment.op)->kernels(experiment.precision);
  priced.power = settle_operator(priced.kernels, accelerator, power_state(experiment), model);
  for (std::size_t i = 0; i < priced.kernels.size(); ++i) priced.time += priced.seconds(i);
  return priced;
}

/// What limits the operator for the largest part of its time.
Bound bound_of(const PricedOperator& priced) {
  std::map<Bound, double> time;
  for (std::size_t i = 0; i < priced.kernels.size(); ++i)
    time[priced.cost(i).bound] += priced.seconds(i);
  return std::max_element(time.begin(), time.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

/// Of the longest kernel.
Fidelity fidelity_of(const PricedOperator& priced) {
  const auto longest = std::max_element(
      priced.power.costs.begin(), priced.power.costs.end(),
      [](const KernelCost& a, const KernelCost& b) { return a.duration < b.duration; });
  return longest->fidelity;
}

/// A row for each name of a kernel, in issue order.
void add_kernel_rows(const PricedOperator& priced, RunRecord& record) {
  for (std::size_t i = 0; i < priced.kernels.size(); ++i) {
    const Kernel& kernel = priced.kernels[i];
    auto row = std::find_if(record.classes.begin(), record.classes.end(),
                            [&](const ClassBreakdown& c) { return c.name == kernel.name; });
    if (row == record.classes.end()) {
      record.classes.push_back({kernel.name});
      row = record.classes.end() - 1;
    }
    row->count += 1;
    row->time_s += priced.seconds(i);
    row->flops += (kernel.matrix_flops + kernel.vector_flops).base();
    row->bytes += (kernel.read + kernel.written).base();
  }
}

/// How many times longer all kernels take together, by draw.
std::vector<double> draws_of(const PricedOperator& priced, const KernelModel& model,
                             const Experiment& experiment) {
  std::vector<double> factors(kDraws);
  for (std::size_t i = 0; i < priced.kernels.size(); ++i) {
    const std::vector<double> drawn =
        model.draws(priced.kernels[i], experiment.system.accelerator, experiment.seed);
    for (std::size_t d = 0; d < kDraws; ++d)
      factors[d] += priced.seconds(i) / priced.time * drawn[d];
  }
  return factors;
}

}  // namespace

void run_operator(const Experiment& experiment, const SimulateOptions& options, RunRecord& record) {
  const AcceleratorConfig& accelerator = experiment.system.accelerator;
  const auto model = kernel_model(experiment, options.tiles);
  const PricedOperator priced = price_operator(experiment, *model);
  double flops = 0, limit = 0;
  ProvenanceTime rests;
  for (std::size_t i = 0; i < priced.kernels.size(); ++i) {
    flops += priced.kernels[i].matrix_flops.base();
    limit += limit_of(priced.kernels[i], priced.cost(i), accelerator).time.base();
    rests.add(priced.cost(i).provenance, priced.seconds(i));
  }
  const double bytes = traffic(priced.kernels).base();
  const EnergyUse& energy = priced.power.energy;
  add_metric(record, "time_s", priced.time);
  add_metric(record, "flops", flops);
  add_metric(record, "flops_per_s", flops / priced.time);
  add_metric(record, "bytes", bytes);
  add_metric(record, "bytes_per_s", bytes / priced.time);
  add_metric(record, "share_of_limit", limit / priced.time);
  record.labels.push_back({"bound", to_string(bound_of(priced))});
  record.labels.push_back({"fidelity", to_string(fidelity_of(priced))});
  record.labels.push_back({"power_state", to_string(power_state(experiment))});
  add_metric(record, "clock_hz", priced.power.clock.base());
  add_metric(record, "energy_j", energy.total().base());
  add_metric(record, "average_power_w", energy.total().base() / priced.time);
  add_metric(record, "simulated_time_s", priced.time);
  add_metric(record, "events", static_cast<double>(priced.kernels.size()));
  add_kernel_rows(priced, record);
  record.provenance = provenance_json(rests, model->calibration());
  if (!rests.fitted()) return;
  const std::vector<double> factors = draws_of(priced, *model, experiment);
  add_time_intervals(record, factors);
  add_energy_intervals(record, factors, energy.idle / energy.total());
}

}  // namespace orrery
