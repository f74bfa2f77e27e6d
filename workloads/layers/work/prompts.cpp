// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/work/prompts.h"

#include <algorithm>
#include <cmath>

#include "workloads/base/real.h"

namespace orrery {

void PromptSum::add(const Prompts& prompts) {
  sequences += prompts.sequences;
  tokens += prompts.sequences * prompts.query;
  keys += prompts.sequences * prompts.context;
  pairs += real(prompts.sequences) * causal_pairs(prompts.query, prompts.context, 0);
}

Prompts PromptSum::alike() const {
  const auto query = std::max<std::int64_t>(1, std::llround(real(tokens) / real(sequences)));
  const double earlier = pairs / real(sequences) / real(query) - real(query + 1) / 2;
  return {sequences, query, query + std::max<std::int64_t>(0, std::llround(earlier))};
}

}  // namespace orrery
