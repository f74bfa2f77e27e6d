// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/serving/request.h"

namespace orrery {

/// Draft tokens behind the next token, which a decode verifies with it (Leviathan et al.
/// 2023, "Fast Inference from Transformers via Speculative Decoding"). Those up to the first wrong
/// one are tokens of the answer.
struct Speculation {
  /// Probability that at least the first draft token is right, at least the first two, and so on.
  std::vector<double> right;

  std::int64_t draft_tokens() const { return static_cast<std::int64_t>(right.size()); }
  /// Tokens of the answer that an iteration gives in the mean.
  double mean_tokens() const;
  /// Adds the right draft tokens of a decode that has just run to the answer. They are drawn by the
  /// number of the request and how far it is: the same whatever runs beside it.
  void accept(RequestState& progress) const;

  /// Draft tokens that are each right with the same probability where all before are, so that an
  /// iteration gives `mean` tokens.
  /// @param mean between 1 and draft_tokens + 1
  static Speculation of_mean(std::int64_t draft_tokens, double mean);
  /// From the mean tokens of iterations with one draft token, with two, and so on: what one more
  /// draft token adds is how often it is right, but never more than the one before it.
  static Speculation of_means(const std::vector<double>& means);
};

}  // namespace orrery
