// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/steps/model_step.h"

#include "sim/app/experiments/keys/common_metrics.h"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "sim/app/experiments/core/carbon.h"
#include "sim/app/experiments/files/price_list.h"
#include "sim/app/experiments/steps/rank_replay.h"
#include "sim/app/pricing/kernel_slowdowns.h"
#include "sim/app/pricing/power_balance.h"
#include "sim/graph/executions.h"
#include "sim/graph/verify.h"
#include "sim/results/table.h"
#include "sim/trace/timeline.h"

namespace orrery {
namespace {

const DeclaredMetric kStepTime =
    step_metric("step_time_s", "s", "time of one step", Follows::kTime);
const DeclaredMetric kTokensPerS{{"tokens_per_s", "1/s", "tokens of the step over its time",
                                  "training, inference", Follows::kRate}};
const DeclaredMetric kTokensPerSPerAccelerator{
    {"tokens_per_s_per_accelerator", "1/s",
     "tokens of the step over its time and the accelerator packages", "training, inference",
     Follows::kRate}};
const DeclaredMetric kHardwareFlopsUtilization = step_metric(
    "hardware_flops_utilization", "1",
    "FLOPs of matrix units and recurrences that are executed over the dense peak", Follows::kRate);
const DeclaredMetric kMemoryShortfallBytes =
    step_metric("memory_shortfall_bytes", "B",
                "device memory that the fullest rank of a point lacks which does not fit");
const DeclaredMetric kBreakdownStage = step_metric(
    "breakdown.stage", "", "the pipeline stage that ends last, whose parts the breakdown has");
const DeclaredMetric kTokenPrice{{"usd_per_million_tokens", "USD",
                                  "price of the accelerators that are used over the step, for 10^6 "
                                  "of its tokens; where `prices` names a list that has them",
                                  "training, inference", Follows::kTime}};
/// A part of the memory of the fullest rank.
struct MemoryPart {
  const char* name;
  Bytes MemoryUse::*member;
  DeclaredMetric metric;

  MemoryPart(const char* of, Bytes MemoryUse::*bytes, const std::string& meaning,
             const char* experiments = "training, inference, layers")
      : name(of),
        member(bytes),
        metric(
            {underscored(of), "B", meaning + " in the memory of the fullest rank", experiments}) {}

  /// "memory.kv_cache_bytes" of "kv cache".
  static std::string underscored(std::string name) {
    std::ranges::replace(name, ' ', '_');
    return "memory." + name + "_bytes";
  }
};

const MemoryPart kMemoryParts[] = {
    {"weights", &MemoryUse::weights, "weights"},
    {"gradients", &MemoryUse::gradients, "gradients"},
    {"optimizer", &MemoryUse::optimizer, "optimizer states"},
    {"activations", &MemoryUse::activations, "activations kept from forward to backward"},
    {"working", &MemoryUse::working, "tensors alive while one layer runs"},
    {"kv cache", &MemoryUse::kv_cache, "KV cache", "training, inference"},
    {"logits", &MemoryUse::logits, "logits of one micro-batch", "training, inference"}};

/// Sum of durations by class on one rank of the role that ends last; transfers as if alone on the
/// machine.
void add_classes(const Program& program, const StepOutcome& outcome, RunRecord& record) {
  const Role& role = program.roles[static_cast<std::size_t>(outcome.replay.last_role)];
  const ExecutionCounts counts = count_executions(program, role);
  std::map<std::string, ClassBreakdown> classes;
  const auto add = [&classes](const std::string& name, std::uint64_t runs, double time,
                              double flops, double bytes) {
    ClassBreakdown& c = classes[name];
    c.name = name;
    c.count += runs;
    c.time_s += time * static_cast<double>(runs);
    c.flops += flops * static_cast<double>(runs);
    c.bytes += bytes * static_cast<double>(runs);
  };
  each_run(counts.kernels, [&](std::size_t id, std::uint64_t runs) {
    const Kernel& kernel = program.kernels[id];
    add(to_string(kernel.kind), runs, to_seconds(outcome.priced.costs.kernels[id].duration).base(),
        (kernel.matrix_flops + kernel.vector_flops).base(), (kernel.read + kernel.written).base());
  });
  each_run(counts.transfers, [&](std::size_t id, std::uint64_t runs) {
    const Transfer& transfer = program.transfers[id];
    add(std::string(to_string(transfer.kind)) + " " + transfer.purpose, runs,
        outcome.priced.transfers[id].isolated_time.base(), 0, transfer.bytes.base());
  });
  for (auto& [name, c] : classes) record.classes.push_back(std::move(c));
}

/// Whether any plan could hold the states: those of all ranks against the memory of all ranks.
std::string states_against_machine(const StepExperiment& experiment,
                                   const std::vector<MemoryUse>& stages) {
  Bytes states;
  for (const MemoryUse& stage : stages) states += stage.weights + stage.gradients + stage.optimizer;
  states *= static_cast<double>(experiment.ranks()) / static_cast<double>(stages.size());
  const AcceleratorConfig& accelerator = experiment.system.accelerator;
  const Bytes nameplate = accelerator.memory.capacity.published() * experiment.accelerators();
  const Bytes usable = experiment.usable_memory() * experiment.ranks();
  // Data sheets round down to GB what is a whole number of GiB.
  const std::string of_sheet =
      nameplate > usable ? format_si(nameplate.base(), "B") + " by its nameplate and " : "";
  return fmt::format(
      "weights, gradients and optimizer states of all ranks are {}, the machine has {}{} usable",
      format_si(states.base(), "B"), of_sheet, format_si(usable.base(), "B"));
}

/// "; most of it: activations 53 GB, fullest on stage 0 in the forward pass of micro-batch 3".
std::string largest_part(const MemoryUse& use) {
  const MemoryPart* most = std::begin(kMemoryParts);
  for (const MemoryPart& part : kMemoryParts)
    if (use.*part.member > use.*most->member) most = &part;
  return fmt::format("; most of it: {} {}{}{}", most->name,
                     format_si((use.*most->member).base(), "B"),
                     use.when.empty() ? "" : ", fullest ", use.when);
}

}  // namespace

bool check_memory(const StepExperiment& experiment, const std::vector<MemoryUse>& stages,
                  RunRecord& record) {
  const MemoryUse& worst = worst_stage(stages);
  add_metric(record, kPeakMemoryBytes, worst.total().base());
  for (const MemoryPart& part : kMemoryParts)
    add_metric(record, part.metric, (worst.*part.member).base());
  const Bytes usable = experiment.usable_memory();
  if (worst.total() <= usable) return true;
  record.status = RunStatus::kInfeasible;
  add_metric(record, kMemoryShortfallBytes, (worst.total() - usable).base());
  record.reason = fmt::format("does not fit: a rank needs {} of {} usable memory, {} too much{}",
                              format_si(worst.total().base(), "B"), format_si(usable.base(), "B"),
                              format_si((worst.total() - usable).base(), "B"), largest_part(worst));
  if (const std::string hint = experiment.plan_hint(); !hint.empty()) record.reason += "; " + hint;
  if (worst.optimizer.base() > 0)
    record.reason += "; " + states_against_machine(experiment, stages);
  record.reason += experiment.fitting_text();
  return false;
}

namespace {

/// Kernels that leave SMs to exchanges take longer, whatever runs beside them.
void keep_off(const StepExperiment& experiment, const Program& program, KernelSlowdowns& slowdowns,
              Costs& costs) {
  for (KernelId id = 0; id < program.kernels.size(); ++id) {
    const std::int64_t units = experiment.kept_off(program.kernels[id]);
    if (units == 0) continue;
    KernelCost& cost = costs.kernels[id];
    const auto work = static_cast<double>(cost.duration - cost.launch);
    cost.duration =
        cost.launch + static_cast<Picoseconds>(std::llround(work * slowdowns.keep_off(id, units)));
  }
}

}  // namespace

StepOutcome replay_step(const StepExperiment& experiment, const KernelModel& model,
                        const Program& program, const SimulateOptions& simulate_options,
                        const Repricing& repricing) {
  if (const auto faults = verify(program); !faults.empty()) throw std::logic_error(faults.front());
  const StepNetwork on(experiment);
  const Network& network = on.start();
  StepOutcome outcome;
  const AcceleratorConfig& accelerator = experiment.machine().accelerator();
  const PowerState state = experiment.machine().power_state(PowerState::kSteady);
  // Where noise makes accelerators differ one by one, it has the slowest among them.
  const CappedDevices devices{accelerator,
                              experiment.noise.ranks > 0 ? 1 : experiment.accelerators(), state};
  outcome.priced = price(program, priced_accelerator(accelerator, state), model, network);
  if (repricing) repricing(outcome.priced);
  on.links().add_link_events(program, outcome.priced.transfers, outcome.priced.costs);
  KernelSlowdowns slowdowns(experiment.machine(), experiment.fidelity, program,
                            simulate_options.tiles);
  keep_off(experiment, program, slowdowns, outcome.priced.costs);
  const std::string& trace = simulate_options.trace;
  std::unique_ptr<Timeline> timeline;
  if (!trace.empty()) timeline = std::make_unique<Timeline>(trace);
  const ReplayInputs inputs{network.topology(),
                            program,
                            outcome.priced.costs,
                            experiment.contention.transfers ? &slowdowns : nullptr,
                            power_figures(devices, program, outcome.priced),
                            rank_figures(experiment)};
  const ReplayFunction replayer = [&](SlowdownModel* slowed) {
    ReplayOptions options;
    if (!experiment.unfolds()) options.timeline = timeline.get();
    options.slowdowns = slowed;
    options.topology = &network.topology();
    if (simulate_options.stand_in != nullptr) options.path = simulate_options.stand_in->path();
    ReplayOutcome played;
    played.power = replay_under_cap(devices, {program, options}, outcome.priced, played.replay);
    if (experiment.unfolds()) {
      options.timeline = timeline.get();
      options.path = nullptr;  // that of roles is theirs, unless ranks differ
      RankSteps steps = replay_ranks(experiment, program, outcome.priced, on.links(), options);
      played.replay = std::move(steps.middle);
      played.steps = std::move(steps.times);
    }
    played.kernels = outcome.priced.costs.kernels;
    return played;
  };
  Played played = play(inputs, replayer, simulate_options.stand_in);
  outcome.replay = std::move(played.outcome.replay);
  outcome.power = played.outcome.power;
  outcome.steps = std::move(played.outcome.steps);
  outcome.priced.costs.kernels = std::move(played.outcome.kernels);
  outcome.components = std::move(played.components);
  outcome.links = link_use(network.topology(), outcome.replay, experiment.recorded);
  if (timeline) close_timeline(*timeline, simulate_options);
  return outcome;
}

namespace {

/// What a million tokens cost, where the list has the accelerator.
void report_cost(const StepExperiment& experiment, double tokens_per_s, RunRecord& record) {
  const std::optional<PriceList> list = price_list(experiment.prices);
  const std::optional<double> price =
      list ? list->of(experiment.system.accelerator.id) : std::nullopt;
  if (!price) return;
  constexpr double kMillion = 1e6;
  const double an_hour =
      *price * experiment.machine().charged(experiment.accelerators(), experiment.unused);
  add_metric(record, kUsdPerHour, an_hour);
  if (tokens_per_s > 0)
    add_metric(record, kTokenPrice, an_hour / kSecondsAnHour / tokens_per_s * kMillion);
  add_label(record, kPrices, list->text());
}

struct ExecutedFlops {
  Flops flops;          ///< work of all ranks of the kinds that a model's FLOPs have
  FlopsPerSecond peak;  ///< rate of one rank
};

/// The peak is that of the precision of the step. Products that run in a faster one (weights of 4
/// bits that meet inputs of 8) count at theirs.
ExecutedFlops executed_flops(const StepExperiment& experiment, const Program& program) {
  const AcceleratorConfig& device = experiment.system.accelerator;
  const FlopsPerSecond of_step = matrix_peak(device, experiment.precision);
  ExecutedFlops executed{Flops(), of_step};
  Seconds least;
  for (const auto& [precision, flops] : executed_matrix_flops(program)) {
    executed.flops += flops;
    least += flops / std::max(of_step, matrix_peak(device, precision));
  }
  if (least > Seconds(0)) executed.peak = executed.flops / least;
  executed.flops += executed_recurrence_flops(program);
  return executed;
}

}  // namespace

void report_step(const StepExperiment& experiment, const ModelStep& step,
                 const StepOutcome& outcome, RunRecord& record) {
  const Seconds time = to_seconds(outcome.replay.end);
  const double seconds = time.base();
  const double accelerators = experiment.accelerators();
  const ExecutedFlops executed = executed_flops(experiment, step.program);
  const FlopsPerSecond peak = executed.peak * experiment.ranks();
  const EnergyUse energy =
      step_energy(step.program, outcome.priced, experiment.system.accelerator, time);

  add_metric(record, kStepTime, seconds);
  if (step.tokens > 0) {
    add_metric(record, kTokensPerS, step.tokens / seconds);
    add_metric(record, kTokensPerSPerAccelerator, step.tokens / seconds / accelerators);
  }
  add_metric(record, kModelFlopsUtilization, step.model_flops / time / peak);
  add_metric(record, kHardwareFlopsUtilization, executed.flops / time / peak);
  const auto last = static_cast<std::size_t>(outcome.replay.last_role);
  add_label(record, kBreakdownStage, step.program.roles[last].name);
  add_breakdown(outcome.replay.roles[last].breakdown, record);
  report_ranks(experiment, {outcome.replay, outcome.steps}, record);
  add_metric(record, kEnergy, energy.total().base());
  add_metric(record, kAveragePower, energy.total().base() / seconds);
  if (step.tokens > 0) add_metric(record, kTokensPerJoule, step.tokens / energy.total().base());
  add_metric(record, kClock, outcome.power.clock.base());
  add_metric(record, kWindowPower, outcome.power.window.base());
  const Watts drawn = energy.total() / time;
  if (const auto power =
          experiment.machine().system_power(drawn, accelerators, experiment.unused)) {
    add_metric(record, kSystemPower, power->base());
    if (step.tokens > 0)
      add_metric(record, kSystemTokensPerJoule, step.tokens / (*power * time).base());
  }
  report_cost(experiment, step.tokens / seconds, record);
  report_carbon(experiment.carbon_intensity, record);
  add_label(record, kPowerState, to_string(experiment.machine().power_state(PowerState::kSteady)));
  add_metric(record, kSimulatedTime, seconds);
  add_metric(record, kEvents, static_cast<double>(outcome.replay.events));
  add_classes(step.program, outcome, record);
  record.components = outcome.components;
  add_link_use(outcome.links, record);
}

StepNetwork::StepNetwork(const StepExperiment& experiment)
    : links_(experiment.machine(), experiment.faults, {experiment.algorithms}) {
  const Machine& machine = experiment.machine();
  if (const auto own = experiment.own_all_reduces())
    engine_.emplace(machine.system(), machine.nodes(), *own, links_.faults_at_start(),
                    experiment.algorithms);
}

}  // namespace orrery
