// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/iteration_means.h"

#include <algorithm>
#include <cmath>

namespace orrery {

void IterationMeans::add(const BatchShape& shape, Picoseconds time) {
  const double seconds = to_seconds(time).base();
  const auto weighted = [seconds](std::int64_t figure) {
    return seconds * static_cast<double>(figure);
  };
  seconds_ += seconds;
  sequences_ += weighted(shape.sequences);
  longest_ += weighted(shape.longest);
  context_ += weighted(shape.context);
  queries_ += weighted(shape.queries);
  padding_ += weighted(shape.padding);
  chunks_ += weighted(static_cast<std::int64_t>(shape.chunks.size()));
  for (const Chunk& chunk : shape.chunks) {
    chunk_tokens_ += weighted(chunk.tokens);
    chunk_context_ += weighted(chunk.context);
    samples_ += weighted(chunk.samples ? 1 : 0);
  }
}

void IterationMeans::add(const IterationMeans& other) {
  seconds_ += other.seconds_;
  sequences_ += other.sequences_;
  longest_ += other.longest_;
  context_ += other.context_;
  queries_ += other.queries_;
  padding_ += other.padding_;
  chunks_ += other.chunks_;
  chunk_tokens_ += other.chunk_tokens_;
  chunk_context_ += other.chunk_context_;
  samples_ += other.samples_;
}

BatchShape IterationMeans::shape(std::vector<Chunk>& chunks) const {
  BatchShape mean;
  chunks.clear();
  if (seconds_ <= 0) return mean;
  const auto whole = [](double figure) { return static_cast<std::int64_t>(std::llround(figure)); };
  if (chunks_ > 0) {
    const std::int64_t count = std::max<std::int64_t>(1, whole(chunks_ / seconds_));
    const std::int64_t tokens = std::max<std::int64_t>(1, whole(chunk_tokens_ / chunks_));
    const Chunk chunk{tokens, whole(chunk_context_ / chunks_), 2 * samples_ > chunks_};
    chunks.assign(static_cast<std::size_t>(count), chunk);
    mean.chunks = chunks;
  }
  mean.sequences = whole(sequences_ / seconds_);
  if (chunks.empty()) mean.sequences = std::max<std::int64_t>(1, mean.sequences);
  mean.queries = std::max<std::int64_t>(1, whole(queries_ / seconds_));
  if (mean.sequences > 0 && sequences_ > 0) {
    mean.longest = whole(longest_ / seconds_);
    const double each = context_ / sequences_;
    mean.context = std::clamp(whole(each * static_cast<double>(mean.sequences)), mean.longest,
                              mean.longest * mean.sequences);
  }
  mean.padding = whole(padding_ / seconds_);
  return mean;
}

}  // namespace orrery
