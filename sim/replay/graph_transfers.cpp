// SPDX-License-Identifier: Apache-2.0
// Transfers of imported graphs: what carries them once all who take part are there.
#include "sim/replay/graph_replayer.h"

namespace orrery {

bool GraphReplayer::takes_recorded(const GraphMeeting& meeting) const {
  if (nodes_.transfers == nullptr) return true;
  if (meeting.recorded == 0) return false;
  return nodes_.recorded_transfers || !is_sized(meeting.message);
}

std::uint32_t GraphReplayer::transfer_of(const GraphMeeting& meeting) const {
  if (nodes_.transfers == nullptr) return ImportedTransfers::kNone;
  const ImportedMessage& message = meeting.message;
  return message.kind == TransferKind::kSendReceive
             ? nodes_.transfers->of_message(message.bytes, meeting.source, meeting.destination)
             : nodes_.transfers->of_collective(message);
}

/// A flight of the transfer that is not under way, or one more.
std::uint32_t GraphReplayer::take_flight(std::uint32_t transfer, Picoseconds now) {
  std::vector<std::uint32_t>& grounded = grounded_[transfer];
  if (!grounded.empty()) {
    const std::uint32_t flight = grounded.back();
    grounded.pop_back();
    return flight;
  }
  const std::uint32_t flight = network_.add(costs_.transfers[transfer]);
  if (const LinkEvent::Reroute* way = link_schedule_.way_of(transfer))
    network_.reroute({flight, way->loads, way->image}, now);
  flights_.push_back({transfer, 0});
  flights_of_[transfer].push_back(flight);
  return flight;
}

/// The last has come.
void GraphReplayer::begin_meeting(std::uint32_t number, Picoseconds now) {
  GraphMeeting& meeting = meetings_.at(number);
  meeting.started = now;
  for (const int r : meeting.ranks) {
    Rank& rank = ranks_[static_cast<std::size_t>(r)];
    settle(rank, now);
    --rank.running[static_cast<std::size_t>(Part::kWaiting)];
    ++rank.running[static_cast<std::size_t>(Part::kInFlight)];
  }
  meeting.from_file = takes_recorded(meeting);
  const std::uint32_t transfer =
      meeting.from_file ? ImportedTransfers::kNone : transfer_of(meeting);
  if (transfer == ImportedTransfers::kNone) {
    const Picoseconds recorded = meeting.from_file ? meeting.recorded : 0;
    const Picoseconds time = scaled_time(recorded, nodes_.recorded_scale);
    queue_.push({checked_add(now, time), number, kTransferEnd, 0});
    return;
  }
  const std::uint32_t flight = take_flight(transfer, now);
  flights_[flight].meeting = number;
  begin_flight(flight, costs_.transfers[transfer].latency, now);
}

void GraphReplayer::flight_ended(std::uint32_t flight, Picoseconds now) {
  const std::uint32_t transfer = flights_[flight].transfer;
  grounded_[transfer].push_back(flight);
  ended_[transfer] += 1;
  end_meeting(flights_[flight].meeting, now);
}

void GraphReplayer::load_devices(std::uint32_t flight, Picoseconds now, bool begins) {
  const DeviceLoad& load = costs_.transfers[flights_[flight].transfer].device;
  if (load.none()) return;
  for (const int rank : meetings_.at(flights_[flight].meeting).ranks)
    load_device(static_cast<std::uint32_t>(rank), load, now, begins);
}

std::string GraphReplayer::name_of(std::uint32_t flight) const {
  const GraphMeeting& meeting = meetings_.at(flights_[flight].meeting);
  return std::string(to_string(meeting.message.kind)) + " of rank " +
         std::to_string(meeting.ranks.front());
}

/// Also of transfers that take the recorded time: their bytes are carried all the same.
void GraphReplayer::observe(const GraphMeeting& meeting, Picoseconds now) const {
  const std::uint32_t transfer = transfer_of(meeting);
  if (transfer == ImportedTransfers::kNone) return;
  for (const int rank : meeting.ranks)
    observer_->transfer_ran(static_cast<std::uint32_t>(rank), transfer, meeting.started, now);
}

void GraphReplayer::end_meeting(std::uint32_t number, Picoseconds now) {
  GraphMeeting& meeting = meetings_.at(number);
  const Picoseconds time = now - meeting.started;
  if (observer_ != nullptr) observe(meeting, now);
  chain_.met(meeting.ranks, meeting.nodes, time);
  for (std::size_t i = 0; i < meeting.ranks.size(); ++i) {
    TransferTime& of = transfers_[static_cast<std::size_t>(meeting.ranks[i])]
                                 [static_cast<std::size_t>(meeting.message.kind)];
    ++of.count;
    of.time += time;
    of.recorded += meeting.from_file ? time : 0;
    of.bytes += meeting.message.bytes.base();
    finish(meeting.slots[i], now);
  }
  meetings_.release(number);
}

}  // namespace orrery
