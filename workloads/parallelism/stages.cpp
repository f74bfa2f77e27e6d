// SPDX-License-Identifier: Apache-2.0
#include "workloads/parallelism/stages.h"

#include <cstddef>
#include <string>

#include "workloads/require.h"

namespace orrery {

std::vector<std::int64_t> stage_layers(std::int64_t layers, int stages) {
  require(layers >= stages, "parallel.pp",
          std::to_string(stages) + " pipeline stages for " + std::to_string(layers) + " layers",
          {std::to_string(layers), {}});
  std::vector<std::int64_t> count(static_cast<std::size_t>(stages), layers / stages);
  std::int64_t left = layers % stages;
  for (std::size_t stage = count.size() - 1; stage-- > 1 && left > 0; --left) ++count[stage];
  // All stages but one have one more: the head is a larger GEMM than the embedding's lookup, so the
  // last stays short.
  if (left > 0) ++count.front();
  return count;
}

std::vector<std::vector<LayerRange>> layer_ranges(std::int64_t layers,
                                                  const ParallelConfig& parallel) {
  const std::int64_t virtual_stages = std::int64_t{parallel.pp} * parallel.vpp;
  require(parallel.vpp == 1 || layers % virtual_stages == 0,
          std::vector<std::string>{"parallel.vpp", "parallel.pp"},
          std::to_string(layers) +
              " layers do not divide by pp * vpp = " + std::to_string(virtual_stages),
          {{}, divisors_near(layers, virtual_stages).notes});
  const std::vector<std::int64_t> counts = stage_layers(layers, parallel.pp);
  std::vector<std::vector<LayerRange>> ranges(counts.size());
  std::int64_t first = 0;
  for (int chunk = 0; chunk < parallel.vpp; ++chunk) {
    for (std::size_t stage = 0; stage < counts.size(); ++stage) {
      const std::int64_t count = counts[stage] / parallel.vpp;
      ranges[stage].push_back({.first = first, .count = count});
      first += count;
    }
  }
  return ranges;
}

}  // namespace orrery
