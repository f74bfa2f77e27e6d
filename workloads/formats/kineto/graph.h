// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workloads/formats/communicators.h"
#include "workloads/formats/graph_builder.h"
#include "workloads/formats/kineto/trace.h"

namespace orrery::kineto {

/// A collective or message, as a node of a graph.
struct MessageNode {
  NodeKind kind = NodeKind::kCollective;
  ImportedMessage message;
};

/// What a recorded collective sends, in which group; nothing where the trace does not say enough:
/// the kind, the bytes, or who takes part.
std::optional<MessageNode> message_of(const Collective& collective, const Header& header,
                                      Communicators& communicators);

/// A node, and when it ends in the graph, each node as soon as it can.
struct PlannedEnd {
  NodeId node = 0;
  std::int64_t end = 0;
  bool operator<(const PlannedEnd& other) const { return end < other.end; }
};

/// When the last of some ends, not before `from`.
inline std::int64_t latest(const std::vector<PlannedEnd>& ends, std::int64_t from) {
  for (const PlannedEnd& end : ends) from = std::max(from, end.end);
  return from;
}

/// What a stream is told to wait for: cudaStreamWaitEvent.
struct StreamWait {
  std::uint32_t call = 0;            ///< what is launched by later calls waits
  std::uint16_t source = kNoStream;  ///< the stream that is waited for; kNoStream: all others
  std::uint32_t before = 0;          ///< only what calls up to this one have launched is waited for
};

/// The streams of the devices, as far as their kernels stand in the graph.
class Streams {
 public:
  struct State {
    std::uint32_t last = kNone;  ///< last op of the stream
    PlannedEnd end;              ///< node and end of the last op
    std::uint32_t call = 0;      ///< the call that launched the last op
    std::int64_t recorded_end = INT64_MIN;
    std::deque<StreamWait> waits;  ///< waits, ordered by their calls
    std::uint16_t graph_stream = 0;
  };

  Streams(BlockList<DeviceOp>& ops, std::size_t count) : ops_(ops), states_(count) {}

  State& operator[](std::uint16_t stream) { return states_[stream]; }
  /// The last op of a stream that calls up to `call` have launched and that ends by `latest`.
  std::optional<PlannedEnd> last(std::uint16_t stream, std::uint32_t call,
                                 std::int64_t latest) const;
  /// Such ops of all streams but one.
  std::vector<PlannedEnd> last_of_all(std::uint32_t call, std::int64_t latest,
                                      std::uint16_t without = kNoStream) const;
  void add_wait(std::uint16_t stream, const StreamWait& wait);
  /// An op is in the graph: the last of its stream.
  void append(std::uint32_t index, PlannedEnd end, std::int64_t recorded_end);

 private:
  BlockList<DeviceOp>& ops_;
  std::vector<State> states_;
};

inline constexpr std::int64_t kPicosecondsOfNanosecond = 1000;
inline Picoseconds picoseconds(std::int64_t nanoseconds) {
  return static_cast<Picoseconds>(nanoseconds * kPicosecondsOfNanosecond);
}
/// What the trace says that a node takes.
inline NodeWork recorded(std::int64_t nanoseconds) {
  NodeWork work;
  work.recorded = picoseconds(nanoseconds);
  work.timed = true;
  return work;
}

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

}  // namespace orrery::kineto
