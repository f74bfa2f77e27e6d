// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/expert_reach.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace orrery {
namespace {

/// C(n, k); 0 outside 0 <= k <= n.
double choose(int n, int k) {
  if (k < 0 || k > n) return 0;
  double ways = 1;
  for (int i = 0; i < k; ++i) ways *= static_cast<double>(n - i) / static_cast<double>(i + 1);
  return ways;
}

/// C(slots - taken, k) / C(slots, k).
double miss(double slots, double taken, int k) {
  double probability = 1;
  for (int i = 0; i < k; ++i) {
    const double left = slots - taken - i;
    if (left <= 0) return 0;
    probability *= left / (slots - i);
  }
  return probability;
}

/// What the groups have of a range of slots: some are whole, up to two at its ends in part.
struct Overlap {
  int whole = 0;
  int parts = 0;
  std::array<double, 2> part_slots = {};
};

Overlap overlap(const SlotRange& range, int groups) {
  Overlap result;
  const double size = range.slots / groups;
  for (int group = 0; group < groups; ++group) {
    const double low = std::max(range.first, size * group);
    const double high = std::min(range.last, size * (group + 1));
    constexpr double kRounding = 1e-9;
    if (high - low <= kRounding) continue;
    if (high - low >= size - kRounding) {
      ++result.whole;
    } else {
      result.part_slots.at(static_cast<std::size_t>(result.parts++)) = high - low;
    }
  }
  return result;
}

/// Mean over the choices of groups of `missed(slots of the range in the chosen groups)`.
template <class Missed>
double mean_over_groups(const ExpertRouting& routing, const SlotRange& range, Missed missed) {
  const Overlap own = overlap(range, routing.groups);
  const double size = range.slots / routing.groups;
  const int others = routing.groups - own.whole - own.parts;
  double sum = 0;
  for (int subset = 0; subset < 1 << own.parts; ++subset) {
    double slots = 0;
    int chosen = 0;
    for (int part = 0; part < own.parts; ++part) {
      if ((subset >> part & 1) == 0) continue;
      slots += own.part_slots.at(static_cast<std::size_t>(part));
      ++chosen;
    }
    for (int whole = 0; whole <= own.whole; ++whole) {
      const double ways =
          choose(own.whole, whole) * choose(others, routing.top_groups - chosen - whole);
      if (ways > 0) sum += ways * missed(slots + size * whole);
    }
  }
  return sum / choose(routing.groups, routing.top_groups);
}

}  // namespace

double reach(const ExpertRouting& routing, const SlotRange& range) {
  const double own = range.last - range.first;
  const bool perfect = routing.router == ExpertRouting::Router::kPerfect;
  const double even = routing.top_k * own / range.slots;
  if (!routing.limited()) {
    return perfect ? std::min(1.0, even) : 1 - miss(range.slots, own, routing.top_k);
  }
  const double open = range.slots * routing.top_groups / routing.groups;
  const double missed = mean_over_groups(routing, range, [&](double slots) {
    if (perfect) return slots > 0 ? 0.0 : 1.0;
    return miss(open, slots, routing.top_k);
  });
  return perfect ? std::min(1 - missed, even) : 1 - missed;
}

}  // namespace orrery
