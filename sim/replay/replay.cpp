// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/replay.h"

#include <string>

#include "sim/events/simulation.h"
#include "sim/replay/program_replayer.h"
#include "sim/trace/timeline.h"

namespace orrery {
namespace {

void name_tracks(const Program& program, const std::vector<Actor>& actors, Timeline& timeline) {
  for (std::uint32_t actor = 0; actor < actors.size(); ++actor) {
    const Role& role = program.roles[actors[actor].role];
    std::string name = role.name;
    if (actors[actor].rank >= 0) {
      name += " rank " + std::to_string(actors[actor].rank);
    } else if (role.ranks.size() > 1) {
      name += " x" + std::to_string(role.ranks.size());
    }
    timeline.process(actor, name);
    for (std::uint32_t stream = 0; stream < program.streams.size(); ++stream)
      timeline.thread(actor, stream, program.streams[stream]);
  }
}

}  // namespace

ReplayResult replay(const Program& program, const Costs& costs, const ReplayOptions& options) {
  if (options.timeline != nullptr) {
    name_tracks(program, actors_of(program, options.images != nullptr), *options.timeline);
  }
  ProgramReplayer replayer(program, costs, options);
  Simulation::instance().run(replayer);
  if (!replayer.finished()) {
    if (const std::string stall = replayer.stall_report(options.topology); !stall.empty())
      throw LinkDownError(stall);
    throw DeadlockError(replayer.deadlock_report());
  }
  return replayer.result();
}

}  // namespace orrery
