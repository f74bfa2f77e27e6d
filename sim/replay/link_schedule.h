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

/// Applies the link events of a run to its network, and keeps account of what links carried: of
/// rerouted transfers before, and of the capacities that links had.
class LinkSchedule {
 public:
  /// @throws std::logic_error for an event on an unknown link or transfer.
  explicit LinkSchedule(const Costs& costs);

  /// kNever after the last event.
  Picoseconds next_time() const {
    return next_ < order_.size() ? costs_.link_events[order_[next_]].time : kNever;
  }
  /// Applies the events that are due.
  /// @param ended tells how often each transfer has ended, `flights` its flights in the network
  template <class Ended, class Flights>
  void apply(Picoseconds now, FlowNetwork& network, const Ended& ended, const Flights& flights) {
    if (next_time() > now) return;
    const auto done = [&](std::uint32_t transfer) {
      double times = ended(transfer);
      for (const std::uint32_t flight : flights(transfer)) times += network.part_done(flight, now);
      return times;
    };
    count_busy(network, totals(done));
    for (; next_time() <= now; ++next_) {
      const LinkEvent& event = costs_.link_events[order_[next_]];
      network.set_capacity(event.link, event.capacity);
      for (const LinkEvent::Reroute& reroute : event.reroutes) {
        change_route(reroute, done(reroute.transfer));
        for (const std::uint32_t flight : flights(reroute.transfer))
          network.reroute({flight, reroute.loads, reroute.image}, now);
      }
    }
  }
  /// The way that a transfer takes instead of that of its costs; null: it has that.
  const LinkEvent::Reroute* way_of(std::uint32_t transfer) const;

  /// LinkLoad::bytes and LinkLoad::payload by link.
  struct Totals {
    std::vector<double> bytes, payload;
  };
  /// Totals of all transfers, each done `done(transfer)` times, parts of one included.
  template <class Done>
  Totals totals(const Done& done) const {
    Totals totals{std::vector<double>(costs_.links.size()),
                  std::vector<double>(costs_.links.size())};
    for (std::uint32_t t = 0; t < costs_.transfers.size(); ++t) add(t, done(t), totals);
    return totals;
  }
  /// Seconds that each link took for what it has carried, at the capacities that it had.
  std::vector<double> busy(const Totals& totals, const FlowNetwork& network) const;

  /// When the last event on a link was applied; 0: none was.
  Picoseconds last_change(std::uint32_t link) const;

 private:
  /// The way of a transfer after it changed.
  struct Way {
    const LinkEvent::Reroute* now = nullptr;
    double from = 0;               ///< transfers done before, the part of one included
    std::vector<LinkLoad> before;  ///< carried by then
  };
  void add(std::uint32_t transfer, double done, Totals& totals) const;
  void count_busy(const FlowNetwork& network, const Totals& totals);
  void change_route(const LinkEvent::Reroute& reroute, double done);

  const Costs& costs_;
  std::vector<std::size_t> order_;     ///< indices of costs_.link_events, by time
  std::size_t next_ = 0;               ///< index in order_ of the next event
  std::map<std::uint32_t, Way> ways_;  ///< ways of rerouted transfers
  // By link, up to the last event; empty before the first.
  std::vector<double> busy_s_, counted_bytes_;
};

}  // namespace orrery
