// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/core/intervals.h"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>
#include <utility>

#include "sim/graph/executions.h"
#include "sim/machine/collective_start.h"
#include "sim/machine/draws.h"
#include "sim/machine/limits.h"
#include "sim/results/metric_table.h"
#include "sim/results/table.h"

namespace orrery {
namespace {

double total(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

const Role& last_role(const Program& program, const StepOutcome& outcome) {
  return program.roles[static_cast<std::size_t>(outcome.replay.last_role)];
}

/// Seconds of all runs of each kernel, or transfer.
/// @param time of one run
template <class Time>
std::vector<double> seconds_of(const std::vector<std::uint64_t>& counts, const Time& time) {
  std::vector<double> seconds(counts.size());
  each_run(counts, [&](std::size_t id, std::uint64_t runs) {
    seconds[id] = static_cast<double>(runs) * time(id).base();
  });
  return seconds;
}

/// Seconds of each kernel in the given calls of blocks.
std::vector<double> kernel_seconds(const Program& program, const StepOutcome& outcome,
                                   const Role& role) {
  return seconds_of(count_executions(program, role).kernels, [&](std::size_t id) {
    return to_seconds(outcome.priced.costs.kernels[id].duration);
  });
}

/// Seconds that the kernels take longer, by draw.
std::vector<double> longer(const StepSource& source, const std::vector<double>& seconds) {
  const auto prices = source.model.on(source.machine.accelerator());
  const std::vector<Kernel>& shapes = source.shapes ? *source.shapes : source.program.kernels;
  std::vector<double> sum(kDraws);
  for (std::size_t id = 0; id < seconds.size(); ++id) {
    if (seconds[id] == 0 || source.outcome.priced.costs.kernels[id].fixed) continue;
    const std::vector<double> drawn = prices->draws(shapes[id], source.seed);
    for (std::size_t i = 0; i < kDraws; ++i) sum[i] += seconds[id] * (drawn[i] - 1);
  }
  return sum;
}

/// Seconds of all kernels of a role at the rates of the device, nothing lost.
double least_seconds(const StepSource& source, const Role& role) {
  const AcceleratorConfig& accelerator = source.machine.accelerator();
  return total(seconds_of(count_executions(source.program, role).kernels, [&](std::size_t id) {
    return least_time(source.program.kernels[id], accelerator);
  }));
}

/// Seconds of each transfer in the given calls of blocks, alone.
std::vector<double> transfer_seconds(const Program& program, const StepOutcome& outcome,
                                     const Role& role) {
  return seconds_of(count_executions(program, role).transfers,
                    [&](std::size_t id) { return outcome.priced.transfers[id].isolated_time; });
}

/// How much of the transfers of the rank that ends last its kernels do not hide.
double exposure(const Program& program, const StepOutcome& outcome) {
  const TimeBreakdown& breakdown = outcome.last_role().breakdown;
  const double all = total(transfer_seconds(program, outcome, last_role(program, outcome)));
  const double exposed = to_seconds(breakdown.exposed_communication).base();
  return all > 0 ? std::min(1.0, exposed / all) : 0;
}

/// Seconds that the rank waits longer for its transfers, by draw.
std::vector<double> waits_longer(const StepSource& source, const Role& role) {
  const Program& program = source.program;
  const StepOutcome& outcome = source.outcome;
  std::vector<double> sum(kDraws);
  const double exposed = exposure(program, outcome);
  const std::vector<double> seconds = transfer_seconds(program, outcome, role);
  for (std::size_t id = 0; id < seconds.size(); ++id) {
    if (seconds[id] == 0) continue;
    const std::vector<double> drawn = source.machine.draws(
        program.transfers[id], outcome.priced.transfers[id].isolated_time, source.seed);
    if (drawn.empty()) continue;
    for (std::size_t i = 0; i < kDraws; ++i) sum[i] += exposed * seconds[id] * (drawn[i] - 1);
  }
  return sum;
}

/// 1 + kernels / busy + waits / whole for each draw.
std::vector<double> relative(std::vector<double> kernels, double busy,
                             const std::vector<double>& waits = {}, double whole = 0) {
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    kernels[i] = busy > 0 ? 1 + kernels[i] / busy : 1;
    if (whole > 0) kernels[i] += waits[i] / whole;
  }
  return kernels;
}

/// Where the time of the rank that ends last comes from: its kernels and its waits for transfers,
/// by provenance.
ProvenanceTime step_provenance(const StepSource& source) {
  const Program& program = source.program;
  const StepOutcome& outcome = source.outcome;
  const Role& role = last_role(program, outcome);
  const std::vector<double> kernels = kernel_seconds(program, outcome, role);
  ProvenanceTime time;
  for (std::size_t id = 0; id < kernels.size(); ++id)
    time.add(outcome.priced.costs.kernels[id].provenance, kernels[id]);
  const bool fitted = time.fitted();
  const double exposed = exposure(program, outcome);
  const std::vector<double> transfers = transfer_seconds(program, outcome, role);
  for (std::size_t id = 0; id < transfers.size(); ++id) {
    time.add(fitted ? source.machine.provenance(program.transfers[id]) : Provenance::kAnalytic,
             exposed * transfers[id]);
  }
  return time;
}

}  // namespace

nlohmann::ordered_json provenance_json(const ProvenanceTime& time, const std::string& calibration) {
  const double total = time.total();
  const auto share = [&](Provenance of) { return total > 0 ? time.of(of) / total : 0; };
  return {{"measured", share(Provenance::kMeasured)},
          {"calibrated", share(Provenance::kCalibrated)},
          {"analytic", total > 0 ? share(Provenance::kAnalytic) : 1.0},
          {"extrapolated", share(Provenance::kExtrapolated)},
          {"calibration", calibration.empty() ? nlohmann::ordered_json(nullptr)
                                              : nlohmann::ordered_json(calibration)},
          {"note", time.fitted() ? "intervals cover what rests on measurements"
                                 : "datasheets and published priors; no measurement of this has "
                                   "been fitted, so intervals are those of such devices"}};
}

std::string assumed_start(const SystemConfig& system) {
  return fmt::format(
      "collectives start in {}, a kernel's launch and a message: nothing is published of their "
      "library on {}, others take up to {}",
      format_si(system.scale_up.launch.value.base(), "s"), system.name,
      format_si(kLongestStart.base(), "s"));
}

StepDraws step_draws(const StepSource& source) {
  const Program& program = source.program;
  const StepOutcome& outcome = source.outcome;
  const std::vector<double> seconds = kernel_seconds(program, outcome, last_role(program, outcome));
  const std::vector<double> sum = longer(source, seconds);
  const TimeBreakdown& time = outcome.last_role().breakdown;
  const double busy =
      to_seconds(time.compute + time.contention + time.optimizer + time.host).base();
  const double working = busy + to_seconds(time.exposed_communication).base();
  const double all = total(seconds);
  // Kernels on other streams of the rank overlap: only as much counts as the rank was busy.
  const double overlap = all > busy ? all / busy : 1;
  const std::vector<double> waits = waits_longer(source, last_role(program, outcome));
  const double least = least_seconds(source, last_role(program, outcome));
  return {relative(sum, working * overlap, waits, working), relative(sum, all),
          working > 0 ? std::min(1.0, least / (working * overlap)) : 0};
}

std::vector<double> block_draws(const StepSource& source, const std::vector<BlockId>& blocks,
                                Seconds time) {
  const Program& program = source.program;
  const StepOutcome& outcome = source.outcome;
  Role part;
  std::ranges::copy_if(last_role(program, outcome).calls, std::back_inserter(part.calls),
                       [&](BlockId call) { return std::ranges::count(blocks, call) > 0; });
  const std::vector<double> seconds = kernel_seconds(program, outcome, part);
  const double all = total(seconds);
  const double overlap = std::max(1.0, all / time.base());
  return relative(longer(source, seconds), time.base() * overlap, waits_longer(source, part),
                  time.base());
}

std::vector<double> spread_draws(std::int64_t seed, const std::string& name, double deviation) {
  std::vector<double> factors = normal_draws(seed, name);
  for (double& factor : factors) factor = std::exp(deviation * factor);
  return factors;
}

std::vector<double> beyond_graphs(bool has_experts, std::int64_t seed) {
  // Standard deviation of log(time of a step over that of its graph) beside what calibrations know.
  // Dense models: times per token of measured serving runs, which no published step is part of, are
  // 8.3 % off in the mean (orrery validate serving, validation/README.md), and the mean size of a
  // normal error is 0.80 of its deviation. Models with experts: those runs, 11.6 % off, say 0.145,
  // but 0.145 held only half of published ones (orrery validate published: Qwen3 and GPT-OSS by
  // TensorRT-LLM, DeepSeek by SGLang); 80 % of these, sources alike in weight, need 0.22 to 0.26
  // without one source or another; the least of these.
  constexpr double kDense = 0.104, kExperts = 0.22;
  return spread_draws(seed, "what graphs of steps leave out", has_experts ? kExperts : kDense);
}

std::vector<double> some_slower(std::vector<double> factors, double slower) {
  // Draws of one quantity come in no order, so every fourth is any fourth of the machines.
  for (std::size_t i = 0; i < factors.size(); i += 4) factors[i] *= slower;
  return factors;
}

std::vector<double> times(std::vector<double> factors, const std::vector<double>& more) {
  for (std::size_t i = 0; i < more.size(); ++i) factors[i] *= more[i];
  return factors;
}

void report_trust(const StepSource& source, RunRecord& record, const std::vector<double>& beyond) {
  const ProvenanceTime time = step_provenance(source);
  record.provenance = provenance_json(time, source.model.calibration());
  if (!source.program.transfers.empty() && start_is_assumed(source.machine.system()))
    record.provenance["assumed"] = assumed_start(source.machine.system());
  add_step_intervals(source, record, beyond);
}

void add_step_intervals(const StepSource& source, RunRecord& record,
                        const std::vector<double>& beyond) {
  StepDraws draws = step_draws(source);
  draws.step = times(std::move(draws.step), beyond);
  for (double& factor : draws.step) factor = std::max(factor, draws.least);
  add_time_intervals(record, draws.step);
  const std::vector<KernelCost>& kernels = source.outcome.priced.costs.kernels;
  if (!std::ranges::all_of(kernels, &KernelCost::fixed))
    add_interval(record, "breakdown.compute_s", draws.compute);
  const EnergyUse energy =
      step_energy(source.program, source.outcome.priced, source.machine.accelerator(),
                  to_seconds(source.outcome.replay.end));
  const AcceleratorConfig& accelerator = source.machine.accelerator();
  const Watts average = energy.total() / to_seconds(source.outcome.replay.end);
  add_energy_intervals(
      record, draws.step, energy.held() / energy.total(),
      power_draws(accelerator.power, average,
                  static_cast<double>(source.program.ranks) / accelerator.dies, source.seed));
}

void add_time_intervals(RunRecord& record, const std::vector<double>& factors) {
  const auto [p10, p90] = p10_p90(factors);
  for (Metric& metric : record.metrics) {
    const Follows follows = find_metric(metric.name)->follows;
    if (follows == Follows::kTime) {
      metric.interval = {metric.value * p10, metric.value * p90};
    } else if (follows == Follows::kRate) {
      metric.interval = {metric.value / p90, metric.value / p10};
    }
  }
}

void add_interval(RunRecord& record, std::string_view metric, std::vector<double> factors) {
  const auto [p10, p90] = p10_p90(std::move(factors));
  for (Metric& candidate : record.metrics)
    if (candidate.name == metric)
      candidate.interval = {candidate.value * p10, candidate.value * p90};
}

PowerDraws power_draws(const PowerConfig& power, Watts average, double packages,
                       std::int64_t seed) {
  return {spread_draws(seed, "power at given times", power.uncertainty.value),
          std::max(1.0, power.cap() * packages / average)};
}

void add_energy_intervals(RunRecord& record, const std::vector<double>& step, double held_share,
                          const PowerDraws& drawn) {
  std::vector<double> energy, power, per_joule, system, system_energy, system_per_joule;
  // What a system draws beside its accelerators' work it draws as long as the step lasts.
  const Metric* accelerators = record.find("average_power_w");
  const Metric* all = record.find("system_power_w");
  const double share = all != nullptr ? accelerators->value / all->value : 0;
  for (std::size_t i = 0; i < step.size(); ++i) {
    const double wanted = (1 + held_share * (step[i] - 1)) * drawn.factors[i] / step[i];
    power.push_back(std::min(wanted, drawn.most));
    energy.push_back(power.back() * step[i]);
    per_joule.push_back(1 / energy.back());
    system.push_back(1 - share + share * power.back());
    system_energy.push_back(system.back() * step[i]);
    system_per_joule.push_back(1 / system_energy.back());
  }
  for (const char* emitted : {"co2_per_million_tokens", "co2_per_step"})
    add_interval(record, emitted, all != nullptr ? system_energy : energy);
  add_interval(record, "energy_j", std::move(energy));
  add_interval(record, "average_power_w", std::move(power));
  add_interval(record, "tokens_per_joule", std::move(per_joule));
  add_interval(record, "system_power_w", std::move(system));
  add_interval(record, "system_tokens_per_joule", std::move(system_per_joule));
}

}  // namespace orrery
