// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/kernel_slowdowns.h"

#include <algorithm>
#include <cmath>

#include "models/kernels/tile_model.h"
#include "sim/app/pricing/kernel_pricing.h"

namespace orrery {
namespace {

/// Shares of the memory bandwidth are told apart in steps of 1 / kShareSteps.
constexpr int kShareSteps = 128;

/// Bandwidth of the memory of a rank.
double bandwidth_of(const AcceleratorConfig& accelerator) {
  return accelerator.memory.bandwidth.value.base() / static_cast<double>(accelerator.dies);
}

double share_steps(const DeviceLoad& taken, const AcceleratorConfig& accelerator) {
  return std::round(static_cast<double>(taken.memory) / bandwidth_of(accelerator) * kShareSteps);
}

}  // namespace

DeviceLoad told_apart(DeviceLoad taken, const AcceleratorConfig& accelerator) {
  taken.memory =
      std::llround(share_steps(taken, accelerator) * bandwidth_of(accelerator) / kShareSteps);
  return taken;
}

bool leaves_units(const Kernel& kernel) {
  return kernel.kind == KernelClass::kGemm && kernel.precision == Precision::kFp8Block;
}

DeviceSlowdowns::DeviceSlowdowns(const Machine& machine, Fidelity fidelity, TileMemo* tiles)
    : machine_(machine), fidelity_(fidelity), tiles_(tiles) {}

double DeviceSlowdowns::slowdown(const Kernel& kernel, const DeviceLoad& taken, double& alone) {
  const Contention contention = left(taken);
  if (contention.none()) return 1;
  const auto time = [&](Contention c) {
    return static_cast<double>(prices(c).cost(kernel).duration);
  };
  if (alone == 0) alone = time(Contention());
  // A kernel of no time at all takes none beside transfers either.
  return alone > 0 ? std::max(1.0, time(contention) / alone) : 1;
}

/// What is left of a rank's part of the accelerator. Something is always left: a kernel that shares
/// an SM, and requests that take turns.
Contention DeviceSlowdowns::left(const DeviceLoad& taken) const {
  const AcceleratorConfig& accelerator = machine_.accelerator();
  const double dies = accelerator.dies;
  const double units = accelerator.compute.units.value / dies;
  const double share = share_steps(taken, accelerator) / kShareSteps;
  const double least = 1.0 / kShareSteps;
  return {std::max(1 / units, 1 - static_cast<double>(taken.units) / units),
          std::max(least, 1 - share)};
}

KernelPrices& DeviceSlowdowns::prices(Contention contention) {
  if (!closed_) closed_ = structure_model(machine_.calibrations());
  std::unique_ptr<KernelPrices>& known = prices_[{contention.units, contention.memory}];
  if (!known) {
    const Fidelity tier = fidelity_ == Fidelity::kClosed ? Fidelity::kClosed : Fidelity::kTile;
    known = TileModel(closed_, tier, contention, tiles_).on(machine_.accelerator());
  }
  return *known;
}

KernelSlowdowns::KernelSlowdowns(const Machine& machine, Fidelity fidelity, const Program& program,
                                 TileMemo* tiles)
    : program_(program), device_(machine, fidelity, tiles), alone_(program.kernels.size()) {}

double KernelSlowdowns::slowdown(KernelId kernel, const DeviceLoad& taken) {
  const auto kept = kept_off_.find(kernel);
  const KeptOff own = kept == kept_off_.end() ? KeptOff() : kept->second;
  const DeviceLoad lost{std::max(taken.units, own.units), taken.memory};
  const double all = device_.slowdown(program_.kernels[kernel], lost, alone_[kernel]);
  return std::max(1.0, all / own.slowdown);
}

double KernelSlowdowns::keep_off(KernelId kernel, std::int64_t units) {
  const double slowdown = device_.slowdown(program_.kernels[kernel], {units, 0}, alone_[kernel]);
  kept_off_[kernel] = {units, slowdown};
  return slowdown;
}

}  // namespace orrery
