// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/graph_meetings.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "sim/replay/graph_replay.h"
#include "sim/units/comma_separated.h"

namespace orrery {
namespace {

constexpr std::size_t kMostRanksNamed = 8;
constexpr std::size_t kMostMeetingsNamed = 16;

std::string list_of_ranks(const std::vector<int>& ranks) {
  const std::span named(ranks.data(), std::min(ranks.size(), kMostRanksNamed));
  const std::string list = comma_joined(named, [](int rank) { return std::to_string(rank); });
  const std::size_t more = ranks.size() - named.size();
  return fmt::format("{} {}{}", ranks.size() == 1 ? "rank" : "ranks", list,
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

/// Parts of different sizes are usual there, and each rank knows only its own.
bool may_differ(TransferKind kind) { return kind == TransferKind::kAllToAll; }

}  // namespace

std::size_t GraphMeetings::RouteHash::operator()(
    const std::tuple<int, int, std::int64_t>& route) const {
  const auto& [source, destination, tag] = route;
  std::uint64_t hash = static_cast<std::uint64_t>(source) * 0x9E3779B97F4A7C15ULL;
  hash = (hash ^ static_cast<std::uint64_t>(destination)) * 0x9E3779B97F4A7C15ULL;
  hash = (hash ^ static_cast<std::uint64_t>(tag)) * 0x9E3779B97F4A7C15ULL;
  return hash ^ hash >> 32U;
}

GraphMeetings::GraphMeetings(const ImportedRun& run)
    : run_(run), world_(run.graph_of_rank.size()), groups_(run.groups.size() + 1) {
  std::iota(world_.begin(), world_.end(), 0);
}

const std::vector<int>& GraphMeetings::members(std::uint32_t group) const {
  return group == ImportedMessage::kWorld ? world_ : run_.groups[group];
}

std::string GraphMeetings::place(int rank, NodeId node) const {
  const ImportedGraph& graph = run_.graphs[run_.graph_of_rank[static_cast<std::size_t>(rank)]];
  return fmt::format("node {} '{}' of rank {}", graph.ids[node], graph.name(node), rank);
}

GraphMeetings::Group& GraphMeetings::group(std::uint32_t number, int rank, NodeId node) {
  Group& group = number == ImportedMessage::kWorld ? groups_.back() : groups_[number];
  if (!group.ranks.empty()) return group;
  group.ranks = members(number);
  std::sort(group.ranks.begin(), group.ranks.end());
  if (std::adjacent_find(group.ranks.begin(), group.ranks.end()) != group.ranks.end())
    throw GraphMismatch(place(rank, node) + ": its group has a rank twice");
  if (group.ranks.empty()) throw GraphMismatch(place(rank, node) + ": its group has no ranks");
  if (group.ranks.front() < 0 || group.ranks.back() >= run_.ranks())
    throw GraphMismatch(fmt::format("{}: its group has rank {}, the run has {} ranks",
                                    place(rank, node), group.ranks.back(), run_.ranks()));
  group.begun.resize(group.ranks.size());
  for (const int member : group.ranks) group.present += is_present(member) ? 1 : 0;
  return group;
}

std::uint32_t GraphMeetings::begin(const ImportedMessage& message, std::uint32_t needed) {
  std::uint32_t number = 0;
  if (unused_.empty()) {
    number = static_cast<std::uint32_t>(meetings_.size());
    meetings_.emplace_back();
  } else {
    number = unused_.back();
    unused_.pop_back();
  }
  GraphMeeting& meeting = meetings_[number];
  meeting.message = message;
  meeting.needed = needed;
  meeting.recorded = 0;
  meeting.from_file = false;
  meeting.open = true;
  return number;
}

void GraphMeetings::release(std::uint32_t meeting) {
  GraphMeeting& past = meetings_[meeting];
  past.slots.clear();
  past.ranks.clear();
  past.nodes.clear();
  past.open = false;
  unused_.push_back(meeting);
}

/// The collective that the rank comes to in its group.
std::uint32_t GraphMeetings::collective(int rank, NodeId node, const ImportedMessage& message) {
  Group& in = group(message.group, rank, node);
  const auto member = std::lower_bound(in.ranks.begin(), in.ranks.end(), rank);
  if (member == in.ranks.end() || *member != rank)
    throw GraphMismatch(place(rank, node) + ": the rank is no member of its group, " +
                        list_of_ranks(in.ranks));
  const std::uint64_t number = in.begun[static_cast<std::size_t>(member - in.ranks.begin())]++;
  if (number == in.first + in.open.size()) in.open.push_back(begin(message, in.present));
  const std::uint32_t meeting = in.open[number - in.first];
  // All have to come to it before any comes to the next, so the first is complete first.
  if (meetings_[meeting].ranks.size() + 1 == in.present) {
    in.open.pop_front();
    ++in.first;
  }
  return meeting;
}

/// The message that the rank sends or receives.
std::uint32_t GraphMeetings::message(int rank, NodeId node, const ImportedMessage& message) {
  const bool sends = graph(rank).nodes[node].kind == NodeKind::kSend;
  if (message.peer < 0 || message.peer >= run_.ranks())
    throw GraphMismatch(fmt::format("{}: is {} rank {}, the run has {} ranks", place(rank, node),
                                    sends ? "for" : "from", message.peer, run_.ranks()));
  const int source = sends ? rank : message.peer;
  const int destination = sends ? message.peer : rank;
  std::uint32_t number = 0;
  Route* route = nullptr;
  if (!is_present(message.peer)) {
    number = begin(message, 1);
  } else if (route = &routes_[{source, destination, message.tag}];
             !route->open.empty() && route->sends != sends) {
    number = route->open.front();
    route->open.pop_front();
  } else {
    number = begin(message, 2);
    route->sends = sends;
    route->open.push_back(number);
  }
  meetings_[number].source = source;
  meetings_[number].destination = destination;
  return number;
}

void GraphMeetings::compare(const GraphMeeting& meeting, int rank, NodeId node,
                            const ImportedMessage& message) const {
  const ImportedMessage& first = meeting.message;
  const auto refuse = [&](const std::string& what) {
    throw GraphMismatch(place(meeting.ranks.front(), meeting.nodes.front()) + " meets " +
                        place(rank, node) + ", but " + what);
  };
  if (first.kind != message.kind)
    refuse(fmt::format("one is {}, the other {}", to_string(first.kind), to_string(message.kind)));
  if (first.bytes.base() != message.bytes.base() && !may_differ(first.kind))
    refuse(fmt::format("one has {:.0f} B, the other {:.0f} B", first.bytes.base(),
                       message.bytes.base()));
  if (first.root != message.root)
    refuse(fmt::format("the root of one is member {} of the group, of the other {}", first.root,
                       message.root));
}

std::uint32_t GraphMeetings::arrive(int rank, NodeId node, std::uint32_t slot) {
  const ImportedGraph& of = graph(rank);
  const ImportedMessage& message = of.messages[of.nodes[node].work];
  const std::uint32_t number = of.nodes[node].kind == NodeKind::kCollective
                                   ? collective(rank, node, message)
                                   : this->message(rank, node, message);
  GraphMeeting& meeting = meetings_[number];
  if (!meeting.ranks.empty()) {
    compare(meeting, rank, node, message);
    meeting.message.bytes = std::max(meeting.message.bytes, message.bytes);
  }
  if (message.recorded > 0)
    meeting.recorded =
        meeting.recorded == 0 ? message.recorded : std::min(meeting.recorded, message.recorded);
  meeting.slots.push_back(slot);
  meeting.ranks.push_back(rank);
  meeting.nodes.push_back(node);
  return number;
}

/// Ranks that a meeting waits for.
std::string GraphMeetings::missing(const GraphMeeting& meeting) const {
  if (meeting.message.kind == TransferKind::kSendReceive)
    return "rank " + std::to_string(meeting.message.peer);
  std::vector<int> missing;
  for (const int member : members(meeting.message.group)) {
    if (is_present(member) &&
        std::find(meeting.ranks.begin(), meeting.ranks.end(), member) == meeting.ranks.end())
      missing.push_back(member);
  }
  return list_of_ranks(missing);
}

std::string GraphMeetings::waiting() const {
  std::string text;
  std::size_t named = 0, all = 0;
  for (const GraphMeeting& meeting : meetings_) {
    if (!meeting.open || meeting.complete()) continue;
    for (std::size_t i = 0; i < meeting.ranks.size(); ++i) {
      if (++all > kMostMeetingsNamed) continue;
      ++named;
      text += fmt::format("\n  {}, {}, waits for {}", place(meeting.ranks[i], meeting.nodes[i]),
                          to_string(meeting.message.kind), missing(meeting));
    }
  }
  if (all > named) text += "\n  and " + std::to_string(all - named) + " more";
  return text;
}

}  // namespace orrery
