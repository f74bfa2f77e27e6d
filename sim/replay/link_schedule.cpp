// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/link_schedule.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace orrery {

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

}  // namespace orrery
