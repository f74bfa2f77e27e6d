// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace orrery {

/// No link: nothing limits the flow yet.
inline constexpr std::uint32_t kNoLink = ~std::uint32_t{0};

/// What a flow takes of a link per byte/s of its rate.
struct LinkWeight {
  std::uint32_t link = 0;
  double weight = 0;
};

/// Max-min fair rates of flows over links with capacities, kept up to date as flows come and go and
/// capacities change. Knows no time and no bytes: that is FlowNetwork.
///
/// After a change only the flows limited by changed links are solved again, the others being fixed;
/// the solution stands unless it shows that a fixed flow is concerned after all (see
/// grow_where_wrong()), which then joins. Where too many join, all flows are solved that are
/// connected to the change and are not slower than the lowest rate that it can affect: below that
/// rate, filling runs as before.
class FairShare {
 public:
  /// `kComponent` solves everything connected to a change: the reference for `kLocal`.
  enum class Resolve { kLocal, kComponent };

  explicit FairShare(Resolve resolve) : resolve_(resolve) {}

  std::uint32_t add_link(double capacity);
  std::uint32_t add_flow();
  /// Tells what a flow that is not active loads, each link once.
  void set_route(std::uint32_t flow, const std::vector<LinkWeight>& route);

  double capacity(std::uint32_t link) const { return links_[link].capacity; }
  void set_capacity(std::uint32_t link, double capacity);

  /// The flow takes part from the next solve() on. Returns whether it has its links to itself.
  bool activate(std::uint32_t flow);
  void deactivate(std::uint32_t flow);
  /// The rate of a flow that has its links to itself, without a solve().
  void set_rate(std::uint32_t flow, double rate, std::uint32_t bottleneck) {
    flows_[flow].rate = rate;
    flows_[flow].bottleneck = bottleneck;
  }

  struct Change {
    std::uint32_t flow;
    double before;
    double rate;
  };
  /// Shares the links anew; the flows whose rate changed, until the next call.
  const std::vector<Change>& solve();

  double rate(std::uint32_t flow) const { return flows_[flow].rate; }
  /// The link that limits the flow; kNoLink before it has a rate.
  std::uint32_t bottleneck(std::uint32_t flow) const { return flows_[flow].bottleneck; }
  /// Calls visit(link, weight) for each link of a flow.
  template <class Visit>
  void for_each_link(std::uint32_t flow, const Visit& visit) const {
    for (std::uint32_t i = flows_[flow].first; i < flows_[flow].end; ++i) {
      visit(shares_[i].link, shares_[i].weight);
    }
  }

  /// How far the rates are from the definition of max-min fairness: that no link carries more than
  /// its capacity, and every active flow has a full link on which no other flow is faster. The
  /// worst relative violation; 0 is perfect.
  double audit() const;
  std::uint64_t rates_computed() const { return rates_computed_; }

 private:
  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  /// Relative difference of rates and sums that is put down to rounding.
  static constexpr double kTolerance = 1e-12;

  /// A flow on a link.
  struct Member {
    std::uint32_t flow;
    std::uint32_t share;
    double weight;
  };
  /// A link of a flow.
  struct Share {
    std::uint32_t link;
    std::uint32_t slot;  ///< index in Link::members while active
    double weight;
  };
  struct Link {
    double capacity = 0;
    std::vector<Member> members;
    bool changed = false;  ///< the link is in changed_
  };
  /// A link during solve().
  struct Fill {
    double free = 0;    ///< left for the flows that still rise
    double weight = 0;  ///< weight of the flows that still rise
    double first_weight = 0;
    double level = kUnlimited;  ///< the rate at which it was full
    std::uint32_t waiting = 0;  ///< flows that still rise
    bool touched = false;       ///< the link is in touched_
    bool grown = false;         ///< the flows that it limits are in rising_
    bool overloaded = false;    ///< flows that are fixed take more than it has
  };
  enum class Phase : std::uint8_t { kFixed, kRising, kSolved };
  struct Flow {
    double rate = 0;
    double trial_rate = 0;  ///< during solve()
    std::uint32_t bottleneck = kNoLink;
    std::uint32_t trial_bottleneck = kNoLink;
    std::uint32_t first = 0, end = 0;  ///< first index in shares_, and the one behind the last
  };
  struct Candidate {
    double level;
    std::uint32_t link;
    bool operator<(const Candidate& o) const {
      return level < o.level || (level == o.level && link < o.link);
    }
  };

  void mark_changed(std::uint32_t link);
  // Which flows to solve (fair_share_region.cpp).
  bool solve_locally();
  void grow(std::uint32_t link);
  bool grow_where_wrong();
  void solve_connected(double floor);
  void collect_members(std::uint32_t link, double floor);
  double lowest_rate_concerned() const;
  double lowest_rate_concerned(const Link& link, std::uint32_t index) const;
  void rise(std::uint32_t flow);
  void touch(std::uint32_t link);
  void forget_region();
  // What rates they get (fair_share.cpp).
  void fill();
  void sum_up(std::uint32_t link);
  double rising_weight(const Link& link) const;
  void sink(std::size_t at, Candidate candidate);
  void fix_members(std::uint32_t full, double level);
  void commit();

  Resolve resolve_;
  std::vector<Link> links_;
  std::vector<Fill> fills_;  ///< state of solve() by link
  std::vector<Flow> flows_;
  std::vector<Phase> phases_;  ///< phases by flow; apart from flows_ because they are read most
  std::vector<Share> shares_;
  std::vector<std::vector<std::uint32_t>> unused_shares_;  ///< firsts of old routes by their number
  std::vector<std::uint32_t> changed_;
  std::vector<std::uint32_t> touched_;  ///< links of rising_ flows
  std::vector<std::uint32_t> rising_;
  std::vector<std::uint32_t> wrong_;
  std::vector<Candidate> candidates_;  ///< heap of links by the rate at which they are full
  std::vector<Change> changes_;
  std::size_t active_ = 0;
  std::size_t loaded_links_ = 0;      ///< links with members
  std::uint32_t local_failures_ = 0;  ///< tries in a row that failed
  std::uint32_t local_pause_ = 0;     ///< solves without a local try
  std::uint64_t rates_computed_ = 0;
};

}  // namespace orrery
