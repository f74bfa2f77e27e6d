// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sim/graph/imported_graph.h"
#include "sim/units/time.h"

namespace orrery {

/// One collective, or one message, that ranks come to.
struct GraphMeeting {
  ImportedMessage message;            ///< message of who came first
  std::uint32_t needed = 0;           ///< ranks that have to come
  std::vector<std::uint32_t> slots;   ///< who has come, in order: numbers of the replayer
  std::vector<int> ranks;             ///< ranks of who has come
  std::vector<NodeId> nodes;          ///< and their nodes
  int source = -1, destination = -1;  ///< ranks of a message
  Picoseconds recorded = 0;           ///< the shortest time that files say; 0: none does
  Picoseconds started = 0;
  bool from_file = false;  ///< whether it takes the recorded time
  bool open = false;

  bool complete() const { return ranks.size() == needed; }
};

/// Finds out who meets whom: collectives by group, in the order in which each rank comes to them;
/// messages by source, destination and tag.
class GraphMeetings {
 public:
  explicit GraphMeetings(const ImportedRun& run);

  /// A rank has come to a node that communicates. @returns the number of the meeting
  /// @throws GraphMismatch where it meets another kind or other bytes, is no member of the group,
  /// or names ranks that are not there
  std::uint32_t arrive(int rank, NodeId node, std::uint32_t slot);
  GraphMeeting& at(std::uint32_t meeting) { return meetings_[meeting]; }
  const GraphMeeting& at(std::uint32_t meeting) const { return meetings_[meeting]; }
  /// Numbers that have been given, of meetings that are open or not.
  std::size_t size() const { return meetings_.size(); }
  /// Everybody has gone: the number may be given again.
  void release(std::uint32_t meeting);

  /// Members of the group of a collective, in its order.
  const std::vector<int>& members(std::uint32_t group) const;
  /// For a deadlock: what is waited for, by whom, and who does not come.
  std::string waiting() const;

 private:
  /// A communicator in time; made when the first of its members comes.
  struct Group {
    std::vector<int> ranks;            ///< members, sorted
    std::vector<std::uint64_t> begun;  ///< collectives that they have come to
    std::uint32_t present = 0;         ///< members that have a graph
    std::uint64_t first = 0;           ///< number of the first one of `open`
    std::deque<std::uint32_t> open;    ///< meetings, from the first that waits for members on
  };
  struct RouteHash {
    std::size_t operator()(const std::tuple<int, int, std::int64_t>& route) const;
  };
  /// Sends that wait for receives, or receives that wait for sends.
  struct Route {
    bool sends = true;
    std::deque<std::uint32_t> open;
  };

  Group& group(std::uint32_t number, int rank, NodeId node);
  const ImportedGraph& graph(int rank) const {
    return run_.graphs[run_.graph_of_rank[static_cast<std::size_t>(rank)]];
  }
  bool is_present(int rank) const {
    return run_.graph_of_rank[static_cast<std::size_t>(rank)] != ImportedRun::kAbsent;
  }
  std::string place(int rank, NodeId node) const;
  std::string missing(const GraphMeeting& meeting) const;
  std::uint32_t begin(const ImportedMessage& message, std::uint32_t needed);
  std::uint32_t collective(int rank, NodeId node, const ImportedMessage& message);
  std::uint32_t message(int rank, NodeId node, const ImportedMessage& message);
  void compare(const GraphMeeting& meeting, int rank, NodeId node,
               const ImportedMessage& message) const;

  const ImportedRun& run_;
  std::vector<int> world_;
  std::vector<Group> groups_;  ///< groups by number; the last is the world
  std::unordered_map<std::tuple<int, int, std::int64_t>, Route, RouteHash> routes_;
  std::vector<GraphMeeting> meetings_;
  std::vector<std::uint32_t> unused_;
};

}  // namespace orrery
