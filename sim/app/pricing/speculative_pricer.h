// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/serving/iteration.h"

namespace orrery {

/// Iterations of a model whose decodes verify guesses, and of the one that makes them: after each
/// iteration its first pass takes all new tokens, and gives the first guess; each further one takes
/// a token of every sequence that will decode next. Passes follow each other.
class SpeculativePricer final : public IterationPricer {
 public:
  /// @param target outlives it
  /// @param draft outlives it; null: guesses take the devices no time
  /// @param guesses of each sequence
  SpeculativePricer(IterationPricer& target, IterationPricer* draft, std::int64_t guesses)
      : target_(target), draft_(draft), guesses_(guesses) {}

  IterationPrice price(const BatchShape& shape) override;

 private:
  IterationPricer& target_;
  IterationPricer* draft_;
  std::int64_t guesses_;
};

}  // namespace orrery
