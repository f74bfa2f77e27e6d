// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/replayer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "sim/graph/topology.h"
#include "sim/results/table.h"
#include "sim/trace/timeline.h"

namespace orrery {
namespace {

/// Events between a prefetch and its use.
constexpr std::size_t kPrefetched = 8;

}  // namespace

LinkSchedule::LinkSchedule(const Costs& costs) : costs_(costs), order_(costs.link_events.size()) {
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::stable_sort(order_.begin(), order_.end(), [&costs](std::size_t a, std::size_t b) {
    return costs.link_events[a].time < costs.link_events[b].time;
  });
  for (const LinkEvent& event : costs.link_events) {
    if (event.link >= costs.links.size()) {
      throw std::logic_error("an event on an unknown link");
    }
    for (const LinkEvent::Reroute& reroute : event.reroutes) {
      if (reroute.transfer >= costs.transfers.size()) {
        throw std::logic_error("an unknown transfer is rerouted");
      }
    }
  }
}

void LinkSchedule::change_route(const LinkEvent::Reroute& reroute, double done) {
  const auto [known, is_first] = ways_.try_emplace(reroute.transfer);
  Way& way = known->second;
  const LinkLoads& before = is_first ? costs_.transfers[reroute.transfer].loads : way.now->loads;
  for (const LinkLoad& load : before) {
    const double times = done - way.from;
    way.before.push_back({load.link, load.bytes * times, load.payload * times});
  }
  way.now = &reroute;
  way.from = done;
}

const LinkEvent::Reroute* LinkSchedule::way_of(std::uint32_t transfer) const {
  const auto known = ways_.find(transfer);
  return known == ways_.end() ? nullptr : known->second.now;
}

Picoseconds LinkSchedule::last_change(std::uint32_t link) const {
  Picoseconds last = 0;
  for (std::size_t i = 0; i < next_; ++i) {
    const LinkEvent& event = costs_.link_events[order_[i]];
    if (event.link == link) last = event.time;
  }
  return last;
}

void LinkSchedule::add(std::uint32_t transfer, double done, Totals& totals) const {
  const auto found = ways_.find(transfer);
  const bool rerouted = found != ways_.end();
  const auto& loads = rerouted ? found->second.now->loads : costs_.transfers[transfer].loads;
  const double times = done - (rerouted ? found->second.from : 0);
  for (const LinkLoad& load : loads) {
    totals.bytes[load.link] += load.bytes * times;
    totals.payload[load.link] += load.payload * times;
  }
  if (!rerouted) return;
  for (const LinkLoad& load : found->second.before) {
    totals.bytes[load.link] += load.bytes;
    totals.payload[load.link] += load.payload;
  }
}

std::vector<double> LinkSchedule::busy(const Totals& totals, const FlowNetwork& network) const {
  std::vector<double> busy = busy_s_;
  busy.resize(totals.bytes.size());
  for (std::uint32_t link = 0; link < busy.size(); ++link) {
    const double capacity = network.capacity(link).base();
    const double counted = counted_bytes_.empty() ? 0 : counted_bytes_[link];
    if (capacity > 0) busy[link] += (totals.bytes[link] - counted) / capacity;
  }
  return busy;
}

/// Before capacities change.
void LinkSchedule::count_busy(const FlowNetwork& network, const Totals& totals) {
  busy_s_ = busy(totals, network);
  counted_bytes_ = totals.bytes;
}

DeviceSharing::DeviceSharing(std::size_t actors, std::uint32_t streams, SlowdownModel& slowdowns,
                             EventQueue& queue, std::uint16_t ends_kind)
    : model_(slowdowns),
      queue_(queue),
      ends_kind_(ends_kind),
      streams_(streams),
      devices_(actors),
      work_(actors * streams),
      levels_{{DeviceLoad(), kFree}},
      slowdowns_(1) {}

void DeviceSharing::begin(std::uint32_t stream, KernelId kernel, Picoseconds begin,
                          Picoseconds duration) {
  devices_[stream / streams_].running |= bit(stream);
  follow(stream, kernel, begin, duration);
}

void DeviceSharing::follow(std::uint32_t stream, KernelId kernel, Picoseconds begin,
                           Picoseconds duration) {
  set(stream, kernel, begin, duration, work_[stream]);
}

void DeviceSharing::set(std::uint32_t stream, KernelId kernel, Picoseconds begin,
                        Picoseconds duration, Work& work) {
  work.kernel = kernel;
  work.begun = work.since = begin;
  work.duration = duration;
  work.left = static_cast<double>(duration);
  work.slowdown = slowdown(devices_[stream / streams_], kernel);
  work.end = end_of(work);
}

Picoseconds DeviceSharing::end_of(std::uint32_t stream, KernelId kernel, Picoseconds begin,
                                  Picoseconds duration) {
  Work work;
  set(stream, kernel, begin, duration, work);
  return work.end;
}

bool DeviceSharing::ends(const Event& event) {
  const Picoseconds end = work_[event.target].end;
  if (event.time < end) {
    queue_end(event.target, end);
    return false;
  }
  devices_[event.target / streams_].running &= ~bit(event.target);
  return true;
}

Picoseconds DeviceSharing::longer(std::uint32_t stream) const {
  const Work& work = work_[stream];
  return work.end - work.begun - work.duration;
}

void DeviceSharing::load(std::uint32_t actor, const DeviceLoad& load, bool begins,
                         Picoseconds now) {
  Device& device = devices_[actor];
  if (begins) {
    device.load += load;
  } else {
    device.load -= load;
  }
  device.level = device.load.none() ? kFree : kUnknown;
  for (std::uint32_t left = device.running; left != 0; left &= left - 1) {
    const std::uint32_t stream =
        actor * streams_ + static_cast<std::uint32_t>(std::countr_zero(left));
    change_speed(stream, slowdown(device, work_[stream].kernel), now);
  }
}

std::uint32_t DeviceSharing::level_of(const DeviceLoad& load) {
  const auto [entry, is_new] =
      levels_.try_emplace(load, static_cast<std::uint32_t>(slowdowns_.size()));
  if (is_new) slowdowns_.emplace_back();
  return entry->second;
}

double DeviceSharing::slowdown(Device& device, KernelId kernel) {
  if (device.level == kFree) return 1;
  if (device.level == kUnknown) device.level = level_of(device.load);
  std::vector<double>& factors = slowdowns_[device.level];
  if (factors.size() <= kernel) factors.resize(kernel + std::size_t{1});
  double& known = factors[kernel];
  if (known == 0) {
    known = model_.slowdown(kernel, device.load);
    if (!(known >= 1)) throw std::logic_error("a transfer that makes a kernel faster");
  }
  return known;
}

/// A kernel that was never slowed ends to the picosecond as it would alone, and none ends earlier.
Picoseconds DeviceSharing::end_of(const Work& work) {
  const Picoseconds alone = work.begun + work.duration;
  if (work.slowdown == 1 && work.since == work.begun) return alone;
  const double left = work.left * work.slowdown;
  if (!(left < static_cast<double>(kMaxTime))) {
    throw std::overflow_error("a kernel takes more than 2^63 ps beside transfers");
  }
  return std::max(alone, work.since + static_cast<Picoseconds>(std::llround(left)));
}

void DeviceSharing::change_speed(std::uint32_t stream, double slowdown, Picoseconds now) {
  Work& work = work_[stream];
  if (slowdown == work.slowdown) return;
  if (now > work.since) {
    work.left = std::max(0.0, work.left - static_cast<double>(now - work.since) / work.slowdown);
    work.since = now;
  }
  work.slowdown = slowdown;
  work.end = end_of(work);
  if (work.end < work.queued) replace_end(stream);
}

void DeviceSharing::replace_end(std::uint32_t stream) {
  ++work_[stream].event;
  queue_end(stream, work_[stream].end);
}

void DeviceSharing::queue_end(std::uint32_t stream, Picoseconds end) {
  Work& work = work_[stream];
  work.queued = end;
  queue_.push({end, stream, ends_kind_, work.event});
}

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
