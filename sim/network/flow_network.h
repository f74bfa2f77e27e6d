// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/graph/costs.h"
#include "sim/kernel/deadline_heap.h"
#include "sim/kernel/event_queue.h"
#include "sim/units/time.h"
#include "sim/units/units.h"

namespace orrery {

/// Links shared by the transfers in flight, as fluids, max-min fairly.
///
/// A transfer that carries `x` bytes/s on its most loaded link carries x * load / (highest load) on
/// each of its links. Rates rise together until a link is full; the transfers on it stay there and
/// the others rise on (progressive filling: Bertsekas and Gallager, Data Networks, 6.5.2). So each
/// transfer counts as one flow on its most loaded link, and has a full link on which no other
/// transfer is faster.
///
/// Rates change only for the transfers that are connected, over shared links, to one that started
/// or ended. Bytes left are brought up to date only when a rate changes. Ends are rounded to the
/// nearest picosecond.
class FlowNetwork {
 public:
  enum class Links { kMerged, kSeparate };

  /// `kMerged` treats links that carry the same loads as one, with the least of their capacities:
  /// the others never fill first. It changes no rate; `kSeparate` is there to prove that.
  /// @throws std::logic_error for an unknown link, a load that is negative or not finite, or a
  /// loaded link whose capacity is not positive and finite.
  explicit FlowNetwork(const Costs& costs, Links links = Links::kMerged);

  /// Whether the transfer has bytes to carry. One without must not be started.
  bool carries_bytes(std::uint32_t transfer) const {
    return first_share_[transfer] != first_share_[transfer + 1];
  }

  /// Puts a transfer in flight. Rates and next_end() are stale until settle().
  void start(std::uint32_t transfer, Picoseconds now);
  /// Shares the links anew among the transfers that starts and ends since the last call have
  /// touched.
  void settle(Picoseconds now);

  /// When the next transfer ends; kNever with none in flight.
  Picoseconds next_end() const { return ends_.empty() ? kNever : ends_.top_key(); }
  /// Ends the transfer that next_end() is about (the lowest id of several) and returns its id.
  std::uint32_t end_next();

  /// Rate on its most loaded link; 0 when not in flight.
  BytesPerSecond rate(std::uint32_t transfer) const {
    return BytesPerSecond(flows_[transfer].rate);
  }
  /// Bytes left on its most loaded link at `now`.
  Bytes remaining(std::uint32_t transfer, Picoseconds now) const;
  /// Links after merging.
  std::size_t link_count() const { return links_.size(); }

 private:
  /// What a transfer takes of a link class per byte/s of its rate, and where it is in that class's
  /// list.
  struct Share {
    std::uint32_t link;
    std::uint32_t slot;  ///< in Link::flows while in flight
    double weight;
  };
  struct Member {
    std::uint32_t transfer;
    std::uint32_t share;
  };
  struct Link {
    double capacity = 0;  ///< bytes/s
    std::vector<Member> flows;
    bool changed = false;  ///< in changed_
    bool visited = false;  ///< during settle()
    // During settle(): what is left for, and wanted by, the transfers without a rate yet.
    double free = 0, weight = 0, first_weight = 0;
    std::size_t waiting = 0;
  };
  struct Flow {
    double size = 0;       ///< bytes on the most loaded link
    double alone = 0;      ///< rate without competition
    double remaining = 0;  ///< at `since`
    double rate = 0;
    Picoseconds since = 0;
    bool visited = false;  ///< during settle(): part of the region, without a rate yet
  };

  void add_transfers(const Costs& costs, const std::vector<std::uint32_t>& class_of_link);
  void mark_changed(std::uint32_t link);
  void collect_region();
  void fill_region(Picoseconds now);
  double waiting_weight(const Link& link) const;
  void fix_flows_of(std::uint32_t link, double level, Picoseconds now);
  void set_rate(std::uint32_t transfer, double rate, Picoseconds now);

  std::vector<Link> links_;
  std::vector<Flow> flows_;                 ///< by transfer
  std::vector<std::uint32_t> first_share_;  ///< by transfer, and the end: offsets in shares_
  std::vector<Share> shares_;
  DeadlineHeap<Picoseconds> ends_;  ///< by transfer
  DeadlineHeap<double> levels_;     ///< by link: the rate at which it fills
  std::vector<std::uint32_t> changed_;
  std::vector<std::uint32_t> region_;
};

}  // namespace orrery
