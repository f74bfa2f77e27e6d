// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/core/play.h"

#include "sim/app/experiments/core/components.h"

namespace orrery {

Played play(const ReplayInputs& inputs, const ReplayFunction& replayer, ReplayStandIn* stand_in) {
  if (stand_in != nullptr) return {stand_in->replay(inputs, replayer), {}};
  Played played{replayer(inputs.slowdowns), {}};
  played.components = component_use(inputs.topology, inputs.program, played.outcome.replay);
  return played;
}

}  // namespace orrery
