// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>
#include <string>

#include "sim/events/simulation.h"
#include "sim/replay/program_replayer.h"
#include "tests/bench/contest.h"
#include "tests/bench/contestants.h"
#include "tests/bench/naive_replay.h"
#include "tests/bench/programs.h"

namespace orrery::bench {
namespace {

enum class Clock { kSystemC, kBare };

/// CPU time per operator, of the run without the preparation of the program.
Sample engine(const PricedProgram& p, Clock clock) {
  ProgramReplayer replayer(p.program, p.costs);
  Simulation& simulation = Simulation::instance();
  const double begin = cpu_seconds();
  if (clock == Clock::kSystemC) {
    simulation.run(replayer);
  } else {
    for (Picoseconds t = replayer.next_time(); t != kNever; t = replayer.next_time()) {
      replayer.execute(t);
    }
  }
  const double seconds = cpu_seconds() - begin;
  return {seconds / static_cast<double>(replayer.result().operators), 0};
}

Sample naive(const PricedProgram& p) {
  // The same program in the same process gives both the number of operators and the check of the
  // result.
  ProgramReplayer replayer(p.program, p.costs);
  for (Picoseconds t = replayer.next_time(); t != kNever; t = replayer.next_time()) {
    replayer.execute(t);
  }
  const NaiveResult result = naive_replay(p.program, p.costs);
  if (result.end != replayer.result().end) {
    throw std::runtime_error("the naive replay ends at another time than the engine");
  }
  return {result.seconds / static_cast<double>(replayer.result().operators), 0};
}

Sample memory_per_role() {
  constexpr int kRoles = 98'304;
  const PricedProgram p = template_program(kRoles, 2);
  Simulation& simulation = Simulation::instance();
  const double before = resident_bytes();
  ProgramReplayer replayer(p.program, p.costs);
  simulation.run(replayer);
  return {0, (resident_bytes() - before) / kRoles};
}

Sample memory_per_operator() {
  constexpr OperatorId kOperators = 100'000;
  Random random(11);
  OperatorGraph graph;
  for (OperatorId id = 0; id < kOperators; ++id) {
    graph.add({"", OperatorKind::kCompute, Category::kCompute, static_cast<StreamId>(id % 4), 0});
  }
  for (OperatorId edge = 0; edge < kOperators * 3 / 2; ++edge) {
    const auto later = static_cast<OperatorId>(1 + random(kOperators - 1));
    graph.depends(later, static_cast<OperatorId>(random(later)));
  }
  const FrozenBlock block = freeze(graph, 4);
  const std::size_t bytes = block.operators.capacity() * sizeof(FrozenOperator) +
                            block.waits.capacity() * sizeof(StreamWait);
  return {0, static_cast<double>(bytes) / kOperators};
}

}  // namespace

void add_replay_contest() {
  const auto small = [] { return rendezvous_program(1024, 50); };
  add_contestant("replay/systemc/1k", [=] { return engine(small(), Clock::kSystemC); });
  add_contestant("replay/bare/1k", [=] { return engine(small(), Clock::kBare); });
  add_contestant("replay/sc_method/1k", [=] { return naive(small()); });
  add_contestant("replay/training", [] { return engine(training_program(300), Clock::kSystemC); });
  add_contestant("memory/role", memory_per_role);
  add_contestant("memory/operator", memory_per_operator);
  add_contestant("guide/operator", [] { return Sample{200e-9, 0}; });

  add_comparison({"G1", "replay: bare engine / under SystemC, 1k roles", "replay/bare/1k",
                  "replay/systemc/1k", Quantity::kSeconds, Limit::kAtLeast, 0.5});
  add_comparison({"G2", "replay: SC_METHOD per stream / engine, 1k roles", "replay/sc_method/1k",
                  "replay/systemc/1k", Quantity::kSeconds, Limit::kAtLeast, 1.5});
  add_comparison({"G3", "replay of training: 5 M operators/s / measured", "guide/operator",
                  "replay/training", Quantity::kSeconds, Limit::kAtLeast, 1, true});
  add_comparison({"G4", "engine state per role, 98,304 roles [B]", "memory/role", "",
                  Quantity::kBytes, Limit::kAtMost, 1024});
  add_comparison({"G5", "frozen graph per operator at 1.5 edges [B]", "memory/operator", "",
                  Quantity::kBytes, Limit::kAtMost, 32});
}

}  // namespace orrery::bench
