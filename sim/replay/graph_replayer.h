// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/events/simulation.h"
#include "sim/graph/imported_graph.h"
#include "sim/network/flow_network.h"
#include "sim/replay/graph_chain.h"
#include "sim/replay/graph_meetings.h"
#include "sim/replay/graph_replay.h"

namespace orrery {

/// A time that is `scale` as long, to the nearest picosecond.
inline Picoseconds scaled_time(Picoseconds time, double scale) {
  return scale == 1 ? time : to_picoseconds(to_seconds(time) * scale);
}

/// The state of one replay of imported graphs: what replay() puts on the SystemC kernel. Ranks that
/// share a graph share its memory; each has a counter of waits per node of its own.
///
/// What happens at one time happens in a fixed order: ends of transfers, events as they were
/// pushed, then starts as they became possible.
class GraphReplayer final : public Agenda {
 public:
  GraphReplayer(const ImportedRun& run, const GraphCosts& costs, const GraphReplayOptions& options);

  Picoseconds next_time() const override;
  void execute(Picoseconds now) override;

  bool finished() const { return nodes_left_ == 0; }
  std::string deadlock_report() const { return meetings_.waiting(); }
  /// The collective or message that a dead link holds up for good; empty: there is none.
  std::string stall_report() const;
  GraphReplayResult result() const;
  /// The chain of nodes that ends with the last of a rank, from there on.
  void walk_chain(int last, const GraphChain::Visit& visit) const;

 private:
  static constexpr NodeId kNoNode = ~NodeId{0};

  enum EventKind : std::uint16_t { kNodeEnd, kLatencyEnd, kTransferEnd };

  /// What a node is to the account of its rank.
  enum class Part : std::uint8_t { kCompute, kOptimizer, kInFlight, kWaiting, kHost };

  /// A rank and where its time goes.
  struct alignas(64) Rank {
    std::uint32_t graph = ImportedRun::kAbsent;
    std::uint32_t first_stream = 0;  ///< index in streams_
    std::uint32_t running[5] = {};   ///< nodes that run, by Part
    Picoseconds settled = 0;         ///< until when its time is booked
    Picoseconds end = 0;
    NodeId last = kNoNode;  ///< the node that ended last
    TimeBreakdown breakdown;
  };
  /// A stream of a rank. That of a serial one is also a slot.
  struct Stream {
    bool serial = true;
    bool busy = false;
    bool due = false;           ///< listed in due_
    NodeId last = kNoNode;      ///< the node that ended last, of a serial one
    Picoseconds ended = 0;      ///< and when
    std::vector<NodeId> ready;  ///< a heap, the first of the file on top
    Picoseconds work = 0;       ///< time of its kernels and host operators
  };
  /// A node that runs, or is about to.
  struct Slot {
    std::uint32_t rank = 0;
    NodeId node = 0;
    Picoseconds begun = 0;
    std::uint32_t lane = 0;  ///< track of a timeline, of nodes that run side by side
  };
  /// One collective or message as it costs, however often it happens.
  struct Price {
    TransferCost cost;
    std::vector<std::uint32_t> flows;  ///< flows of the network that are not in flight
    double carried = 0;                ///< how often its bytes were carried
    double counted = 0;                ///< the part of it that is in link_busy_s_
  };
  struct PriceKey {
    TransferKind kind;
    double bytes;
    std::uint32_t first, second;  ///< group and root, or source and destination
    std::size_t state;            ///< states of the links that have begun
    auto operator<=>(const PriceKey&) const = default;
  };

  const ImportedGraph& graph(const Rank& rank) const { return run_.graphs[rank.graph]; }
  std::uint32_t index_of(const Rank& rank) const {
    return static_cast<std::uint32_t>(&rank - ranks_.data());
  }
  Picoseconds duration(const Rank& rank, const ImportedNode& node) const;
  Part part_of(const Rank& rank, const ImportedNode& node) const;
  static void settle(Rank& rank, Picoseconds now);

  void place_ranks();
  void make_ready(std::uint32_t rank, NodeId node);
  void start_due(Picoseconds now);
  void start(std::uint32_t slot, Picoseconds now);
  void finish(std::uint32_t slot, Picoseconds now);
  void begin_meeting(std::uint32_t meeting, Picoseconds now);
  bool takes_recorded(const GraphMeeting& meeting) const;
  std::uint32_t price_of(const GraphMeeting& meeting);
  void begin_bytes(std::uint32_t meeting, Picoseconds now);
  Picoseconds next_state_time() const {
    return state_ < costs_.states.size() ? costs_.states[state_].time : kNever;
  }
  void change_links(Picoseconds now);
  void count_busy();
  TransferCost cost_of(const Transfer& transfer) const;
  void end_meeting(std::uint32_t meeting, Picoseconds now);
  std::uint32_t take_slot(std::uint32_t rank, NodeId node);
  std::uint32_t take_lane(std::uint32_t rank);
  void record_span(const Slot& slot, bool serial, Picoseconds now);

  const ImportedRun& run_;
  const GraphCosts& costs_;
  Timeline* timeline_;
  std::vector<std::vector<Picoseconds>>* begins_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<std::uint32_t>> waits_;  ///< nodes that a node still waits for, by rank
  std::vector<std::array<TransferTime, kTransferKinds>> transfers_;  ///< times by rank
  std::vector<Stream> streams_;
  std::vector<std::vector<bool>> lanes_;  ///< whether lanes are taken, by rank, for timelines
  std::vector<Slot> slots_;               ///< those of streams, then those of other nodes
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::uint32_t> due_;       ///< slots to be started at this time
  std::vector<std::uint32_t> starting_;  ///< scratch of start_due()
  GraphMeetings meetings_;
  GraphChain chain_;
  std::vector<Price> prices_;
  std::map<PriceKey, std::uint32_t> price_numbers_;
  FlowNetwork network_;
  std::vector<std::uint32_t> meeting_of_flow_;
  std::size_t state_ = 0;            ///< states of the links that have begun
  std::vector<double> link_busy_s_;  ///< busy time by link, before the present state
  bool network_changed_ = false;
  EventQueue queue_;
  std::uint64_t nodes_left_ = 0;
  std::uint64_t events_ = 0, nodes_ = 0;
};

}  // namespace orrery
