// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sim/app/pricing/machine.h"
#include "sim/graph/program.h"
#include "sim/replay/replay.h"

namespace orrery {

class CalibratedModel;

/// The same with its share of the memory bandwidth rounded as far as slowdowns tell it apart.
DeviceLoad told_apart(DeviceLoad taken, const AcceleratorConfig& accelerator);

/// Whether a kernel is one of DeepGEMM's products, which leave SMs to exchanges where prompts of
/// two batches work in turn (SGLang two_batch_overlap.py, operations_strategy.py, 2025:
/// deep_gemm_num_sms; none of decodes).
bool leaves_units(const Kernel& kernel);

/// What kernels take on what transfers leave of a device, over what they take alone. Both are
/// priced by the parameters of the calibration without its measured ratios, which hold for whole
/// devices, and in the same tier: `auto` plays thread blocks where the kernel has them, because no
/// measurement speaks for the closed form here.
class DeviceSlowdowns {
 public:
  /// @param machine, tiles have to outlive it; tiles may be null
  DeviceSlowdowns(const Machine& machine, Fidelity fidelity, TileMemo* tiles);
  /// @param alone picoseconds that the kernel takes alone, as this found them; 0: not yet
  double slowdown(const Kernel& kernel, const DeviceLoad& taken, double& alone);

 private:
  Contention left(const DeviceLoad& taken) const;
  KernelPrices& prices(Contention contention);

  const Machine& machine_;
  Fidelity fidelity_;
  TileMemo* tiles_;
  std::shared_ptr<const CalibratedModel> closed_;  ///< made when a kernel first meets a transfer
  std::map<std::pair<double, double>, std::unique_ptr<KernelPrices>>
      prices_;  ///< prices by the shares of SMs and of bandwidth left
};

/// Slowdowns of the kernels of a program.
class KernelSlowdowns final : public SlowdownModel {
 public:
  /// @param machine, program, tiles have to outlive it; tiles may be null
  KernelSlowdowns(const Machine& machine, Fidelity fidelity, const Program& program,
                  TileMemo* tiles);

  double slowdown(KernelId kernel, const DeviceLoad& taken) override;

  /// A kernel leaves so many SMs to transfers whether there are any or not. Of those that transfers
  /// take, only what is more slows it from now on.
  /// @return its time so over that on all SMs, which is part of its price then
  double keep_off(KernelId kernel, std::int64_t units);

 private:
  const Program& program_;
  DeviceSlowdowns device_;
  std::vector<double> alone_;  ///< picoseconds by kernel; 0: not priced yet
  struct KeptOff {
    std::int64_t units = 0;
    double slowdown = 1;
  };
  std::map<KernelId, KeptOff> kept_off_;
};

}  // namespace orrery
