// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "workloads/formats/kineto/trace.h"

namespace orrery::kineto {

/// A node, and when it ends in the graph, each node as soon as it can.
struct PlannedEnd {
  NodeId node = 0;
  std::int64_t end = 0;
};

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

  std::size_t size() const { return states_.size(); }
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

}  // namespace orrery::kineto
