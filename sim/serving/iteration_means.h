// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/serving/iteration.h"

namespace orrery {

/// Times by which iterations are longer than predicted.
struct Slowness {
  double decodes = 1;  ///< factor of iterations without prompts
  double prompts = 1;  ///< factor of iterations with prompts

  double of(const BatchShape& shape) const { return shape.chunks.empty() ? decodes : prompts; }
};

/// Iterations of one kind, in the mean over their time.
class IterationMeans {
 public:
  void add(const BatchShape& shape, Picoseconds time);
  void add(const IterationMeans& other);

  /// All their time, in seconds.
  double seconds() const { return seconds_; }
  /// The mean shape. @param chunks its prompts, which it refers to
  BatchShape shape(std::vector<Chunk>& chunks) const;

 private:
  double seconds_ = 0;
  /// Sums over all iterations of figures times seconds.
  double sequences_ = 0, longest_ = 0, context_ = 0, queries_ = 0, padding_ = 0;
  double chunks_ = 0, chunk_tokens_ = 0, chunk_context_ = 0, samples_ = 0;
};

/// Those without prompts, and those with some.
struct IterationKinds {
  IterationMeans decodes, prompts;

  IterationMeans& of(const BatchShape& shape) { return shape.chunks.empty() ? decodes : prompts; }
  void add(const IterationKinds& other) {
    decodes.add(other.decodes);
    prompts.add(other.prompts);
  }
};

}  // namespace orrery
