// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "models/transfers/protocols.h"

namespace orrery {

/// Bytes on the wire over bytes of payload: LL128 sends 8 bytes of flag with 120 of data.
inline constexpr double kLl128Wire = 128 / 120.0;
/// What NCCL counts on of the links between systems with trees, whose inner nodes take from two
/// children (NCCL 5067397 src/graph/tuning.cc).
inline constexpr double kTreeRate = 0.85;
/// Share of the rate that a tree keeps: all of it between two systems, which have one neighbour
/// each.
inline double tree_rate(const Traffic& t) { return t.tree && t.systems > 2 ? kTreeRate : 1; }
/// The share of their rate that NCCL's trees between systems reach with buffers of that size (NCCL
/// 5067397 src/graph/tuning.cc, treeCorrectionFactor), even between its powers of two; otherwise 1.
double tree_reach(Protocol protocol, const Traffic& t);

/// Messages between systems that a step of Simple posts (NCCL 2.28.3 src/graph/tuning.cc).
inline constexpr int kSimplePosts = 3;

/// The steps inside the systems of a ring: each posts a message between them if it spans several.
inline Seconds posted(const ProtocolsConfig& c, Seconds inside, int posts, const Traffic& t) {
  if (t.tree || t.systems == 1) return inside;
  return std::max(inside, c.net_post.value * posts * t.steps.scale_up);
}

/// The steps between systems: each costs what the library's protocol does, `step`, on the network
/// that its constants were measured on, and what the latency of this one has beyond that.
inline Seconds crossings(Seconds step, const Traffic& t) {
  return (step + t.net_latency) * t.steps.scale_out;
}

/// NCCL's PAT: its steps have this share of the latency of Simple's, and each rank adds to them
/// (NCCL 5067397 src/graph/tuning.cc: log2i(nNodes) * (interLat / 3.5) + nRanks * 2.8 us).
inline constexpr double kFarFirstStep = 1 / 3.5;
inline constexpr Seconds kFarFirstRank = Seconds(2.8e-6);

}  // namespace orrery
