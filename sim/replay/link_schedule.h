// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/graph/costs.h"
#include "sim/network/flow_network.h"
#include "sim/units/time.h"

namespace orrery {

/// Applies the link events of a run to its network, and keeps account of what rerouted transfers
/// carried before.
class LinkSchedule {
 public:
  /// @throws std::logic_error for an event on an unknown link or transfer.
  explicit LinkSchedule(const Costs& costs);

  /// kNever after the last event.
  Picoseconds next_time() const {
    return next_ < order_.size() ? costs_.link_events[order_[next_]].time : kNever;
  }
  /// Applies the events that are due; `completed` is how often each transfer has ended.
  template <class Completed>
  void apply(Picoseconds now, FlowNetwork& network, const Completed& completed) {
    for (; next_time() <= now; ++next_) {
      const LinkEvent& event = costs_.link_events[order_[next_]];
      network.set_capacity(event.link, event.capacity);
      for (const LinkEvent::Reroute& reroute : event.reroutes) {
        change_route(reroute, network.part_done(reroute.transfer, now),
                     static_cast<double>(completed(reroute.transfer)));
        network.reroute(reroute.transfer, reroute.loads, now);
      }
    }
  }

  /// Adds what a transfer has put on each link that has ended `completed` times.
  void add_bytes(std::uint32_t transfer, double completed, std::vector<double>& by_link) const;

 private:
  /// The way of a transfer after it changed.
  struct Way {
    const std::vector<LinkLoad>* loads;
    double from = 0;               ///< transfers done before, the part of one included
    std::vector<LinkLoad> before;  ///< bytes carried by then
  };
  void change_route(const LinkEvent::Reroute& reroute, double part_done, double completed);

  const Costs& costs_;
  std::vector<std::size_t> order_;     ///< of costs_.link_events, by time
  std::size_t next_ = 0;               ///< in order_
  std::map<std::uint32_t, Way> ways_;  ///< of rerouted transfers
};

}  // namespace orrery
