// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/replayer.h"

#include <algorithm>
#include <utility>

#include "sim/graph/topology.h"
#include "sim/results/table.h"
#include "sim/trace/timeline.h"

namespace orrery {
namespace {

/// Events between a prefetch and its use.
constexpr std::size_t kPrefetched = 8;

}  // namespace

/// Merged links are equal only as long as nothing is rerouted.
FlowNetwork idle_links(const Costs& costs) {
  return FlowNetwork(costs, costs.link_events.empty() ? FlowNetwork::Links::kMerged
                                                      : FlowNetwork::Links::kSeparate);
}

Replayer::Replayer(const Costs& costs, const ReplayOptions& options, FlowNetwork network)
    : costs_(costs),
      timeline_(options.timeline),
      observer_(options.observer),
      network_(std::move(network)),
      link_schedule_(costs) {}

Picoseconds Replayer::next_time() const {
  if (finished()) return kNever;  // whatever happens to the links later
  return std::min({queue_.top_time(), network_.next_end(), link_schedule_.next_time()});
}

void Replayer::execute(Picoseconds now) {
  do {
    while (network_.next_end() <= now) {
      ++events_;
      end_flight(network_.end_next(), now);
    }
    link_schedule_.apply(
        now, network_, [this](std::uint32_t transfer) { return ended(transfer); },
        [this](std::uint32_t transfer) { return flights_of(transfer); });
    while (queue_.top_time() <= now) {
      const Event event = queue_.pop();
      if (const Event* later = queue_.due(kPrefetched)) prefetch(*later);
      if (event.kind == kLatencyEnd) {
        ++events_;
        begin_bytes(event.target, now);
      } else {
        event_due(event);
      }
    }
    start_ready(now);
    // Once for all that starts and ends at this time.
    network_.settle(now);
  } while (next_time() <= now);
}

void Replayer::begin_flight(std::uint32_t flight, Picoseconds latency, Picoseconds now) {
  if (sharing_) load_devices(flight, now, true);
  // Without latency too: then all that starts at this time enters the network together.
  queue_.push({checked_add(now, latency), flight, kLatencyEnd, 0});
}

void Replayer::begin_bytes(std::uint32_t flight, Picoseconds now) {
  if (network_.carries_bytes(flight)) {
    network_.start(flight, now);
  } else {
    end_flight(flight, now);
  }
}

void Replayer::end_flight(std::uint32_t flight, Picoseconds now) {
  if (sharing_) load_devices(flight, now, false);
  flight_ended(flight, now);
}

void Replayer::load_device(std::uint32_t actor, const DeviceLoad& load, Picoseconds now,
                           bool begins) {
  sharing_->load(actor, load, begins, now);
  if (timeline_ == nullptr) return;
  const DeviceLoad& all = sharing_->load_of(actor);
  timeline_->counter(actor, "SMs taken by transfers", now, static_cast<double>(all.units));
  timeline_->counter(actor, "GB/s of memory taken by transfers", now,
                     static_cast<double>(all.memory) / 1e9);
}

std::string Replayer::stall_report(const Topology* topology) const {
  const auto stall = network_.stall();
  if (!stall) return "";
  const Seconds since = to_seconds(link_schedule_.last_change(stall->link));
  return name_of(stall->transfer) + " stands still: link " +
         (topology != nullptr ? topology->bundle_name(stall->link) : std::to_string(stall->link)) +
         " is down from " + format_si(since.base(), "s") + " on, and the transfer has no other way";
}

void Replayer::add_links(ReplayResult& result) const {
  LinkSchedule::Totals totals =
      link_schedule_.totals([this](std::uint32_t transfer) { return ended(transfer); });
  result.link_busy_s = link_schedule_.busy(totals, network_);
  result.link_bytes = std::move(totals.bytes);
  result.link_payload = std::move(totals.payload);
}

}  // namespace orrery
