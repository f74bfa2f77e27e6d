// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/model_step.h"

#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include "sim/app/experiments/plan_check.h"
#include "sim/app/pricing/kernel_slowdowns.h"
#include "sim/app/pricing/power_balance.h"
#include "sim/graph/verify.h"
#include "sim/results/table.h"
#include "sim/trace/timeline.h"

namespace orrery {
namespace {

struct MemoryPart {
  const char* metric;
  Bytes MemoryUse::*member;
};
constexpr MemoryPart kMemoryParts[] = {{"memory.weights_bytes", &MemoryUse::weights},
                                       {"memory.gradients_bytes", &MemoryUse::gradients},
                                       {"memory.optimizer_bytes", &MemoryUse::optimizer},
                                       {"memory.activations_bytes", &MemoryUse::activations},
                                       {"memory.working_bytes", &MemoryUse::working},
                                       {"memory.kv_cache_bytes", &MemoryUse::kv_cache},
                                       {"memory.logits_bytes", &MemoryUse::logits}};

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
  for (std::size_t id = 0; id < counts.kernels.size(); ++id) {
    if (counts.kernels[id] == 0) continue;
    const Kernel& kernel = program.kernels[id];
    add(to_string(kernel.kind), counts.kernels[id],
        to_seconds(outcome.priced.costs.kernels[id].duration).base(),
        (kernel.matrix_flops + kernel.vector_flops).base(), (kernel.read + kernel.written).base());
  }
  for (std::size_t id = 0; id < counts.transfers.size(); ++id) {
    if (counts.transfers[id] == 0) continue;
    const Transfer& transfer = program.transfers[id];
    add(std::string(to_string(transfer.kind)) + " " + transfer.purpose, counts.transfers[id],
        outcome.priced.transfers[id].isolated_time.base(), 0, transfer.bytes.base());
  }
  for (auto& [name, c] : classes) record.classes.push_back(std::move(c));
}

void add_breakdown(const Program& program, const ReplayResult& replay, RunRecord& record) {
  const auto last = static_cast<std::size_t>(replay.last_role);
  record.labels.push_back({"breakdown.stage", program.roles[last].name});
  const TimeBreakdown& time = replay.roles[last].breakdown;
  const auto add = [&record](const char* name, Picoseconds part) {
    add_metric(record, name, to_seconds(part).base());
  };
  add("breakdown.compute_s", time.compute);
  add("breakdown.contention_s", time.contention);
  add("breakdown.exposed_communication_s", time.exposed_communication);
  add("breakdown.bubble_s", time.bubble);
  add("breakdown.optimizer_s", time.optimizer);
  add("breakdown.host_s", time.host);
  add("breakdown.idle_s", time.idle);
}

/// Whether any plan could hold the states: those of all ranks against the memory of all ranks.
std::string states_against_machine(const ModelExperiment& experiment,
                                   const std::vector<MemoryUse>& stages) {
  Bytes states;
  for (const MemoryUse& stage : stages) states += stage.weights + stage.gradients + stage.optimizer;
  states *= static_cast<double>(experiment.ranks()) / static_cast<double>(stages.size());
  const AcceleratorConfig& accelerator = experiment.system.accelerator;
  const Bytes nameplate = accelerator.memory.capacity.published() * experiment.accelerators();
  return "weights, gradients and optimizer states of all ranks are " +
         format_si(states.base(), "B") + ", the machine has " + format_si(nameplate.base(), "B") +
         " by its nameplate and " +
         format_si((experiment.usable_memory() * experiment.ranks()).base(), "B") + " usable";
}

double executed_flops(const Program& program) {
  double flops = 0;
  for (const Role& role : program.roles) {
    const ExecutionCounts counts = count_executions(program, role);
    for (std::size_t id = 0; id < counts.kernels.size(); ++id) {
      flops += program.kernels[id].matrix_flops.base() * static_cast<double>(counts.kernels[id]) *
               static_cast<double>(role.ranks.size());
    }
  }
  return flops;
}

}  // namespace

bool check_memory(const ModelExperiment& experiment, const std::vector<MemoryUse>& stages,
                  RunRecord& record) {
  const MemoryUse& worst = worst_stage(stages);
  add_metric(record, "peak_memory_bytes", worst.total().base());
  for (const MemoryPart& part : kMemoryParts) {
    add_metric(record, part.metric, (worst.*part.member).base());
  }
  const Bytes usable = experiment.usable_memory();
  if (worst.total() <= usable) return true;
  record.status = RunStatus::kInfeasible;
  add_metric(record, "memory_shortfall_bytes", (worst.total() - usable).base());
  record.reason = "does not fit: a rank needs " + format_si(worst.total().base(), "B") + " of " +
                  format_si(usable.base(), "B") + " usable memory, " +
                  format_si((worst.total() - usable).base(), "B") + " too much";
  if (const std::string hint = expert_parallel_hint(experiment); !hint.empty())
    record.reason += "; " + hint;
  if (worst.optimizer.base() > 0)
    record.reason += "; " + states_against_machine(experiment, stages);
  return false;
}

StepOutcome replay_step(const ModelExperiment& experiment, const KernelModel& model,
                        const Program& program, const SimulateOptions& simulate_options) {
  if (const auto faults = verify(program); !faults.empty()) throw std::logic_error(faults.front());
  const MachineNetwork states(experiment.machine(), experiment.faults);
  const FlowModel& network = states.start();
  StepOutcome outcome;
  const AcceleratorConfig& accelerator = experiment.machine().accelerator();
  const PowerState state = experiment.machine().power_state(PowerState::kSteady);
  outcome.priced = price(program, priced_accelerator(accelerator, state), model, network);
  states.add_link_events(program, outcome.priced.transfers, outcome.priced.costs);
  KernelSlowdowns slowdowns(experiment.machine(), experiment.fidelity, program,
                            simulate_options.tiles);
  const std::string& trace = simulate_options.trace;
  std::unique_ptr<Timeline> timeline;
  if (!trace.empty()) timeline = std::make_unique<Timeline>(trace);
  const ReplayInputs inputs{network.topology(), program, outcome.priced.costs,
                            experiment.contention.transfers ? &slowdowns : nullptr,
                            power_figures(accelerator, state, program, outcome.priced)};
  const Replayer replayer = [&](SlowdownModel* slowed) {
    ReplayOptions options;
    options.timeline = timeline.get();
    options.slowdowns = slowed;
    options.topology = &network.topology();
    ReplayOutcome played;
    played.power =
        replay_under_cap(accelerator, state, program, options, outcome.priced, played.replay);
    played.kernels = outcome.priced.costs.kernels;
    return played;
  };
  Played played = play(inputs, replayer, simulate_options.stand_in);
  outcome.replay = std::move(played.outcome.replay);
  outcome.power = played.outcome.power;
  outcome.priced.costs.kernels = std::move(played.outcome.kernels);
  outcome.components = std::move(played.components);
  outcome.links = link_use(network.topology(), outcome.replay, experiment.recorded);
  if (timeline) {
    timeline->close();
    if (timeline->left_out() > 0) {
      std::cerr << trace << ": the last " << timeline->left_out()
                << " spans are left out, a viewer takes no more\n";
    }
  }
  return outcome;
}

void report_step(const ModelExperiment& experiment, const ModelStep& step,
                 const StepOutcome& outcome, RunRecord& record) {
  const Seconds time = to_seconds(outcome.replay.end);
  const double seconds = time.base();
  const double accelerators = experiment.accelerators();
  const double peak =
      matrix_peak(experiment.system.accelerator, experiment.precision).base() * experiment.ranks();
  const EnergyUse energy =
      step_energy(step.program, outcome.priced, experiment.system.accelerator, time);

  add_metric(record, "step_time_s", seconds);
  add_metric(record, "tokens_per_s", step.tokens / seconds);
  add_metric(record, "tokens_per_s_per_accelerator", step.tokens / seconds / accelerators);
  add_metric(record, "model_flops_utilization", step.model_flops.base() / seconds / peak);
  add_metric(record, "hardware_flops_utilization", executed_flops(step.program) / seconds / peak);
  add_breakdown(step.program, outcome.replay, record);
  add_metric(record, "energy_j", energy.total().base());
  add_metric(record, "average_power_w", energy.total().base() / seconds);
  add_metric(record, "tokens_per_joule", step.tokens / energy.total().base());
  add_metric(record, "clock_hz", outcome.power.clock.base());
  add_metric(record, "window_power_w", outcome.power.window.base());
  if (const auto power = experiment.machine().system_power(energy.total() / time, accelerators)) {
    add_metric(record, "system_power_w", power->base());
    add_metric(record, "system_tokens_per_joule", step.tokens / (*power * time).base());
  }
  record.labels.push_back(
      {"power_state", to_string(experiment.machine().power_state(PowerState::kSteady))});
  add_metric(record, "simulated_time_s", seconds);
  add_metric(record, "events", static_cast<double>(outcome.replay.events));
  add_classes(step.program, outcome, record);
  record.components = outcome.components;
  add_link_use(outcome.links, record);
}

}  // namespace orrery
