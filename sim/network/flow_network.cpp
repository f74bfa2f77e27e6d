// SPDX-License-Identifier: Apache-2.0
#include "sim/network/flow_network.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "sim/network/link_classes.h"

namespace orrery {
namespace {

constexpr double kSecondsPerPicosecond = 1e-12;
// Below this share of where it began, a running difference has lost too many digits and is summed
// afresh.
constexpr double kCancelled = 1e-3;

}  // namespace

FlowNetwork::FlowNetwork(const Costs& costs, Links links)
    : flows_(costs.transfers.size()), ends_(costs.transfers.size()) {
  std::vector<std::uint32_t> class_of_link = link_classes(costs);
  if (links == Links::kSeparate) {
    std::iota(class_of_link.begin(), class_of_link.end(), 0);
  }
  for (std::size_t link = 0; link < class_of_link.size(); ++link) {
    const std::uint32_t index = class_of_link[link];
    if (index == kUnloaded) {
      continue;
    }
    const double capacity = costs.links[link].base();
    if (index >= links_.size()) {
      links_.resize(index + 1);
      links_[index].capacity = capacity;
    }
    links_[index].capacity = std::min(links_[index].capacity, capacity);
  }
  levels_ = DeadlineHeap<double>(links_.size());
  add_transfers(costs, class_of_link);
}

void FlowNetwork::add_transfers(const Costs& costs,
                                const std::vector<std::uint32_t>& class_of_link) {
  first_share_.push_back(0);
  for (std::size_t t = 0; t < flows_.size(); ++t) {
    const std::vector<LinkLoad> loads = normalized_loads(costs.transfers[t], costs.links.size());
    Flow& flow = flows_[t];
    for (const LinkLoad& load : loads) {
      flow.size = std::max(flow.size, load.bytes);
    }
    flow.alone = std::numeric_limits<double>::infinity();
    const auto begin = static_cast<std::ptrdiff_t>(shares_.size());
    for (const LinkLoad& load : loads) {
      const std::uint32_t link = class_of_link[load.link];
      if (!(links_[link].capacity > 0) || !std::isfinite(links_[link].capacity)) {
        throw std::logic_error("a transfer loads a link whose capacity is not positive and finite");
      }
      const auto same_link = [link](const Share& share) { return share.link == link; };
      if (std::none_of(shares_.begin() + begin, shares_.end(), same_link)) {
        shares_.push_back({link, 0, load.bytes / flow.size});
        flow.alone = std::min(flow.alone, links_[link].capacity / shares_.back().weight);
      }
    }
    first_share_.push_back(static_cast<std::uint32_t>(shares_.size()));
  }
}

void FlowNetwork::start(std::uint32_t transfer, Picoseconds now) {
  bool alone = true;
  for (std::uint32_t i = first_share_[transfer]; i < first_share_[transfer + 1]; ++i) {
    Link& link = links_[shares_[i].link];
    shares_[i].slot = static_cast<std::uint32_t>(link.flows.size());
    link.flows.push_back({transfer, i});
    if (link.flows.size() > 1) {
      alone = false;
      mark_changed(shares_[i].link);
    }
  }
  Flow& flow = flows_[transfer];
  flow.remaining = flow.size;
  flow.rate = 0;
  flow.since = now;
  if (alone) {
    set_rate(transfer, flow.alone, now);
  }
}

std::uint32_t FlowNetwork::end_next() {
  const std::uint32_t transfer = ends_.top();
  ends_.erase(transfer);
  for (std::uint32_t i = first_share_[transfer]; i < first_share_[transfer + 1]; ++i) {
    Link& link = links_[shares_[i].link];
    const Member last = link.flows.back();
    link.flows[shares_[i].slot] = last;
    shares_[last.share].slot = shares_[i].slot;
    link.flows.pop_back();
    if (!link.flows.empty()) {
      mark_changed(shares_[i].link);
    }
  }
  flows_[transfer].rate = 0;
  return transfer;
}

Bytes FlowNetwork::remaining(std::uint32_t transfer, Picoseconds now) const {
  const Flow& flow = flows_[transfer];
  const double elapsed = static_cast<double>(now - flow.since) * kSecondsPerPicosecond;
  // The end is rounded to a picosecond, so the last bytes may be carried up to half a picosecond
  // late.
  return Bytes(std::max(0.0, flow.remaining - flow.rate * elapsed));
}

void FlowNetwork::settle(Picoseconds now) {
  if (changed_.empty()) {
    return;
  }
  collect_region();
  fill_region(now);
  for (const std::uint32_t link : region_) {
    links_[link].visited = false;
  }
  region_.clear();
}

void FlowNetwork::mark_changed(std::uint32_t link) {
  if (!links_[link].changed) {
    links_[link].changed = true;
    changed_.push_back(link);
  }
}

/// All links that are connected to a changed one by transfers in flight.
void FlowNetwork::collect_region() {
  const auto visit = [this](std::uint32_t link) {
    if (!links_[link].visited) {
      links_[link].visited = true;
      region_.push_back(link);
    }
  };
  for (const std::uint32_t link : changed_) {
    links_[link].changed = false;
    visit(link);
  }
  changed_.clear();
  // The region grows while it is walked. NOLINTNEXTLINE(modernize-loop-convert)
  for (std::size_t next = 0; next < region_.size(); ++next) {
    for (const Member& member : links_[region_[next]].flows) {
      if (flows_[member.transfer].visited) {
        continue;
      }
      flows_[member.transfer].visited = true;
      const std::uint32_t end = first_share_[member.transfer + 1];
      for (std::uint32_t i = first_share_[member.transfer]; i < end; ++i) {
        visit(shares_[i].link);
      }
    }
  }
}

/// Progressive filling as a race of links: the next one to fill fixes the rate of its transfers.
void FlowNetwork::fill_region(Picoseconds now) {
  for (const std::uint32_t index : region_) {
    Link& link = links_[index];
    link.free = link.capacity;
    link.waiting = link.flows.size();
    link.first_weight = link.weight = waiting_weight(link);
    if (link.waiting > 0) {
      levels_.set(index, link.free / link.weight);
    }
  }
  while (!levels_.empty()) {
    const double level = levels_.top_key();
    fix_flows_of(levels_.top(), level, now);
  }
}

double FlowNetwork::waiting_weight(const Link& link) const {
  double weight = 0;
  for (const Member& member : link.flows) {
    weight += flows_[member.transfer].visited ? shares_[member.share].weight : 0;
  }
  return weight;
}

void FlowNetwork::fix_flows_of(std::uint32_t full, double level, Picoseconds now) {
  for (const Member& member : links_[full].flows) {
    Flow& flow = flows_[member.transfer];
    if (!flow.visited) {
      continue;
    }
    flow.visited = false;
    set_rate(member.transfer, level, now);
    const std::uint32_t end = first_share_[member.transfer + 1];
    for (std::uint32_t i = first_share_[member.transfer]; i < end; ++i) {
      Link& link = links_[shares_[i].link];
      link.free -= level * shares_[i].weight;
      link.weight -= shares_[i].weight;
      if (--link.waiting == 0) {
        levels_.erase(shares_[i].link);
        continue;
      }
      if (link.weight < kCancelled * link.first_weight) {
        link.weight = waiting_weight(link);
      }
      // Rounding may make it a hair less than the level reached; links never fill backwards.
      levels_.set(shares_[i].link, std::max(level, link.free / link.weight));
    }
  }
}

void FlowNetwork::set_rate(std::uint32_t transfer, double rate, Picoseconds now) {
  Flow& flow = flows_[transfer];
  if (rate == flow.rate) {
    return;
  }
  flow.remaining = remaining(transfer, now).base();
  flow.rate = rate;
  flow.since = now;
  ends_.set(transfer, checked_add(now, to_picoseconds(Seconds(flow.remaining / rate))));
}

}  // namespace orrery
