// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/part_pricer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "models/transfers/flow_model.h"
#include "sim/app/pricing/engine_network.h"
#include "sim/app/pricing/kernel_slowdowns.h"
#include "sim/app/pricing/list_schedule.h"
#include "sim/app/pricing/power_balance.h"
#include "sim/app/pricing/pricing.h"
#include "workloads/plan/program_builder.h"

namespace orrery {

/// The works of a list with their prices; `work` is that of each step.
struct PartPricer::Priced {
  Program program;
  std::vector<std::uint32_t> work;
  PricedProgram prices;
  std::vector<Joules> joules;  ///< energy of each transfer, on one rank
  /// Slowdowns of kernels beside transfers, by both; equal at every clock.
  mutable std::map<std::pair<std::uint32_t, std::uint32_t>, double> slowdowns;
  std::vector<double> slower;  ///< slowdown of each kernel beside what is taken all along
};

namespace {

double transfer_ps(const PricedTransfer& transfer) {
  return static_cast<double>(to_picoseconds(transfer.isolated_time));
}

}  // namespace

StepMachine step_machine(std::shared_ptr<const Machine> machine, const KernelChoice& choice,
                         bool contention, const std::optional<EngineAllReduce>& all_reduce,
                         const std::vector<std::string>& algorithms) {
  StepMachine made;
  made.kernels = machine->kernels(choice);
  if (all_reduce) {
    made.network = std::make_shared<const EngineNetwork>(
        machine->system(), machine->nodes(), *all_reduce, std::span<const LinkFault>(), algorithms);
  } else {
    made.network =
        std::make_shared<const FlowModel>(machine->system(), machine->nodes(), algorithms);
  }
  made.power = machine->power_state(PowerState::kSteady);
  if (contention) {
    const auto slowdowns = std::make_shared<DeviceSlowdowns>(*machine, choice.fidelity, nullptr);
    made.slowdown = [slowdowns, machine](const Kernel& kernel, const DeviceLoad& taken) {
      double alone = 0;
      return slowdowns->slowdown(kernel, taken, alone);
    };
  }
  made.machine = std::move(machine);
  return made;
}

PartPricer::PartPricer(StepMachine machine, ParallelConfig parallel, Bytes reuse)
    : machine_(std::move(machine)),
      parallel_(std::move(parallel)),
      reuse_(reuse),
      priced_on_(priced_accelerator(machine_.accelerator(), machine_.power)) {}

PartPricer PartPricer::keeping_off(std::int64_t units) const {
  PartPricer other = *this;
  other.kept_off_ = machine_.slowdown ? units : 0;
  return other;
}

PartPricer::Priced PartPricer::priced(const StepList& steps, const DeviceLoad& taken) const {
  Priced part;
  ProgramBuilder builder(parallel_);
  for (const Step& step : steps.steps()) {
    part.work.push_back(step.kernel() != nullptr ? builder.kernel(*step.kernel())
                                                 : builder.collective(*step.collective(), 0));
  }
  part.program = builder.finish({});
  for (Kernel& kernel : part.program.kernels) kernel.reuse = reuse_;
  part.prices = orrery::price(part.program, priced_on_, *machine_.kernels, *machine_.network);
  part.joules = transfer_energies(part.program, part.prices, machine_.accelerator());
  part.slower.assign(part.program.kernels.size(), 1.0);
  const bool alone = taken.none() || !machine_.slowdown;
  for (std::size_t i = 0; i < part.slower.size() && !alone; ++i)
    part.slower[i] = machine_.slowdown(part.program.kernels[i], taken);
  keep_off(taken, part);
  return part;
}

void PartPricer::keep_off(const DeviceLoad& taken, Priced& part) const {
  for (std::size_t i = 0; i < part.program.kernels.size(); ++i) {
    const Kernel& kernel = part.program.kernels[i];
    if (kept_off_ == 0 || !leaves_units(kernel)) continue;
    const double own = machine_.slowdown(kernel, {kept_off_, 0});
    const double all = machine_.slowdown(kernel, {std::max(taken.units, kept_off_), taken.memory});
    KernelCost& cost = part.prices.costs.kernels[i];
    const auto work = static_cast<double>(cost.duration - cost.launch);
    cost.duration = cost.launch + static_cast<Picoseconds>(std::llround(work * own));
    part.slower[i] = std::max(1.0, all / own);
  }
}

double PartPricer::slowdown(const Priced& part, std::uint32_t kernel, std::size_t transfer) const {
  const DeviceLoad& load = part.prices.transfers[transfer].cost.device;
  if (load.none() || !machine_.slowdown) return 1;
  double& slowdown = part.slowdowns[{kernel, static_cast<std::uint32_t>(transfer)}];
  if (slowdown == 0) slowdown = machine_.slowdown(part.program.kernels[kernel], load);
  return slowdown;
}

double PartPricer::time_of(const StepList& steps, const Priced& part,
                           const std::vector<KernelCost>& costs) const {
  std::vector<double> ends;
  double last = 0;
  ListSchedule schedule(kScopes);  // a stream for each scope of collectives
  for (std::size_t i = 0; i < steps.steps().size(); ++i) {
    const Step& step = steps.steps()[i];
    const std::uint32_t work = part.work[i];
    double ready = 0;
    for (const std::size_t earlier : step.after) ready = std::max(ready, ends[earlier]);
    if (step.kernel() != nullptr) {
      const double alone = static_cast<double>(costs[work].duration) * part.slower[work];
      ends.push_back(schedule.kernel(
          ready, alone, [&](std::size_t transfer) { return slowdown(part, work, transfer); }));
    } else {
      ends.push_back(schedule.transfer(static_cast<std::size_t>(step.collective()->scope), ready,
                                       transfer_ps(part.prices.transfers[work]), work));
    }
    last = std::max(last, ends.back());
  }
  return last;
}

void PartPricer::set_at(StepPrice& price, std::size_t point, const StepList& steps,
                        const Priced& part, const std::vector<KernelCost>& costs) const {
  StepPrice::At& at = price.at.at(point);
  at.time = time_of(steps, part, costs);
  const std::vector<Joules> joules =
      run_energies(part.program.kernels, costs, machine_.accelerator());
  for (std::size_t i = 0; i < part.work.size(); ++i) {
    const bool kernel = steps.steps()[i].kernel() != nullptr;
    at.energy += (kernel ? joules : part.joules)[part.work[i]].base();
  }
}

StepPrice PartPricer::price(const StepList& steps, const DeviceLoad& taken) const {
  StepPrice price;
  const Priced part = priced(steps, taken);
  const std::vector<Kernel>& kernels = part.program.kernels;
  for (const Step& step : steps.steps()) price.kernels += step.kernel() != nullptr ? 1 : 0;
  if (machine_.power == PowerState::kSteady) {
    const SteadyClock clock(kernels, machine_.accelerator(), part.prices.costs.kernels);
    price.highest = kernels.empty() ? 0 : clock.highest();
    for (std::size_t i = 0; i < ClockGrid::kPoints; ++i)
      set_at(price, i, steps, part, clock.at(ClockGrid::share(i)));
    return price;
  }
  std::vector<KernelCost> costs = part.prices.costs.kernels;
  balance_burst(kernels, machine_.accelerator(), costs);
  set_at(price, 0, steps, part, costs);
  return price;
}

DeviceLoad PartPricer::load(const LayerCollective& collective) const {
  if (!machine_.slowdown) return {};
  StepList alone;
  alone.then(collective);
  const Priced part = priced(alone);
  return told_apart(part.prices.transfers.front().cost.device, machine_.accelerator());
}

StepPrice PartPricer::messages(Bytes bytes) const {
  StepPrice price;
  const Mesh mesh(parallel_);
  for (int stage = 0; stage + 1 < parallel_.pp; ++stage) {
    Transfer message;
    message.name = "forward";
    message.kind = TransferKind::kSendReceive;
    message.bytes = bytes;
    message.participants = 2;
    message.groups = mesh.pairs(stage, stage + 1);
    const PricedTransfer priced = machine_.network->price(message);
    for (StepPrice::At& at : price.at) at.time += transfer_ps(priced);
  }
  return price;
}

}  // namespace orrery
