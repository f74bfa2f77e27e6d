// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "sim/app/pricing/pricing.h"
#include "sim/replay/replay.h"

namespace orrery {

/// What a run takes under the power cap, of one package of accelerators.
struct PowerUse {
  Hertz clock;   ///< mean clock of the kernels of the rank that ends last, weighted by their time
  Watts window;  ///< the most that a window of power.response averages, the run repeated
};

/// Devices of one kind that work in step under the cap.
struct CappedDevices {
  const AcceleratorConfig& accelerator;
  double packages;  ///< accelerators in step, which wait for the slowest (slowest_of())
  PowerState state;
};

/// All that replay_under_cap() rests on beside the costs and the replay, as figures to compare.
std::vector<double> power_figures(const CappedDevices& devices, const Program& program,
                                  const PricedProgram& priced);

/// A run whose clock the power cap decides.
struct CappedRun {
  const Program& program;
  const ReplayOptions& options;
  /// Replays it with the costs of its kernels at some clock. Without one, replay() does.
  std::function<ReplayResult(const Costs& costs, const ReplayOptions& options)> replayed = nullptr;
};

/// Replays a program at the clocks of a power state, kBurst or kSteady: `priced` gets the costs of
/// kernels, and `result` what the replay says. In the steady state the program is replayed until
/// its clock is found, once where it is the boost clock. Kernels whose time is fixed have no clock;
/// where all are, nothing is balanced.
/// @throws config::KeyError where no clock keeps the cap
PowerUse replay_under_cap(const CappedDevices& devices, const CappedRun& run, PricedProgram& priced,
                          ReplayResult& result);

}  // namespace orrery
