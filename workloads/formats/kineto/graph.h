// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workloads/formats/graph_builder.h"
#include "workloads/formats/kineto/collectives.h"
#include "workloads/formats/kineto/streams.h"
#include "workloads/formats/kineto/trace.h"

namespace orrery {

class Communicators;  // workloads/formats/communicators.h

namespace kineto {

/// Makes the graph of a trace whose calls and kernels have been joined. What each node waits for is
/// a rule; how long nodes of the host and gaps between kernels take is chosen such that the graph,
/// each node as soon as it can, begins every kernel when the trace says it began.
class GraphMaker {
 public:
  GraphMaker(Trace& trace, std::string path, Communicators& communicators, GraphBuilder& graph);
  /// The trace is used up.
  void make(std::vector<std::string>& notes);

 private:
  /// A thread of the host, as far as it has come.
  struct Thread {
    std::int64_t now = 0;           ///< when its last node ends in the graph
    std::int64_t recorded = 0;      ///< when it ended in the trace
    std::uint32_t last = kNone;     ///< last node of the thread
    std::vector<PlannedEnd> waits;  ///< what the next node waits for besides
    std::uint32_t call = kNone;     ///< index of its last wait without streams
    std::uint16_t stream = 0;       ///< stream of the graph that it is
  };

  void find_origin();
  void measure_launches();
  void name_streams();
  void place_calls();
  void place_call(HostCall& call) const;
  void take_call(std::uint32_t index);
  void take_launch(std::uint32_t index, const HostCall& call);
  void take_sync(std::uint32_t index, const HostCall& call);
  void take_wait(std::uint32_t index, const HostCall& call);
  void take_op(std::uint32_t index);
  void host_node(std::uint16_t thread, std::int64_t until);
  void follow_other_thread(std::uint16_t thread, std::int64_t until);
  void end_threads();
  std::vector<PlannedEnd> waited_for(std::uint32_t index, const HostCall& call);
  void stream_waits(const DeviceOp& op, std::vector<PlannedEnd>& ends);
  void find_cause(const DeviceOp& op, std::vector<PlannedEnd>& ends);
  NodeId add_op_node(const DeviceOp& op, std::int64_t duration);
  NodeId add_kernel(std::uint64_t id, std::string_view name, std::uint16_t stream,
                    const NodeWork& work);
  NodeWork work_of(const DeviceOp& op, std::int64_t duration);
  const SyncRecord* sync_of(const HostCall& call) const;
  std::uint32_t record_before(const SyncRecord& sync, std::uint32_t index) const;
  void write_notes(std::vector<std::string>& notes);

  Trace& trace_;
  std::string path_;
  Communicators& communicators_;
  GraphBuilder& graph_;
  Streams streams_;
  std::vector<Thread> threads_;
  /// Correlations and indices of the calls that record events, sorted.
  std::vector<std::pair<std::int64_t, std::uint32_t>> records_;
  std::uint64_t launched_ = 0, begun_ = 0;  ///< ops whose launch is taken, and that are
  std::uint32_t latest_call_ = 0;           ///< last of the calls that have been taken
  std::int64_t origin_ = 0;                 ///< ns: when the graph begins
  std::int64_t latency_ = 0;  ///< ns from a call to its kernel, where nothing holds that up
  std::uint16_t gaps_ = 0;    ///< stream of the graph for what keeps kernels from starting
  std::uint16_t recent_[2] = {kNoStream, kNoStream};  ///< threads that have gone on last
  struct Counts {
    std::uint64_t unlaunched = 0, overlaps = 0, guessed_waits = 0, guessed_syncs = 0,
                  full_queues = 0;
    std::uint64_t guessed_causes = 0;
    std::uint64_t paced = 0;    ///< kernels that the host keeps waiting
    std::int64_t gap_time = 0;  ///< time in ns that nothing explains
    std::uint64_t streams = 0, collectives = 0, unknown_collectives = 0;
    // Times in ns.
    std::int64_t collective_time = 0, unknown_collective_time = 0;
    std::int64_t kernel_time = 0, classified = 0, shaped = 0;
    std::int64_t first_start = INT64_MAX, last_end = INT64_MIN, span = 0;
  } counts_;
};

}  // namespace kineto
}  // namespace orrery
