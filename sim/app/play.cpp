// SPDX-License-Identifier: Apache-2.0
#include "sim/app/play.h"

#include "sim/app/components.h"

namespace orrery {

Played play(const ReplayInputs& inputs, Timeline* timeline, ReplayStandIn* stand_in) {
  // Modules are elaborated once in a process, so that machines that are only tried have none.
  if (stand_in != nullptr) return {stand_in->replay(inputs), {}};
  elaborate(inputs.topology);
  ReplayOptions options;
  options.timeline = timeline;
  options.slowdowns = inputs.slowdowns;
  options.topology = &inputs.topology;
  Played played{replay(inputs.program, inputs.costs, options), {}};
  played.components = component_use(inputs.topology, inputs.program, played.replay);
  return played;
}

}  // namespace orrery
