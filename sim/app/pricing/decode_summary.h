// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/steps/inference/batch.h"

namespace orrery {

/// Sequences that decode, as far as three numbers tell: of the share u of them, ordered by length,
/// the last has longest * u^k tokens, with the k that gives all of them `context` tokens together
/// (k = 0: all alike, 1: evenly from none to the longest). One has the longest context, the others
/// come in at most 15 groups, to half a token a sequence, in no order of length.
/// @param longest at least the mean, tokens in the cache before the step
/// @param context the same of all sequences together
std::vector<DecodeGroup> summarised_decodes(std::int64_t sequences, std::int64_t longest,
                                            std::int64_t context);

}  // namespace orrery
