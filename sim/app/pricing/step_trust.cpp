// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/step_trust.h"

#include "sim/app/pricing/pricing.h"
#include "sim/graph/executions.h"
#include "sim/machine/draws.h"

namespace orrery {
namespace {

/// Adds up pieces of a step with their draws.
class TrustSum {
 public:
  void add(Provenance provenance, double seconds, const std::vector<double>& draws) {
    trust_.seconds[provenance] += seconds;
    total_ += seconds;
    if (draws.empty()) return;
    for (std::size_t i = 0; i < kDraws; ++i) longer_[i] += seconds * (draws[i] - 1);
  }

  StepTrust sum() {
    for (const double longer : longer_)
      trust_.factors.push_back(1 + (total_ > 0 ? longer / total_ : 0));
    return trust_;
  }

 private:
  StepTrust trust_;
  double total_ = 0;
  std::vector<double> longer_ = std::vector<double>(kDraws);
};

}  // namespace

StepTrust step_trust(const StepMachine& machine, const Program& program, std::int64_t seed) {
  const AcceleratorConfig accelerator = machine.accelerator();
  const auto prices = machine.kernels->on(accelerator);
  const PricedProgram priced = price(program, accelerator, *machine.kernels, *machine.network);
  TrustSum sum;
  for (const Role& role : program.roles) {
    const ExecutionCounts counts = count_executions(program, role);
    each_run(counts.kernels, [&](std::size_t id, std::uint64_t runs) {
      const KernelCost& cost = priced.costs.kernels[id];
      sum.add(cost.provenance, static_cast<double>(runs) * to_seconds(cost.duration).base(),
              prices->draws(program.kernels[id], seed));
    });
    each_run(counts.transfers, [&](std::size_t id, std::uint64_t runs) {
      const Seconds time = priced.transfers[id].isolated_time;
      const Transfer& transfer = program.transfers[id];
      sum.add(machine.machine->provenance(transfer), static_cast<double>(runs) * time.base(),
              machine.machine->draws(transfer, time, seed));
    });
  }
  return sum.sum();
}

}  // namespace orrery
