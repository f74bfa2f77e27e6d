// SPDX-License-Identifier: Apache-2.0
#include "sim/network/flow_network.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/graph/costs.h"

namespace orrery {
namespace {

/// A class without links: nothing loads the link.
constexpr std::uint32_t kUnloaded = ~std::uint32_t{0};

/// Loads by link: ascending, each link once, without zeros.
/// @throws std::logic_error for an unknown link, or a load that is negative or not finite.
LinkLoads normalized_loads(const LinkLoads& loads, std::size_t links) {
  bool normal = true;
  std::uint64_t next = 0;  // the least link that may follow
  for (const LinkLoad& load : loads) {
    if (load.link >= links || !std::isfinite(load.bytes) || load.bytes < 0) {
      throw std::logic_error("a transfer has an unknown link or an impossible load");
    }
    normal = normal && load.bytes > 0 && load.link >= next;
    next = std::uint64_t{load.link} + 1;
  }
  if (normal) return loads;
  std::vector<LinkLoad> sorted;
  for (const LinkLoad& load : loads) {
    if (load.bytes > 0) sorted.push_back(load);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const LinkLoad& a, const LinkLoad& b) { return a.link < b.link; });
  LinkLoads result;
  for (std::size_t i = 0; i < sorted.size();) {
    LinkLoad load = sorted[i];
    for (++i; i < sorted.size() && sorted[i].link == load.link; ++i) load.bytes += sorted[i].bytes;
    result.push_back(load);
  }
  return result;
}

/// Groups links that every transfer loads alike; the class of each link, numbered by their first
/// links. A rack of 72 equal accelerators has a few classes where it has hundreds of links. Classes
/// are split by one transfer after the other: links stay together while each loads them alike.
std::vector<std::uint32_t> link_classes(const Costs& costs) {
  std::vector<std::uint32_t> classes(costs.links.size(), kUnloaded);
  std::uint32_t count = 0;
  for (const TransferCost& transfer : costs.transfers) {
    std::map<std::pair<std::uint32_t, double>, std::uint32_t> parts;  // of old class and bytes
    for (const LinkLoad& load : normalized_loads(transfer.loads, costs.links.size())) {
      std::uint32_t& own = classes[load.link];
      const auto [part, added] = parts.try_emplace({own, load.bytes}, count);
      if (added) ++count;
      own = part->second;
    }
  }
  std::vector<std::uint32_t> numbers(count, kUnloaded);
  std::uint32_t next = 0;
  for (std::uint32_t& own : classes) {
    if (own == kUnloaded) continue;
    if (numbers[own] == kUnloaded) numbers[own] = next++;
    own = numbers[own];
  }
  return classes;
}

constexpr double kSecondsPerPicosecond = 1e-12;

void check_limit(double limit) {
  if (!(limit >= 0) || !std::isfinite(limit)) {
    throw std::logic_error("a rate limit that is negative or not finite");
  }
}

}  // namespace

FlowNetwork::FlowNetwork(const Costs& costs, Links links, Resolve resolve)
    : merged_(links == Links::kMerged), sharing_(resolve) {
  capacities_.reserve(costs.links.size());
  for (const BytesPerSecond capacity : costs.links) {
    capacities_.push_back(capacity.base());
  }
  std::vector<std::uint32_t> class_of_link = link_classes(costs);
  for (std::size_t link = 0; link < class_of_link.size(); ++link) {
    const double capacity = capacities_[link];
    if (class_of_link[link] != kUnloaded && (!(capacity > 0) || !std::isfinite(capacity))) {
      throw std::logic_error("a transfer loads a link whose capacity is not positive and finite");
    }
  }
  if (links == Links::kSeparate) {
    std::iota(class_of_link.begin(), class_of_link.end(), 0);
  }
  merge_links(class_of_link);
  for (const TransferCost& transfer : costs.transfers) {
    const std::uint32_t id = add_flow();
    set_route(id, transfer.loads, transfer.image);
    set_limit(id, transfer.rate_limit);
  }
}

void FlowNetwork::merge_links(const std::vector<std::uint32_t>& class_of_link) {
  link_of_ = class_of_link;
  for (std::size_t link = 0; link < link_of_.size(); ++link) {
    const std::uint32_t merged = link_of_[link];
    if (merged == kUnloaded) {
      continue;
    }
    if (merged >= shared_links_) {
      shared_links_ = sharing_.add_link(capacities_[link]) + 1;
    } else if (capacities_[link] < sharing_.capacity(merged)) {
      sharing_.set_capacity(merged, capacities_[link]);
    }
  }
}

std::uint32_t FlowNetwork::add_flow() {
  if (!unused_flows_.empty()) {
    const std::uint32_t id = unused_flows_.back();
    unused_flows_.pop_back();
    return id;
  }
  flows_.emplace_back();
  ends_.extend(flows_.size());
  return sharing_.add_flow();
}

std::uint32_t FlowNetwork::add(const TransferCost& cost) {
  if (merged_) {
    throw std::logic_error("transfers can be added to separate links only");
  }
  const std::uint32_t id = add_flow();
  set_route(id, cost.loads, cost.image);
  set_limit(id, cost.rate_limit);
  return id;
}

void FlowNetwork::remove(std::uint32_t transfer) {
  Flow& flow = flows_[transfer];
  if (flow.in_flight) {
    throw std::logic_error("a transfer in flight is removed");
  }
  if (flow.limit_link != kNoLink) {
    unused_links_.push_back(flow.limit_link);
  }
  flow = Flow();
  unused_flows_.push_back(transfer);
}

/// Not in flight: what it loads, without the link of its limit.
void FlowNetwork::set_route(std::uint32_t transfer, const LinkLoads& given, double image) {
  Flow& flow = flows_[transfer];
  flow.size = 0;
  route_.clear();
  const LinkLoads loads = normalized_loads(given, link_of_.size());
  for (const LinkLoad& load : loads) {
    flow.size = std::max(flow.size, load.bytes);
  }
  if (image > 0) flow.size = image;
  ++routings_;
  for (const LinkLoad& load : loads) {
    const std::uint32_t link = link_of_[load.link];
    if (merged_) {
      if (met_in_.size() <= link) met_in_.resize(link + 1);
      if (std::exchange(met_in_[link], routings_) == routings_) continue;
    }
    route_.push_back({link, load.bytes / flow.size});
  }
  if (flow.limit_link != kNoLink && !route_.empty()) {
    route_.push_back({flow.limit_link, 1});
  }
  flow.shares = static_cast<std::uint32_t>(route_.size());
  flow.alone_epoch = 0;
  sharing_.set_route(transfer, route_);
}

/// After set_route(). A limit that is never reached needs no link.
void FlowNetwork::set_limit(std::uint32_t transfer, BytesPerSecond limit) {
  check_limit(limit.base());
  Flow& flow = flows_[transfer];
  if (limit.base() == 0 || flow.shares == 0) {
    return;
  }
  if (unused_links_.empty()) {
    flow.limit_link = sharing_.add_link(limit.base());
  } else {
    flow.limit_link = unused_links_.back();
    unused_links_.pop_back();
    sharing_.set_capacity(flow.limit_link, limit.base());
  }
  route_.push_back({flow.limit_link, 1});
  ++flow.shares;
  sharing_.set_route(transfer, route_);
}

void FlowNetwork::start(std::uint32_t transfer, Picoseconds now, double part) {
  Flow& flow = flows_[transfer];
  flow.remaining = flow.size * part;
  flow.in_flight = true;
  ++in_flight_;
  attach(transfer, now);
}

/// Puts a transfer on its links, as yet without a rate unless it has them to itself.
void FlowNetwork::attach(std::uint32_t transfer, Picoseconds now) {
  Flow& flow = flows_[transfer];
  flow.since = now;
  if (!sharing_.activate(transfer)) {
    return;
  }
  if (flow.alone_epoch != epoch_) {
    find_rate_alone(transfer);
  }
  sharing_.set_rate(transfer, flow.alone, flow.alone_link);
  if (flow.alone > 0) {
    ends_.set(transfer, end_of(flow, flow.alone));
  }
}

void FlowNetwork::find_rate_alone(std::uint32_t transfer) {
  Flow& flow = flows_[transfer];
  flow.alone = std::numeric_limits<double>::infinity();
  flow.alone_epoch = epoch_;
  sharing_.for_each_link(transfer, [&](std::uint32_t link, double weight) {
    const double rate = sharing_.capacity(link) / weight;
    if (rate < flow.alone) {
      flow.alone = rate;
      flow.alone_link = link;
    }
  });
}

std::uint32_t FlowNetwork::end_next() {
  const std::uint32_t transfer = ends_.top();
  ends_.erase(transfer);
  sharing_.deactivate(transfer);
  flows_[transfer].in_flight = false;
  --in_flight_;
  return transfer;
}

Picoseconds FlowNetwork::end_of(const Flow& flow, double rate) {
  return checked_add(flow.since, to_picoseconds(Seconds(flow.remaining / rate)));
}

/// Bytes left at `now` of a transfer that has had `rate` since its last change.
double FlowNetwork::left(const Flow& flow, double rate, Picoseconds now) {
  const double elapsed = static_cast<double>(now - flow.since) * kSecondsPerPicosecond;
  // The end is rounded to a picosecond, so the last bytes may be carried up to half a picosecond
  // late.
  return std::max(0.0, flow.remaining - rate * elapsed);
}

Bytes FlowNetwork::remaining(std::uint32_t transfer, Picoseconds now) const {
  return Bytes(left(flows_[transfer], sharing_.rate(transfer), now));
}

double FlowNetwork::part_done(std::uint32_t transfer, Picoseconds now) const {
  const Flow& flow = flows_[transfer];
  return flow.in_flight ? 1 - remaining(transfer, now).base() / flow.size : 0;
}

void FlowNetwork::settle(Picoseconds now) {
  moved_ends_.clear();
  for (const FairShare::Change& change : sharing_.solve()) {
    Flow& flow = flows_[change.flow];
    flow.remaining = left(flow, change.before, now);
    flow.since = now;
    if (change.rate > 0) {
      moved_ends_.push_back({end_of(flow, change.rate), change.flow});
    } else if (ends_.contains(change.flow)) {
      ends_.erase(change.flow);
    }
  }
  ends_.set_all(moved_ends_);
}

void FlowNetwork::set_capacity(std::uint32_t link, BytesPerSecond capacity) {
  if (link >= capacities_.size() || !(capacity.base() >= 0) || !std::isfinite(capacity.base())) {
    throw std::logic_error("an unknown link, or a capacity that is negative or not finite");
  }
  capacities_[link] = capacity.base();
  const std::uint32_t merged = link_of_[link];
  if (merged == kUnloaded) {
    return;
  }
  double least = capacity.base();
  for (std::size_t other = 0; merged_ && other < link_of_.size(); ++other) {
    least = link_of_[other] == merged ? std::min(least, capacities_[other]) : least;
  }
  sharing_.set_capacity(merged, least);
  ++epoch_;
}

void FlowNetwork::reroute(const LinkEvent::Reroute& route, Picoseconds now) {
  const std::uint32_t transfer = route.transfer;
  if (merged_) {
    throw std::logic_error("transfers can be rerouted over separate links only");
  }
  Flow& flow = flows_[transfer];
  if (!flow.in_flight) {
    set_route(transfer, route.loads, route.image);
    return;
  }
  const double part = remaining(transfer, now).base() / flow.size;
  sharing_.deactivate(transfer);
  if (ends_.contains(transfer)) {
    ends_.erase(transfer);
  }
  set_route(transfer, route.loads, route.image);
  if (flow.shares == 0) {
    throw std::logic_error("a transfer with bytes left is rerouted over no link");
  }
  flow.remaining = flow.size * part;
  attach(transfer, now);
}

std::optional<FlowNetwork::Stall> FlowNetwork::stall() const {
  for (std::uint32_t transfer = 0; transfer < flows_.size(); ++transfer) {
    if (!flows_[transfer].in_flight || sharing_.rate(transfer) > 0) {
      continue;
    }
    std::uint32_t down = kNoLink;
    sharing_.for_each_link(transfer, [&](std::uint32_t link, double) {
      down = sharing_.capacity(link) == 0 ? std::min(down, link) : down;
    });
    for (std::uint32_t link = 0; link < link_of_.size(); ++link) {
      if (link_of_[link] == down && capacities_[link] == 0) {
        return Stall{transfer, link};
      }
    }
  }
  return std::nullopt;
}

}  // namespace orrery
