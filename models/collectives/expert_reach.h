// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/expert_routing.h"

namespace orrery {

/// Where experts lie: `[first, last)` of `slots` equal places in order.
struct SlotRange {
  double first = 0;
  double last = 0;
  double slots = 0;
};

/// Probability that a token has at least one of its experts among the slots of `range`.
///
/// Uniform router without a limit: a token takes k of S slots, so it misses m of them with
/// C(S - m, k) / C(S, k) (hypergeometric). With a limit it first takes g of G groups and then k of
/// their gS/G slots: the mean of the same over the slots of the range that those groups hold.
///
/// Perfect router: k m / S, up to the probability that any group of the range is taken.
double reach(const ExpertRouting& routing, const SlotRange& range);

}  // namespace orrery
