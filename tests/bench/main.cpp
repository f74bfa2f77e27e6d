// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/contest.h"
#include "tests/bench/contestants.h"

int main(int argc, char** argv) {
  orrery::bench::add_queue_contest();
  orrery::bench::add_deadline_contest();
  orrery::bench::add_replay_contest();
  orrery::bench::add_flow_contest();
  orrery::bench::add_prediction_contest();
  orrery::bench::add_tile_contest();
  orrery::bench::add_network_contest();
  orrery::bench::add_step_contest();
  orrery::bench::add_plan_contest();
  return orrery::bench::run_contest(argc, argv);
}
