// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/app/experiments/experiment.h"
#include "sim/app/pricing/pricing.h"
#include "sim/replay/replay.h"

namespace orrery {

/// What a run takes under the power cap, of one package of accelerators.
struct PowerUse {
  Hertz clock;   ///< of the units: mean of the kernels of the rank that ends last, by their time
  Watts window;  ///< the most that a window of power.response averages, the run repeated
};

/// The state that an experiment asks for: power.state, or what its kind has. Never kByKind.
PowerState power_state(const Experiment& experiment);

/// What all systems of an experiment draw while their accelerators draw `accelerators`: that, the
/// idle power of accelerators without a rank, and what all-in power leaves beside the design power
/// of all accelerators, which is taken to be drawn at any load: hosts, switches, NICs, storage,
/// fans and losses. NVIDIA budgets a tray of a GB300 NVL72 in the same way: 1,000 W of CPUs and
/// 900 W static beside its GPUs (Mission Control, power reservation). Nothing where a system tells
/// no all-in power.
std::optional<Watts> system_power(const Experiment& experiment, Watts accelerators);

/// All that replay_under_cap() rests on beside the costs and the replay, as figures to compare.
std::vector<double> power_figures(const Experiment& experiment, const Program& program,
                                  const PricedProgram& priced);

/// Replays a program at the clocks of the experiment's power state: `priced` gets the costs of
/// kernels, and `result` what the replay says. In the steady state the program is replayed until
/// its clock is found, once where it is the boost clock.
/// @throws config::KeyError where no clock keeps the cap
PowerUse replay_under_cap(const Experiment& experiment, const Program& program,
                          const ReplayOptions& options, PricedProgram& priced,
                          ReplayResult& result);

}  // namespace orrery
