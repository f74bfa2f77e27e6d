// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/speculative_pricer.h"

#include <algorithm>

namespace orrery {

Picoseconds SpeculativePricer::time(const BatchShape& shape) {
  Picoseconds time = target_.time(shape);
  if (draft_ == nullptr || shape.tokens() == 0) return time;
  time += draft_->time(shape);
  BatchShape next{.sequences = shape.sequences, .longest = shape.longest, .context = shape.context};
  for (const Chunk& chunk : shape.chunks) {
    if (!chunk.samples) continue;
    ++next.sequences;
    next.context += chunk.context + chunk.tokens;
    next.longest = std::max(next.longest, chunk.context + chunk.tokens);
  }
  if (next.sequences > 0 && guesses_ > 1)
    time += static_cast<Picoseconds>(guesses_ - 1) * draft_->time(next);
  return time;
}

}  // namespace orrery
