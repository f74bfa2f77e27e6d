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

std::vector<LayerRange> slice_layers(std::int64_t layers, const ParallelConfig& parallel) {
  const std::int64_t slices = std::int64_t{parallel.pp} * parallel.vpp;
  require(parallel.vpp == 1 || layers % slices == 0,
          std::vector<std::string>{"parallel.vpp", "parallel.pp"},
          std::to_string(layers) + " layers do not divide by pp * vpp = " + std::to_string(slices),
          {{}, divisors_near(layers, slices).notes});
  std::vector<LayerRange> ranges;
  std::int64_t first = 0;
  for (const std::int64_t count : stage_layers(layers, static_cast<int>(slices))) {
    ranges.push_back({.first = first, .count = count});
    first += count;
  }
  return ranges;
}

std::vector<std::vector<LayerRange>> layer_ranges(std::int64_t layers,
                                                  const ParallelConfig& parallel,
                                                  const Placement& placement) {
  const std::vector<LayerRange> of_slice = slice_layers(layers, parallel);
  std::vector<std::vector<LayerRange>> ranges(static_cast<std::size_t>(parallel.pp));
  for (int stage = 0; stage < parallel.pp; ++stage) {
    for (int chunk = 0; chunk < parallel.vpp; ++chunk) {
      const int slice = placement.slice({stage, chunk});
      ranges[static_cast<std::size_t>(stage)].push_back(
          of_slice.at(static_cast<std::size_t>(slice)));
    }
  }
  return ranges;
}

std::vector<std::vector<LayerRange>> layer_ranges(std::int64_t layers,
                                                  const ParallelConfig& parallel) {
  return layer_ranges(layers, parallel, Placement::round_robin(parallel.pp, parallel.vpp));
}

}  // namespace orrery
