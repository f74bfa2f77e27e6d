// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/events/deadline_heap.h"
#include "sim/events/event_queue.h"
#include "sim/graph/costs.h"
#include "sim/network/fair_share.h"
#include "sim/units/time.h"
#include "sim/units/units.h"

namespace orrery {

/// Links shared by the transfers in flight, as fluids, max-min fairly.
///
/// A transfer that carries `x` bytes/s on its most loaded link carries x * load / (highest load) on
/// each of its links, or x * load / TransferCost::image where it stands for several images, which
/// are a flow each. Rates rise together until a link is full; the transfers on it stay there and
/// the others rise on (progressive filling: Bertsekas and Gallager, Data Networks, 6.5.2). So each
/// transfer counts as one flow on its most loaded link, and has a full link on which no other
/// transfer is faster.
///
/// A limit on the rate of a transfer is a link of its own. Bytes left are brought up to date only
/// when a rate changes. Ends are rounded to the nearest picosecond.
class FlowNetwork {
 public:
  enum class Links { kMerged, kSeparate };
  using Resolve = FairShare::Resolve;

  /// `kMerged` treats links that carry the same loads as one, with the least of their capacities:
  /// the others never fill first. It changes no rate; with `kSeparate` transfers can be added and
  /// rerouted.
  /// @throws std::logic_error for an unknown link, a load that is negative or not finite, a loaded
  /// link whose capacity is not positive and finite, or a negative rate limit.
  explicit FlowNetwork(const Costs& costs, Links links = Links::kMerged,
                       Resolve resolve = Resolve::kLocal);

  /// One more transfer, over separate links; ids of removed ones are used again.
  /// @throws std::logic_error as the constructor does, and with merged links.
  std::uint32_t add(const TransferCost& cost);
  /// Forgets a transfer that is not in flight.
  void remove(std::uint32_t transfer);

  /// Whether the transfer has bytes to carry. One without must not be started.
  bool carries_bytes(std::uint32_t transfer) const { return flows_[transfer].shares > 0; }

  /// Puts a transfer in flight, with `part` of its bytes. Rates and next_end() are stale until
  /// settle(). A transfer that has ended may start again.
  void start(std::uint32_t transfer, Picoseconds now, double part = 1);
  /// Shares the links anew among the transfers that are concerned by what has changed since the
  /// last call.
  void settle(Picoseconds now);

  /// When the next transfer ends; kNever with none in flight, or none that moves.
  Picoseconds next_end() const { return ends_.empty() ? kNever : ends_.top_key(); }
  /// Ends the transfer that next_end() is about (the lowest id of several) and returns its id.
  std::uint32_t end_next();

  /// From the next settle() on the link carries `capacity`; 0: it is down, and what crosses it
  /// stands still. Bytes carried before stay carried.
  /// @throws std::logic_error for an unknown link, or a capacity that is negative or not finite.
  void set_capacity(std::uint32_t link, BytesPerSecond capacity);
  BytesPerSecond capacity(std::uint32_t link) const { return BytesPerSecond(capacities_[link]); }
  /// The transfer `route.transfer` goes on over other links; the part that was left at `now` is
  /// left to do. Keeps its rate limit.
  /// @throws std::logic_error as add() does, and if bytes are left but the new loads have none.
  void reroute(const LinkEvent::Reroute& route, Picoseconds now);

  /// Rate on its most loaded link; 0 when not in flight.
  BytesPerSecond rate(std::uint32_t transfer) const {
    return BytesPerSecond(sharing_.rate(transfer));
  }
  /// Bytes left on its most loaded link at `now`.
  Bytes remaining(std::uint32_t transfer, Picoseconds now) const;
  /// Part of a transfer in flight that is done at `now`; 0 when not in flight.
  double part_done(std::uint32_t transfer, Picoseconds now) const;
  std::size_t in_flight() const { return in_flight_; }
  /// A transfer that stands still, and a link of it that is down.
  struct Stall {
    std::uint32_t transfer;
    std::uint32_t link;
  };
  /// The first transfer that a link holds up which is down; of a settled network.
  std::optional<Stall> stall() const;
  /// Links after merging, without those of rate limits.
  std::size_t link_count() const { return shared_links_; }
  /// How far the rates are from max-min fair; see FairShare::audit(). Of a settled network.
  double audit() const { return sharing_.audit(); }
  /// Rates computed so far, repeated ones included: the work of the solver.
  std::uint64_t rates_computed() const { return sharing_.rates_computed(); }

 private:
  struct Flow {
    double size = 0;       ///< bytes on the most loaded link, of one image
    double remaining = 0;  ///< bytes left at `since`
    Picoseconds since = 0;
    double alone = 0;               ///< rate without competition
    std::uint32_t alone_link = 0;   ///< what then limits it
    std::uint32_t alone_epoch = 0;  ///< epoch of the capacities behind `alone`
    std::uint32_t shares = 0;
    std::uint32_t limit_link = kNoLink;  ///< private link that stands for a limit of the flow
    bool in_flight = false;
  };

  void merge_links(const std::vector<std::uint32_t>& class_of_link);
  std::uint32_t add_flow();
  void set_route(std::uint32_t transfer, const LinkLoads& loads, double image);
  void set_limit(std::uint32_t transfer, BytesPerSecond limit);
  void attach(std::uint32_t transfer, Picoseconds now);
  void find_rate_alone(std::uint32_t transfer);
  static Picoseconds end_of(const Flow& flow, double rate);
  static double left(const Flow& flow, double rate, Picoseconds now);

  std::vector<double> capacities_;           ///< capacities by link, before merging
  std::vector<std::uint32_t> link_of_;       ///< link after merging, by link before
  std::vector<Flow> flows_;                  ///< flows by transfer
  std::vector<std::uint32_t> unused_flows_;  ///< flows of removed transfers
  std::vector<std::uint32_t> unused_links_;  ///< private ones of removed transfers
  std::size_t shared_links_ = 0;
  std::size_t in_flight_ = 0;
  std::uint32_t epoch_ = 1;  ///< epoch of the capacities
  bool merged_;
  FairShare sharing_;
  DeadlineHeap<Picoseconds> ends_;  ///< ends by transfer
  std::vector<DeadlineHeap<Picoseconds>::Entry> moved_ends_;
  // Merged links: the call of set_route() in which each was last met.
  std::vector<std::uint64_t> met_in_;
  std::uint64_t routings_ = 0;
  std::vector<LinkWeight> route_;
};

}  // namespace orrery
