// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simgrid/s4u.hpp>

namespace orrery::test {

/// SimGrid's engine with its fluid model as such: max-min shares (CM02) of exact capacities,
/// without the corrections for TCP, protocol headers and traffic the other way. One per process.
class PlainSimGrid {
 public:
  PlainSimGrid() {
    static int count = 3;
    static char name[] = "simgrid";
    // Quiet, and no time is spent on log lines.
    static char log[] = "--log=root.threshold:error";
    static char contexts[] = "--cfg=contexts/stack-size:32";  // KiB; one stack per actor
    static char* arguments[] = {name, log, contexts, nullptr};
    static simgrid::s4u::Engine* const engine = new simgrid::s4u::Engine(&count, arguments);
    engine_ = engine;
    for (const char* setting :
         {"network/model:CM02", "network/bandwidth-factor:1", "network/latency-factor:1",
          "network/weight-S:0", "network/TCP-gamma:0", "network/crosstraffic:0"}) {
      simgrid::s4u::Engine::set_config(setting);
    }
  }
  simgrid::s4u::Engine& engine() const { return *engine_; }

 private:
  simgrid::s4u::Engine* engine_;
};

}  // namespace orrery::test
