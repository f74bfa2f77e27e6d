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

void LinkSchedule::change_route(const LinkEvent::Reroute& reroute, double part_done,
                                double completed) {
  Way& way =
      ways_.try_emplace(reroute.transfer, Way{&costs_.transfers[reroute.transfer].loads, 0, {}})
          .first->second;
  const double done = completed + part_done;
  for (const LinkLoad& load : *way.loads) {
    way.before.push_back({load.link, load.bytes * (done - way.from)});
  }
  way.loads = &reroute.loads;
  way.from = done;
}

void LinkSchedule::add_bytes(std::uint32_t transfer, double completed,
                             std::vector<double>& by_link) const {
  const auto found = ways_.find(transfer);
  const bool rerouted = found != ways_.end();
  const auto& loads = rerouted ? *found->second.loads : costs_.transfers[transfer].loads;
  const double times = completed - (rerouted ? found->second.from : 0);
  for (const LinkLoad& load : loads) {
    by_link[load.link] += load.bytes * times;
  }
  if (rerouted) {
    for (const LinkLoad& load : found->second.before) {
      by_link[load.link] += load.bytes;
    }
  }
}

}  // namespace orrery
