// SPDX-License-Identifier: Apache-2.0
// Which flows a change concerns: the part of FairShare that decides what to solve.
#include <algorithm>

#include "sim/network/fair_share.h"

namespace orrery {
namespace {

// A local solution with more than this part of all flows costs more, with its repetitions, than
// solving all that is connected.
constexpr std::size_t kLocalPart = 8;
constexpr std::size_t kFewFlows = 32;
constexpr std::uint32_t kLongestPause = 64;
// What is a little slower than the lowest rate concerned is solved too, against rounding.
constexpr double kFloorMargin = 1e-9;
constexpr int kLevelRounds = 4;

}  // namespace

const std::vector<FairShare::Change>& FairShare::solve() {
  changes_.clear();
  if (changed_.empty()) {
    return changes_;
  }
  const bool reference = resolve_ == Resolve::kComponent;
  if (reference || local_pause_ > 0 || !solve_locally()) {
    local_pause_ -= local_pause_ > 0 ? 1 : 0;
    solve_connected(reference ? 0 : lowest_rate_concerned());
  }
  commit();
  forget_region();
  for (const std::uint32_t link : changed_) {
    links_[link].changed = false;
  }
  changed_.clear();
  return changes_;
}

/// Solves the flows that changed links limit, and what turns out to be concerned. False if that is
/// too much; what was found so far stays in the region.
bool FairShare::solve_locally() {
  const std::size_t most = std::max(kFewFlows, active_ / kLocalPart);
  for (const std::uint32_t link : changed_) {
    grow(link);
  }
  bool wrong = true;
  while (wrong && rising_.size() <= most) {
    for (const std::uint32_t link : touched_) {
      sum_up(link);
    }
    for (const std::uint32_t flow : rising_) {
      phases_[flow] = Phase::kRising;
    }
    fill();
    wrong = grow_where_wrong();
  }
  // Dense traffic fails every time: then try again ever more rarely.
  local_failures_ = wrong ? std::min(local_failures_ + 1, kLongestPause) : 0;
  local_pause_ = local_failures_;
  return !wrong;
}

/// The flows that a link limits, and those without a rate yet, are to be solved.
void FairShare::grow(std::uint32_t index) {
  if (fills_[index].grown || links_[index].members.empty()) {
    return;
  }
  touch(index);
  fills_[index].grown = true;
  for (const Member& member : links_[index].members) {
    const Flow& flow = flows_[member.flow];
    if (flow.bottleneck == index || flow.bottleneck == kNoLink) {
      rise(member.flow);
    }
  }
}

void FairShare::rise(std::uint32_t id) {
  if (phases_[id] != Phase::kFixed) {
    return;
  }
  phases_[id] = Phase::kRising;
  rising_.push_back(id);
  if (touched_.size() == loaded_links_) {
    return;  // all there are
  }
  const Flow& flow = flows_[id];
  for (std::uint32_t i = flow.first; i < flow.end; ++i) {
    touch(shares_[i].link);
  }
}

void FairShare::touch(std::uint32_t link) {
  if (!fills_[link].touched && !links_[link].members.empty()) {
    fills_[link].touched = true;
    touched_.push_back(link);
  }
}

/// Whether the local solution contradicts the rates that it took as fixed; the flows concerned join
/// it. Contradictions are:
/// - a fixed flow is faster than what a link that is full gives to the flows that it limits, or a
///   link is overloaded by fixed flows: whatever limits them has to give less;
/// - a link limits fixed flows, but is no longer full, or gives more to a solved flow.
bool FairShare::grow_where_wrong() {
  for (const std::uint32_t index : touched_) {
    const Fill& fill = fills_[index];
    const Link& link = links_[index];
    double fastest = 0;
    for (const Member& member : link.members) {
      const bool solved = phases_[member.flow] == Phase::kSolved;
      fastest = std::max(fastest, solved ? flows_[member.flow].trial_rate : 0);
    }
    // A link that became full has nothing left, whatever is noted.
    const bool unused = fill.level == kUnlimited && fill.free > kTolerance * link.capacity;
    const double level = (fill.overloaded ? 0 : fill.level) * (1 + kTolerance);
    for (const Member& member : link.members) {
      const Flow& flow = flows_[member.flow];
      if (phases_[member.flow] != Phase::kFixed) {
        continue;
      }
      if (flow.rate > level) {
        wrong_.push_back(flow.bottleneck);
      } else if (flow.bottleneck == index && (unused || fastest > flow.rate * (1 + kTolerance))) {
        wrong_.push_back(index);
      }
    }
  }
  for (const std::uint32_t link : wrong_) {
    grow(link);
  }
  const bool wrong = !wrong_.empty();
  wrong_.clear();
  return wrong;
}

/// Solves all flows that are connected to a changed link by flows of at least the rate `floor`.
void FairShare::solve_connected(double floor) {
  for (const std::uint32_t link : changed_) {
    touch(link);
  }
  for (const std::uint32_t flow : rising_) {
    phases_[flow] = Phase::kRising;
  }
  // The region grows while it is walked. NOLINTNEXTLINE(modernize-loop-convert)
  for (std::size_t next = 0; next < touched_.size(); ++next) {
    collect_members(touched_[next], floor);
  }
  fill();
}

/// Lets the flows of a link rise, and sums up what is left for them.
void FairShare::collect_members(std::uint32_t index, double floor) {
  double free = links_[index].capacity;
  double weight = 0;
  std::uint32_t waiting = 0;
  for (const Member& member : links_[index].members) {
    const Flow& flow = flows_[member.flow];
    const bool rises = flow.rate >= floor || flow.bottleneck == kNoLink;
    if (rises || phases_[member.flow] == Phase::kRising) {
      rise(member.flow);
      weight += member.weight;
      ++waiting;
    } else {
      free -= member.weight * flow.rate;
    }
  }
  Fill& fill = fills_[index];
  fill.free = std::max(0.0, free);
  fill.weight = weight;
  fill.waiting = waiting;
}

/// Filling runs as it did up to the lowest level at which a changed link was or becomes full.
double FairShare::lowest_rate_concerned() const {
  double lowest = kUnlimited;
  for (const std::uint32_t link : changed_) {
    lowest = std::min(lowest, lowest_rate_concerned(links_[link], link));
  }
  return lowest * (1 - kFloorMargin);
}

double FairShare::lowest_rate_concerned(const Link& link, std::uint32_t index) const {
  double level = 0;
  double before = kUnlimited;
  for (int round = 0; round < kLevelRounds; ++round) {
    // A lower bound of where the link becomes full: the flows slower than the last bound keep their
    // rates, the others rise together.
    double free = link.capacity;
    double weight = 0;
    for (const Member& member : link.members) {
      const Flow& flow = flows_[member.flow];
      before = flow.bottleneck == index ? std::min(before, flow.rate) : before;
      if (flow.bottleneck != kNoLink && flow.rate < level) {
        free -= member.weight * flow.rate;
      } else {
        weight += member.weight;
      }
    }
    if (weight == 0) {
      return before;
    }
    level = std::max(level, free / weight);
  }
  return std::min(before, level);
}

void FairShare::forget_region() {
  for (const std::uint32_t link : touched_) {
    fills_[link].touched = fills_[link].grown = false;
  }
  for (const std::uint32_t flow : rising_) {
    phases_[flow] = Phase::kFixed;
  }
  touched_.clear();
  rising_.clear();
}

}  // namespace orrery
