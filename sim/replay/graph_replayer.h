// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/graph/imported_graph.h"
#include "sim/replay/graph_meetings.h"
#include "sim/replay/graph_replay.h"
#include "sim/replay/replayer.h"

namespace orrery {

/// A time that is `factor` as long, to the nearest picosecond.
inline Picoseconds scaled_time(Picoseconds time, double factor) {
  return factor == 1 ? time : to_picoseconds(to_seconds(time) * factor);
}

/// The replay of imported graphs: nodes start as their dependencies end. Ranks that share a graph
/// share its memory; each has a counter of waits per node of its own.
class GraphReplayer final : public Replayer {
 public:
  GraphReplayer(const ImportedRun& run, const GraphCosts& nodes, const Costs& costs,
                const GraphReplayOptions& options);

  std::string deadlock_report() const { return meetings_.waiting(); }
  GraphReplayResult result() const;
  /// The chain of nodes that ends with the last of the rank that ends last.
  void walk_chain(const GraphChain::Visit& visit) const;

 private:
  static constexpr NodeId kNoNode = ~NodeId{0};

  enum OwnEvent : std::uint16_t { kNodeEnd = kOwnEvents, kTransferEnd };

  /// What a node is to the account of its rank.
  enum class Part : std::uint8_t { kCompute, kOptimizer, kInFlight, kWaiting, kHost };

  /// A rank and where its time goes.
  struct alignas(64) Rank {
    std::uint32_t graph = ImportedRun::kAbsent;
    std::uint32_t first_stream = 0;  ///< index in streams_
    std::uint32_t running[5] = {};   ///< nodes that run, by Part
    std::uint32_t lanes = 0;         ///< lanes of its device that are taken, a bit each
    NodeId last = kNoNode;           ///< the node that ended last
    Picoseconds settled = 0;         ///< until when its time is booked
    Picoseconds contended = 0;       ///< until when slowed kernels are booked as such
    Picoseconds end = 0;
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
    std::uint32_t track = 0;  ///< track of a timeline, of nodes that run side by side
  };
  /// A transfer under way, and who meets for it.
  struct Flight {
    std::uint32_t transfer = 0;
    std::uint32_t meeting = 0;
  };

  const ImportedGraph& graph(const Rank& rank) const { return run_.graphs[rank.graph]; }
  std::uint32_t index_of(const Rank& rank) const {
    return static_cast<std::uint32_t>(&rank - ranks_.data());
  }
  Picoseconds duration(const Rank& rank, const ImportedNode& node) const;
  KernelId kernel_of(const Rank& rank, const ImportedNode& node) const;
  Part part_of(const Rank& rank, const ImportedNode& node) const;
  static Picoseconds& time_of(TimeBreakdown& breakdown, Part part);
  static void settle(Rank& rank, Picoseconds now);

  void event_due(const Event& event) override;
  void prefetch(const Event& /*event*/) const override {}
  void start_ready(Picoseconds now) override;
  void flight_ended(std::uint32_t flight, Picoseconds now) override;
  void load_devices(std::uint32_t flight, Picoseconds now, bool begins) override;
  std::span<const std::uint32_t> flights_of(std::uint32_t transfer) const override {
    return flights_of_[transfer];
  }
  double ended(std::uint32_t transfer) const override { return ended_[transfer]; }
  std::string name_of(std::uint32_t flight) const override;

  void place_ranks();
  void make_ready(std::uint32_t rank, NodeId node);
  void start(std::uint32_t slot, Picoseconds now);
  void start_work(std::uint32_t slot, Picoseconds now);
  bool share_device(std::uint32_t slot, KernelId kernel, Picoseconds time, Picoseconds now);
  void end_sharing(std::uint32_t slot, std::uint32_t lane, Picoseconds now);
  void finish(std::uint32_t slot, Picoseconds now);
  void free_stream(std::uint32_t slot, Picoseconds now);
  void observe(const Slot& slot, Picoseconds now) const;
  std::uint32_t take_slot(std::uint32_t rank, NodeId node);
  std::uint32_t take_track(std::uint32_t rank);
  void record_span(const Slot& slot, bool serial, Picoseconds now);

  // graph_transfers.cpp
  void begin_meeting(std::uint32_t meeting, Picoseconds now);
  bool takes_recorded(const GraphMeeting& meeting) const;
  std::uint32_t transfer_of(const GraphMeeting& meeting) const;
  std::uint32_t take_flight(std::uint32_t transfer, Picoseconds now);
  void observe(const GraphMeeting& meeting, Picoseconds now) const;
  void end_meeting(std::uint32_t meeting, Picoseconds now);

  const ImportedRun& run_;
  const GraphCosts& nodes_;
  const KernelVariation* variation_;  ///< null: all runs of a node are alike
  std::vector<std::vector<Picoseconds>>* begins_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<std::uint32_t>> waits_;  ///< nodes that a node still waits for, by rank
  std::vector<std::array<TransferTime, kTransferKinds>> transfers_;  ///< times by rank
  std::vector<Stream> streams_;
  std::vector<std::vector<bool>> tracks_;  ///< whether tracks are taken, by rank, for timelines
  std::vector<Slot> slots_;                ///< those of streams, then those of other nodes
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::uint32_t> due_;           ///< slots to be started at this time
  std::vector<std::uint32_t> starting_;      ///< scratch of start_ready()
  std::vector<std::uint32_t> slot_of_lane_;  ///< slots by rank, then lane of its device
  /// What slowed kernels took longer than alone, by rank and node.
  std::map<std::pair<std::uint32_t, NodeId>, Picoseconds> longer_;
  GraphMeetings meetings_;
  GraphChain chain_;
  std::vector<Flight> flights_;
  std::vector<std::vector<std::uint32_t>> flights_of_;  ///< flights by transfer
  std::vector<std::vector<std::uint32_t>> grounded_;    ///< those that are not under way
  std::vector<double> ended_;                           ///< flights that have ended, by transfer
};

}  // namespace orrery
