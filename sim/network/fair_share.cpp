// SPDX-License-Identifier: Apache-2.0
#include "sim/network/fair_share.h"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

// Below this share of where it began, a running difference has lost too many digits and is summed
// afresh.
constexpr double kCancelled = 1e-3;
// Rates that differ by less are one rate, rounded differently.
constexpr double kRounding = 1e-15;

}  // namespace

std::uint32_t FairShare::add_link(double capacity) {
  links_.emplace_back();
  links_.back().capacity = capacity;
  fills_.emplace_back();
  return static_cast<std::uint32_t>(links_.size() - 1);
}

std::uint32_t FairShare::add_flow() {
  flows_.emplace_back();
  phases_.push_back(Phase::kFixed);
  return static_cast<std::uint32_t>(flows_.size() - 1);
}

void FairShare::set_route(std::uint32_t flow, const std::vector<LinkWeight>& route) {
  Flow& place = flows_[flow];
  const std::uint32_t before = place.end - place.first;
  const auto count = static_cast<std::uint32_t>(route.size());
  if (unused_shares_.size() <= std::max(before, count)) {
    unused_shares_.resize(std::max(before, count) + 1);
  }
  if (count != before) {
    unused_shares_[before].push_back(place.first);
    std::vector<std::uint32_t>& unused = unused_shares_[count];
    if (count == 0 || unused.empty()) {
      place.first = static_cast<std::uint32_t>(shares_.size());
      shares_.resize(shares_.size() + count);
    } else {
      place.first = unused.back();
      unused.pop_back();
    }
    place.end = place.first + count;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    shares_[place.first + i] = {route[i].link, 0, route[i].weight};
  }
}

void FairShare::set_capacity(std::uint32_t link, double capacity) {
  links_[link].capacity = capacity;
  mark_changed(link);
}

bool FairShare::activate(std::uint32_t id) {
  bool alone = true;
  Flow& flow = flows_[id];
  for (std::uint32_t i = flow.first; i < flow.end; ++i) {
    Share& share = shares_[i];
    Link& link = links_[share.link];
    share.slot = static_cast<std::uint32_t>(link.members.size());
    link.members.push_back({id, i, share.weight});
    if (link.members.size() > 1) {
      alone = false;
      mark_changed(share.link);
    } else {
      ++loaded_links_;
    }
  }
  flow.rate = 0;
  flow.bottleneck = kNoLink;
  ++active_;
  return alone;
}

void FairShare::deactivate(std::uint32_t id) {
  Flow& flow = flows_[id];
  for (std::uint32_t i = flow.first; i < flow.end; ++i) {
    const Share& share = shares_[i];
    Link& link = links_[share.link];
    const Member last = link.members.back();
    link.members[share.slot] = last;
    shares_[last.share].slot = share.slot;
    link.members.pop_back();
    if (link.members.empty()) {
      --loaded_links_;
    } else {
      mark_changed(share.link);
    }
  }
  flow.rate = 0;
  flow.bottleneck = kNoLink;
  --active_;
}

void FairShare::mark_changed(std::uint32_t link) {
  if (!links_[link].changed) {
    links_[link].changed = true;
    changed_.push_back(link);
  }
}

/// What is left on a link for its flows that rise.
void FairShare::sum_up(std::uint32_t index) {
  const Link& link = links_[index];
  double used = 0;
  double weight = 0;
  std::uint32_t waiting = 0;
  for (const Member& member : link.members) {
    if (phases_[member.flow] == Phase::kFixed) {
      used += member.weight * flows_[member.flow].rate;
    } else {
      weight += member.weight;
      ++waiting;
    }
  }
  Fill& fill = fills_[index];
  fill.overloaded = used > link.capacity * (1 + kTolerance);
  fill.free = std::max(0.0, link.capacity - used);
  fill.weight = weight;
  fill.waiting = waiting;
}

/// Progressive filling as a race of links: the next one to fill fixes the rate of its flows.
///
/// A candidate keeps the level that its link had when it was queued. Fixing flows only ever raises
/// the levels of the other links, so that is a lower bound, corrected when it comes up.
void FairShare::fill() {
  candidates_.clear();
  for (const std::uint32_t link : touched_) {
    Fill& fill = fills_[link];
    fill.level = kUnlimited;
    fill.first_weight = fill.weight;
    if (fill.waiting > 0) {
      candidates_.push_back({fill.free / fill.weight, link});
    }
  }
  for (std::size_t at = candidates_.size() / 2; at > 0; --at) {
    sink(at - 1, candidates_[at - 1]);
  }
  double reached = 0;
  while (!candidates_.empty()) {
    Candidate first = candidates_.front();
    const Fill& fill = fills_[first.link];
    if (fill.waiting > 0) {
      // Rounding may make it a hair less than the level reached; links never fill backwards.
      const double level = std::max(reached, fill.free / fill.weight);
      if (level > first.level) {
        first.level = level;
        sink(0, first);
        continue;
      }
      reached = level;
      fix_members(first.link, reached);
    }
    const Candidate last = candidates_.back();
    candidates_.pop_back();
    if (!candidates_.empty()) {
      sink(0, last);
    }
  }
}

/// Puts a candidate into the hole at `at` of the heap, or below.
void FairShare::sink(std::size_t at, Candidate candidate) {
  const std::size_t size = candidates_.size();
  for (std::size_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
    child += child + 1 < size && candidates_[child + 1] < candidates_[child] ? 1 : 0;
    if (!(candidates_[child] < candidate)) {
      break;
    }
    candidates_[at] = candidates_[child];
    at = child;
  }
  candidates_[at] = candidate;
}

double FairShare::rising_weight(const Link& link) const {
  double weight = 0;
  for (const Member& member : link.members) {
    weight += phases_[member.flow] == Phase::kRising ? member.weight : 0;
  }
  return weight;
}

void FairShare::fix_members(std::uint32_t full, double level) {
  fills_[full].level = level;
  fills_[full].waiting = 0;
  for (const Member& member : links_[full].members) {
    if (phases_[member.flow] != Phase::kRising) {
      continue;
    }
    phases_[member.flow] = Phase::kSolved;
    ++rates_computed_;
    Flow& flow = flows_[member.flow];
    flow.trial_rate = level;
    flow.trial_bottleneck = full;
    for (std::uint32_t i = flow.first; i < flow.end; ++i) {
      const Share& share = shares_[i];
      if (share.link == full) {
        continue;
      }
      Fill& fill = fills_[share.link];
      fill.free -= level * share.weight;
      fill.weight -= share.weight;
      if (--fill.waiting > 0 && fill.weight < kCancelled * fill.first_weight) {
        fill.weight = rising_weight(links_[share.link]);
      }
    }
  }
}

void FairShare::commit() {
  for (const std::uint32_t id : rising_) {
    Flow& flow = flows_[id];
    flow.bottleneck = flow.trial_bottleneck;
    if (std::abs(flow.trial_rate - flow.rate) > kRounding * flow.rate) {
      changes_.push_back({id, flow.rate, flow.trial_rate});
      flow.rate = flow.trial_rate;
    }
  }
}

double FairShare::audit() const {
  std::vector<double> used(links_.size(), 0);
  std::vector<double> fastest(links_.size(), 0);
  double worst = 0;
  for (std::size_t l = 0; l < links_.size(); ++l) {
    for (const Member& member : links_[l].members) {
      used[l] += member.weight * flows_[member.flow].rate;
      fastest[l] = std::max(fastest[l], flows_[member.flow].rate);
    }
    if (used[l] > links_[l].capacity) {
      worst = std::max(worst, used[l] / links_[l].capacity - 1);
    }
  }
  for (const Link& link : links_) {
    for (const Member& member : link.members) {
      double violation = kUnlimited;
      for_each_link(member.flow, [&](std::uint32_t l, double) {
        const double rate = flows_[member.flow].rate;
        const double unused = used[l] < links_[l].capacity ? 1 - used[l] / links_[l].capacity : 0;
        const double slower = rate < fastest[l] ? 1 - rate / fastest[l] : 0;
        violation = std::min(violation, std::max(unused, slower));
      });
      worst = std::max(worst, violation);
    }
  }
  return worst;
}

}  // namespace orrery
