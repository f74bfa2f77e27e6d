// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "workloads/plan/expert_placement.h"

namespace orrery {

/// Training: ranks that share the tokens of each sequence (context_training.h).
struct ContextSplit {
  int ranks = 1;         ///< all of them
  int heads = 1;         ///< ranks among them that exchange tokens for heads
  bool gathers = false;  ///< the others gather keys and values, or send them round a ring

  int rest() const { return ranks / heads; }
};

/// How layers are split over ranks, one of which is looked at.
struct RankSplit {
  int tp = 1;
  bool sp = false;
  int cp = 1, dcp = 1;  ///< inference: see context_parallel.h
  ContextSplit context;
  int ep = 1, etp = 1;
  /// Inference: each tensor parallel rank routes all tokens of the group, to those experts or parts
  /// of experts that it has, and an all-reduce adds up what they give. Else ranks share the tokens
  /// out and send them to the ranks of their experts.
  bool all_reduces_experts = false;
  /// Inference: the rank whose experts get the most tokens, for which the others wait. None: all
  /// ranks get the mean.
  std::optional<HeaviestRank> heaviest;
};

}  // namespace orrery
