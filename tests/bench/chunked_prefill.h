// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "sim/app/pricing/step_pricer.h"

namespace orrery::bench {

/// A trace of requests, made up: lengths spread as those of conversations, arrivals at random. Rate
/// and mean lengths are about those of the conversations that Azure published in 2023.
struct TraceLoad {
  int requests = 10'000;
  double per_second = 5.5;
  double prompt = 1000, prompt_spread = 1.0;  ///< median, and deviation of the logarithm
  double output = 150, output_spread = 0.8;
  std::uint64_t seed = 1;
};

/// Continuous batching with chunked prefill on one instance, as vLLM's scheduler of version 1 does
/// it: decodes first, then prompts as they came, in pieces that fill 8,192 tokens; 256 sequences at
/// most. `time` is asked once an iteration. @return iterations
std::int64_t run_chunked_prefill(const TraceLoad& load,
                                 const std::function<Picoseconds(const BatchShape&)>& time);

/// CPU time that the steps of a trace took, those that found all prices and those that did not.
struct Asked {
  double hit_seconds = 0, miss_seconds = 0, longest_miss = 0;
  double hits = 0, misses = 0;
};
Asked ask(StepPricer& pricer, const TraceLoad& load);

}  // namespace orrery::bench
