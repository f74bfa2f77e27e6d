// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/scheduler.h"

#include <algorithm>
#include <iterator>

namespace orrery {

BatchShape Batch::shape(const Queue& queue) {
  BatchShape shape;
  chunks.clear();
  for (const Share& share : shares) {
    const Progress& progress = queue.running[share.running];
    if (progress.decodes()) {
      ++shape.sequences;
      shape.context += progress.cached;
      shape.longest = std::max(shape.longest, progress.cached);
    } else {
      const bool last = progress.cached + share.tokens == progress.request.prompt;
      chunks.push_back({share.tokens, progress.cached, last});
    }
  }
  shape.chunks = chunks;
  return shape;
}

void Batch::ran(Queue& queue, std::vector<Progress>& finished) const {
  for (const Share& share : shares) {
    Progress& progress = queue.running[share.running];
    progress.cached += share.tokens;
    if (progress.decodes()) ++progress.produced;
  }
  const auto live = std::stable_partition(queue.running.begin(), queue.running.end(),
                                          [](const Progress& p) { return !p.done(); });
  std::move(live, queue.running.end(), std::back_inserter(finished));
  queue.running.erase(live, queue.running.end());
}

}  // namespace orrery
