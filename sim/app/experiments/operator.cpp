// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/operator.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/app/experiments/core/intervals.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/files/known_names.h"
#include "sim/app/experiments/keys/common_metrics.h"
#include "sim/app/experiments/steps/explanation.h"
#include "sim/app/pricing/power_balance.h"
#include "sim/app/pricing/pricing.h"
#include "sim/machine/draws.h"
#include "sim/machine/limits.h"
#include "sim/trace/timeline.h"
#include "workloads/ops/fusion.h"

namespace orrery {

using config::between;

const config::Schema<OperatorContention>& OperatorContention::schema() {
  static const auto schema =
      config::Schema<OperatorContention>("contention",
                                         "what runs beside kernels and what it leaves to them")
          .optional("units", &OperatorContention::units, "share of the SMs", between(0.001, 1))
          .optional("memory", &OperatorContention::memory, "share of the memory bandwidth",
                    between(0.001, 1));
  return schema;
}

const config::Schema<OperatorExperiment>& OperatorExperiment::schema() {
  using E = OperatorExperiment;
  static const config::Schema<E> schema =
      machine_schema<E>("operator", "kernels on one accelerator")
          .optional("operator", &E::op, "one of `orrery describe operators`")
          .optional("precision", &E::precision, "number format of weights and matrix operands")
          .optional("fidelity", &E::fidelity, kFidelityHelp)
          .optional("measured", &E::measured,
                    "operator tables (CSV) of this accelerator: kernels that they have take the "
                    "measured time")
          .optional("contention", &E::contention, "what kernels beside the operator leave to it");
  return schema;
}

namespace {

const DeclaredMetric kFlops{
    {"flops", "FLOP", "work of the kernels on matrix units, a multiply-add counts 2", "operator"}};
const DeclaredMetric kFlopsPerS{
    {"flops_per_s", "FLOP/s", "rate of the kernels", "operator", Follows::kRate}};
const DeclaredMetric kBytes{{"bytes", "B", "device memory traffic of the kernels", "operator"}};
const DeclaredMetric kBytesPerS{
    {"bytes_per_s", "B/s", "rate of the device memory traffic", "operator", Follows::kRate}};
const DeclaredMetric kBound{{"bound", "",
                             "what limits the kernels for most of the time: tensor, vector, L2, "
                             "HBM (device memory of any kind), host (link) or latency (launch, "
                             "pipelines that fill and drain, steps that wait for each other)",
                             "operator"}};
const DeclaredMetric kFidelity{{"fidelity", "",
                                "how the time was found: closed (form) or tile (blocks as events)",
                                "operator"}};

const RegisterExperiment<OperatorExperiment> registered_operator("operator",
                                                                 "kernels on one accelerator");

/// Kernels that run one after the other, with their prices.
struct PricedOperator {
  std::vector<Kernel> kernels;
  OperatorPower power;
  double time = 0;  ///< time in s

  const KernelCost& cost(std::size_t i) const { return power.costs[i]; }
  double seconds(std::size_t i) const { return to_seconds(cost(i).duration).base(); }
};

PricedOperator price_operator(const OperatorExperiment& e, const KernelModel& model) {
  PricedOperator priced;
  priced.kernels = (*e.op)->kernels(e.precision);
  priced.power = settle_operator(priced.kernels, e.machine().accelerator(),
                                 e.machine().power_state(PowerState::kBurst), model);
  for (std::size_t i = 0; i < priced.kernels.size(); ++i) priced.time += priced.seconds(i);
  return priced;
}

/// What limits the operator for the largest part of its time.
Bound bound_of(const PricedOperator& priced) {
  std::map<Bound, double> time;
  for (std::size_t i = 0; i < priced.kernels.size(); ++i)
    time[priced.cost(i).bound] += priced.seconds(i);
  return std::ranges::max_element(time, {}, [](const auto& of) { return of.second; })->first;
}

/// The fidelity of the longest kernel.
Fidelity fidelity_of(const PricedOperator& priced) {
  return std::ranges::max_element(priced.power.costs, {}, &KernelCost::duration)->fidelity;
}

/// A row for each name of a kernel, in issue order.
void add_kernel_rows(const PricedOperator& priced, RunRecord& record) {
  for (std::size_t i = 0; i < priced.kernels.size(); ++i) {
    const Kernel& kernel = priced.kernels[i];
    auto row = std::ranges::find(record.classes, kernel.name, &ClassBreakdown::name);
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
                             const OperatorExperiment& experiment) {
  const auto prices = model.on(experiment.system.accelerator);
  std::vector<double> factors(kDraws);
  for (std::size_t i = 0; i < priced.kernels.size(); ++i) {
    const std::vector<double> drawn = prices->draws(priced.kernels[i], experiment.seed);
    for (std::size_t d = 0; d < kDraws; ++d)
      factors[d] += priced.seconds(i) / priced.time * drawn[d];
  }
  return factors;
}

/// What the operator leaves out of the memory that separate kernels would write and read; null
/// where there is nothing.
nlohmann::ordered_json explain_fusion(const OperatorExperiment& e) {
  const std::vector<Kernel> fused = (*e.op)->kernels(e.precision);
  const std::vector<Kernel> apart = (*e.op)->unfused_kernels(e.precision);
  if (fused == apart) return nullptr;
  const auto flops = [](const std::vector<Kernel>& kernels) {
    double sum = 0;
    for (const Kernel& kernel : kernels) sum += kernel.matrix_flops.base();
    return sum;
  };
  return {{"bytes", (traffic(apart) - traffic(fused)).base()},
          {"launches", apart.size() - fused.size()},
          {"masked_flops", flops(apart) - flops(fused)}};
}

}  // namespace

void OperatorExperiment::check(const config::Node& node, config::Diagnostics& diagnostics) const {
  if (!op) miss_key(diagnostics, node, "operator");
}

std::vector<InputFile> OperatorExperiment::input_files() const {
  std::vector<InputFile> files;
  add_kernel_files(machine(), measured, files);
  return files;
}

void OperatorExperiment::check_machine(const config::Node&, config::Diagnostics&) const {
  machine().check(fidelity);
}

void OperatorExperiment::check_plan(const config::Node&, config::Diagnostics&) const {
  for (const Kernel& kernel : (*op)->kernels(precision)) {
    if (kernel.matrix_flops.base() > 0) matrix_peak(system.accelerator, kernel.precision);
  }
}

namespace {

/// Kernels one after the other, with their launch, and the FLOP/s and bytes/s of each.
void write_timeline(const PricedOperator& priced, const std::string& name,
                    const SimulateOptions& options) {
  Timeline timeline(options.trace);
  timeline.process(0, name);
  timeline.thread(0, 0, "compute");
  Picoseconds now = 0;
  for (std::size_t i = 0; i < priced.kernels.size(); ++i) {
    const Kernel& kernel = priced.kernels[i];
    const KernelCost& cost = priced.cost(i);
    const double seconds = priced.seconds(i);
    timeline.span(0, 0, kernel.name, to_string(cost.bound), now, now + cost.duration);
    if (cost.launch > 0 && cost.launch < cost.duration)
      timeline.span(0, 0, "launch", "host", now, now + cost.launch);
    timeline.counter(0, "TFLOP/s", now, kernel.matrix_flops.base() / seconds * 1e-12);
    timeline.counter(0, "GB/s of memory", now,
                     (kernel.read + kernel.written).base() / seconds * 1e-9);
    now += cost.duration;
  }
  timeline.counter(0, "TFLOP/s", now, 0);
  timeline.counter(0, "GB/s of memory", now, 0);
  close_timeline(timeline, options);
}

}  // namespace

void OperatorExperiment::run(const SimulateOptions& options, RunRecord& record) const {
  const AcceleratorConfig& accelerator = machine().accelerator();
  const auto model = machine().kernels(kernel_choice(), options.tiles);
  const PricedOperator priced = price_operator(*this, *model);
  double flops = 0, limit = 0;
  ProvenanceTime rests;
  for (std::size_t i = 0; i < priced.kernels.size(); ++i) {
    flops += priced.kernels[i].matrix_flops.base();
    limit += limit_of(priced.kernels[i], priced.cost(i), accelerator).time.base();
    rests.add(priced.cost(i).provenance, priced.seconds(i));
  }
  const double bytes = traffic(priced.kernels).base();
  const EnergyUse& energy = priced.power.energy;
  add_metric(record, kTime, priced.time);
  add_metric(record, kFlops, flops);
  add_metric(record, kFlopsPerS, flops / priced.time);
  add_metric(record, kBytes, bytes);
  add_metric(record, kBytesPerS, bytes / priced.time);
  add_metric(record, kShareOfLimit, limit / priced.time);
  add_label(record, kBound, to_string(bound_of(priced)));
  add_label(record, kFidelity, to_string(fidelity_of(priced)));
  add_label(record, kPowerState, to_string(machine().power_state(PowerState::kBurst)));
  add_metric(record, kClock, priced.power.clock.base());
  add_metric(record, kEnergy, energy.total().base());
  add_metric(record, kAveragePower, energy.total().base() / priced.time);
  add_metric(record, kSimulatedTime, priced.time);
  add_metric(record, kEvents, static_cast<double>(priced.kernels.size()));
  add_kernel_rows(priced, record);
  if (!options.trace.empty()) write_timeline(priced, op->name, options);
  record.provenance = provenance_json(rests, model->calibration());
  const std::vector<double> factors = draws_of(priced, *model, *this);
  add_time_intervals(record, factors);
  add_energy_intervals(record, factors, energy.held() / energy.total(),
                       power_draws(accelerator.power, energy.total() / Seconds(priced.time),
                                   1.0 / accelerator.dies, seed));
}

void OperatorExperiment::explain(const KnownReplay&, nlohmann::ordered_json& explanation) const {
  const PricedOperator priced = price_operator(*this, *machine().kernels(kernel_choice()));
  const EnergyUse& energy = priced.power.energy;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < priced.kernels.size(); ++i)
    rows.push_back(explain_kernel(priced.kernels[i], priced.cost(i), 1, machine().accelerator()));
  explanation["operator"] = op->name;
  explanation["kernels"] = std::move(rows);
  explanation["energy_j"] = {
      {"static", energy.idle.base()},         {"busy", energy.busy.base()},
      {"matrix", energy.matrix.base()},       {"vector", energy.vector.base()},
      {"memory", energy.memory.base()},       {"cache", energy.cache.base()},
      {"shared_memory", energy.shared.base()}};
  explanation["fusion_saves"] = explain_fusion(*this);
}

TableView OperatorExperiment::table() const {
  return {{{{"operator"}, [this](const RunRecord&) { return op ? op->name : "-"; }, true},
           precision_column(to_string(precision)),
           time_column("time", "time_s"),
           interval_column("time_s"),
           metric_column("work", "flops_per_s", "FLOP/s"),
           metric_column("traffic", "bytes_per_s", "B/s"),
           label_column("bound", "bound"),
           percent_column("of limit", "share_of_limit"),
           metric_column("clock", "clock_hz", "Hz"),
           metric_column("power", "average_power_w", "W")},
          "time_s, bound, flops_per_s",
          "system.accelerator.memory.bandwidth=4 TB/s",
          {}};
}

}  // namespace orrery
