// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/pricing/machine.h"
#include "sim/app/pricing/step_price.h"
#include "sim/graph/costs.h"
#include "sim/machine/kernel_model.h"
#include "sim/machine/network.h"
#include "sim/serving/engine_costs.h"
#include "workloads/ops/step_list.h"
#include "workloads/plan/parallel_config.h"

namespace orrery {

/// What steps are priced on: the prices that a replay of them asks too.
struct StepMachine {
  std::shared_ptr<const Machine> machine;
  std::shared_ptr<const KernelModel> kernels;
  std::shared_ptr<const Network> network;
  PowerState power = PowerState::kSteady;  ///< never kByKind
  /// A kernel beside transfers that take this of its device, over the kernel alone; none: 1.
  std::function<double(const Kernel& kernel, const DeviceLoad& taken)> slowdown;

  const AcceleratorConfig& accelerator() const { return machine->accelerator(); }
};

/// Prices on a machine without faults. A power state that follows the kind of an experiment is
/// steady, as of all steps of models.
/// @param contention whether transfers slow the kernels beside them
/// @param all_reduce see EngineNetwork; without it NCCL carries all collectives
/// @param algorithms collective algorithms that go first, as FlowModel takes them
StepMachine step_machine(std::shared_ptr<const Machine> machine, const KernelChoice& choice = {},
                         bool contention = true,
                         const std::optional<EngineAllReduce>& all_reduce = {},
                         const std::vector<std::string>& algorithms = {});

/// Prices lists of steps that follow each other on the compute stream, with collectives between or
/// beside them: what a replay of the list alone gives, without a graph. Nothing of one list runs
/// beside another one, which holds for all steps of inference but those of two batches.
class PartPricer {
 public:
  /// @param reuse of all kernels (Kernel::reuse): what a step touches at least
  PartPricer(StepMachine machine, ParallelConfig parallel, Bytes reuse);
  /// The same for steps whose products leave so many SMs to transfers whether there are any or not
  /// (leaves_units()).
  PartPricer keeping_off(std::int64_t units) const;

  /// @param taken what transfers beside all of it take of the device: one of load()
  StepPrice price(const StepList& steps, const DeviceLoad& taken = {}) const;
  /// What a collective takes of the device of each rank, loads that slow kernels alike made equal.
  DeviceLoad load(const LayerCollective& collective) const;
  /// A message of activations from one pipeline stage to the next; all of them.
  StepPrice messages(Bytes bytes) const;

  const StepMachine& machine() const { return machine_; }

 private:
  struct Priced;

  Priced priced(const StepList& steps, const DeviceLoad& taken = {}) const;
  double time_of(const StepList& steps, const Priced& priced,
                 const std::vector<KernelCost>& costs) const;
  /// Slowdown of a kernel during a transfer, both by their place in the list.
  double slowdown(const Priced& priced, std::uint32_t kernel, std::size_t transfer) const;
  void set_at(StepPrice& price, std::size_t point, const StepList& steps, const Priced& priced,
              const std::vector<KernelCost>& costs) const;

  /// What products that keep off SMs take more than on all of them becomes part of their prices;
  /// `slower`, what transfers take beyond it.
  void keep_off(const DeviceLoad& taken, Priced& part) const;

  StepMachine machine_;
  ParallelConfig parallel_;
  Bytes reuse_;
  std::int64_t kept_off_ = 0;    ///< units that products leave to transfers
  AcceleratorConfig priced_on_;  ///< the accelerator as kernels are priced for in the power state
};

}  // namespace orrery
