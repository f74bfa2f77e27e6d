// SPDX-License-Identifier: Apache-2.0
// Execution plans of MSCCL++ (microsoft/mscclpp): one JSON file tells what the thread blocks of
// every rank do. Two forms are read:
//  - of its present language (src/core/executor/execution_plan.cc, v0.9.0): `src_buff` and
//    `dst_buff` with `type` or `buffer_id`, `index` and `size`;
//  - of the one before it (src/executor/execution_plan.cc, v0.6.0): `srcs`, `i_cids`, `o_cids`,
//    `srcbuff`, `srcoff`, `dstbuff`, `dstoff`, `cnt`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/collectives/schedule.h"
#include "sim/config/diagnostics.h"
#include "sim/config/node.h"
#include "sim/units/units.h"

namespace orrery {

/// Chunks in the memory of one rank: cells of its input, its output and its scratch memory, one
/// after the other. Where a plan works in place, input and output share cells.
struct PlanRange {
  int rank = 0;
  int first = 0;
  int count = 1;
};

/// Data that goes from one place to another.
struct PlanMove {
  PlanRange from, to;
  bool add = false;      ///< adds to the target instead of replacing it
  int turn = 0;          ///< moves of an operation that follow each other: 0, 1, 2
  bool packets = false;  ///< written as packets: a flag for every word
  bool awaited = false;  ///< read as packets: once their flags are there
};

/// An operation of a thread block: it waits, moves data, and signals.
struct PlanOp {
  std::vector<int> waits, acquires;  ///< signals and semaphores that it waits for
  std::vector<PlanMove> moves;
  std::vector<int> signals, releases;  ///< signals and semaphores that it raises
  std::optional<int> barrier;          ///< barrier of its rank where thread blocks meet
  int barrier_blocks = 0;              ///< how many meet there
  config::Location where;
  int length = 1;
};

struct PlanThreadBlock {
  int rank = 0;
  std::vector<PlanOp> ops;
};

/// A plan as its file gives it. If thread blocks share a chunk, each of their parts is a chunk
/// here.
struct ExecutionPlan {
  TransferKind collective = TransferKind::kAllReduce;
  bool in_place = false;
  int ranks = 0;
  int input = 0, output = 0, scratch = 0;  ///< chunks of the buffers of every rank
  Bytes least, most;                       ///< sizes of buffers that it serves
  std::vector<PlanThreadBlock> blocks;
  int signals = 0;              ///< kinds of signals: one for each end of a channel
  std::vector<int> semaphores;  ///< counts at first
  std::vector<std::string> notes;
  config::Location where;  ///< place of the list of ranks

  int chunks() const;  ///< chunks of the whole collective
  int cells() const {
    return (in_place ? std::max(input, output) : input + output) + scratch;
  }  ///< cells of one rank
  /// The chunk of the collective that is at an index of a rank's buffer.
  int input_chunk(int rank, int index) const;
  int output_chunk(int rank, int index) const;
  /// The cell of that index.
  int input_cell(int rank, int index) const {
    return in_place && collective == TransferKind::kAllGather ? rank * input + index : index;
  }
  int output_cell(int rank, int index) const;
  int scratch_cell(int index) const { return cells() - scratch + index; }
};

/// Whether a file is an execution plan, by its keys.
bool is_execution_plan(const config::Node& node);

/// @throws config::ConfigError at the place that is wrong, or has no equal here
ExecutionPlan read_execution_plan(const config::Node& node, config::Diagnostics& diagnostics);

/// A plan message by message.
struct PlanSchedule {
  Schedule schedule;
  std::vector<config::Location> places;  ///< place of the operation of each message
  std::vector<int> lengths;
  /// Bytes between ranks, in chunks; packets count twice.
  struct Flow {
    int from = 0, to = 0;
    double chunks = 0;
  };
  std::vector<Flow> flows;
  /// Points of the run in order. One is reached when the one or two before it are and, where it has
  /// two ends, a message between them has arrived.
  struct Point {
    int before = -1, other = -1;
    int from = -1, to = -1;
  };
  std::vector<Point> points;
};

/// The longest chain of messages. Who only signals delays nobody.
StepCount longest_chain(const Collective& collective,
                        const std::vector<PlanSchedule::Point>& points);

/// Carries out a plan in an order that its signals, barriers and packets allow.
/// @throws config::ConfigError where they allow two orders of a write and another access to the
/// same chunk, or none at all
PlanSchedule schedule_of(const ExecutionPlan& plan, config::Diagnostics& diagnostics);

}  // namespace orrery
