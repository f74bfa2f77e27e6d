// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "sim/graph/precision.h"
#include "sim/units/units.h"

namespace orrery {

/// How the tokens of a dispatch or combine are spread over the experts, which lie in order and in
/// equal numbers on the ranks of the group. See models/collectives/dispatch_combine.cpp for what
/// crosses which link.
struct ExpertRouting {
  /// kUniform: every token takes `top_k` different experts at random. kPerfect: the experts of a
  /// token are spread over as many ranks and systems as there are.
  enum class Router : std::uint8_t { kUniform, kPerfect };
  /// kNormal: one copy of a token goes to each system that it needs, over the rail, and from there
  /// one to each rank. kLowLatency: every copy of a token goes straight to the rank of its expert.
  enum class Mode : std::uint8_t { kNormal, kLowLatency };

  int experts = 1;  ///< routed experts, replicas included
  int top_k = 1;    ///< experts of a token
  /// Node-limited routing (DeepSeek-V3, arXiv 2412.19437, section 2.1.2): the experts are divided
  /// into `groups` in order, and those of a token are in `top_groups` of them. 0: no limit.
  int groups = 0;
  int top_groups = 0;
  Router router = Router::kUniform;
  Mode mode = Mode::kNormal;
  /// Token copies of the heaviest rank, the first of the group, over the mean of all.
  double skew = 1;
  /// Low latency: kernels end once tokens are sent, and others look for those that came when they
  /// are needed, so that no SM is held while tokens are on their way (DeepEP's return_recv_hook).
  bool hook = false;

  bool operator==(const ExpertRouting&) const = default;
  bool limited() const { return groups > 0 && top_groups < groups; }
};

/// Bytes of one token on the wire, its scales included: one fp32 a block of 128 for fp8 (DeepEP;
/// as much as one byte a block of 32, MXFP8), one byte a block of 16 for nvfp4, one fp32 a token
/// for int8.
Bytes token_bytes(Precision precision, std::int64_t hidden);

}  // namespace orrery
