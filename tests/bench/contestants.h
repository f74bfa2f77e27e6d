// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace orrery::bench {

/// E1 to E4: events through the engine, a bare std::priority_queue, and one SC_METHOD each.
void add_queue_contest();
/// E5: deadlines that move.
void add_deadline_contest();
/// G1 to G5: replay of programs, and what it keeps in memory.
void add_replay_contest();
/// F4 and F6: transfers that share links; F1 to F3 are a program of their own, simgrid_bench.
void add_flow_contest();
/// P1 to P3: times of kernels.
void add_prediction_contest();
/// T1 to T3: thread blocks as events, and a model's step priced by them.
void add_tile_contest();
/// N1 to N7: collectives of whole clusters, and steps on them.
void add_network_contest();
/// S1 to S3: steps of inference priced without a graph.
void add_step_contest();
void add_plan_contest();

}  // namespace orrery::bench
