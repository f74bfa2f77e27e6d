// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/speculative_pricer.h"

#include <algorithm>

namespace orrery {

IterationPrice SpeculativePricer::price(const BatchShape& shape) {
  IterationPrice all = target_.price(shape);
  if (draft_ == nullptr || shape.tokens() == 0) return all;
  const auto add = [&](const BatchShape& pass, std::int64_t times) {
    const IterationPrice price = draft_->price(pass);
    all.time += static_cast<Picoseconds>(times) * price.time;
    all.energy += static_cast<double>(times) * price.energy;
    all.kernels += static_cast<double>(times) * price.kernels;
  };
  add(shape, 1);
  BatchShape next{.sequences = shape.sequences, .longest = shape.longest, .context = shape.context};
  for (const Chunk& chunk : shape.chunks) {
    if (!chunk.samples) continue;
    ++next.sequences;
    next.context += chunk.context + chunk.tokens;
    next.longest = std::max(next.longest, chunk.context + chunk.tokens);
  }
  if (next.sequences > 0 && draft_tokens_ > 1) add(next, draft_tokens_ - 1);
  return all;
}

}  // namespace orrery
