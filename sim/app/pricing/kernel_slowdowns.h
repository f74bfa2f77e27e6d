// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "models/kernels/tiles/tile_model.h"
#include "sim/app/pricing/machine.h"
#include "sim/graph/program.h"
#include "sim/replay/replay.h"

namespace orrery {

/// What the kernels of a program take on what transfers leave of the device, over what they take
/// alone. Both are priced by the parameters of the calibration without its measured ratios, which
/// hold for whole devices, and in the same tier: `auto` plays thread blocks where the kernel has
/// them, because no measurement speaks for the closed form here.
class KernelSlowdowns final : public SlowdownModel {
 public:
  /// @param machine, program, tiles have to outlive it; tiles may be null
  KernelSlowdowns(const Machine& machine, Fidelity fidelity, const Program& program,
                  TileMemo* tiles);
  ~KernelSlowdowns() override;

  double slowdown(KernelId kernel, const DeviceLoad& taken) override;

 private:
  /// Shares of the memory bandwidth are told apart in steps of 1 / kSteps.
  static constexpr int kSteps = 128;

  Contention left(const DeviceLoad& taken) const;
  const TileModel& model(Contention contention);

  const Machine& machine_;
  Fidelity fidelity_;
  const Program& program_;
  TileMemo* tiles_;
  std::shared_ptr<const CalibratedModel> closed_;  ///< made when a kernel first meets a transfer
  std::map<std::pair<double, double>, std::unique_ptr<TileModel>> models_;  ///< by what is left
  std::vector<double> alone_;  ///< picoseconds by kernel; 0: not priced yet
};

}  // namespace orrery
