// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/serving/iteration.h"

namespace orrery {

/// Iterations of a model whose decodes verify draft tokens, and of the one that makes them: after
/// each iteration its first pass takes all new tokens, and gives the first draft token; each
/// further one takes a token of every sequence that will decode next. Passes follow each other.
class SpeculativePricer final : public IterationPricer {
 public:
  /// @param target outlives it
  /// @param draft outlives it; null: draft tokens take the devices no time
  /// @param draft_tokens of each sequence
  SpeculativePricer(IterationPricer& target, IterationPricer* draft, std::int64_t draft_tokens)
      : target_(target), draft_(draft), draft_tokens_(draft_tokens) {}

  IterationPrice price(const BatchShape& shape) override;

 private:
  IterationPricer& target_;
  IterationPricer* draft_;
  std::int64_t draft_tokens_;
};

}  // namespace orrery
