// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/replay.h"

#include <string>

#include "sim/events/simulation.h"
#include "sim/replay/replayer.h"
#include "sim/trace/timeline.h"

namespace orrery {
namespace {

void name_tracks(const Program& program, Timeline& timeline) {
  for (std::uint32_t role = 0; role < program.roles.size(); ++role) {
    const std::size_t folded = program.roles[role].ranks.size();
    const std::string fold = folded > 1 ? " x" + std::to_string(folded) : "";
    timeline.process(role, program.roles[role].name + fold);
    for (std::uint32_t stream = 0; stream < program.streams.size(); ++stream) {
      timeline.thread(role, stream, program.streams[stream]);
    }
  }
}

}  // namespace

ReplayResult replay(const Program& program, const Costs& costs, const ReplayOptions& options) {
  if (options.timeline != nullptr) {
    name_tracks(program, *options.timeline);
  }
  Replayer replayer(program, costs, options);
  Simulation::instance().run(replayer);
  if (!replayer.finished()) {
    const std::string stall = replayer.stall_report(options.topology);
    if (!stall.empty()) {
      throw LinkDownError(stall);
    }
    throw DeadlockError(replayer.deadlock_report());
  }
  return replayer.result();
}

}  // namespace orrery
