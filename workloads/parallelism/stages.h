// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/parallelism/parallel_config.h"

namespace orrery {

/// Layers of each of `stages` pipeline stages. Where they do not divide, one more goes to late
/// stages first, but to the last (it has the head) and to the first (embedding) only when all
/// others have one.
/// @throws config::ConfigError when there are fewer layers than stages.
std::vector<std::int64_t> stage_layers(std::int64_t layers, int stages);

/// A run of consecutive layers that one stage executes between a receive and a send.
struct LayerRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// ranges[stage][chunk]. Chunk c of stage p is the virtual stage c * pp + p.
/// @throws config::ConfigError when vpp > 1 and layers do not divide by pp * vpp.
std::vector<std::vector<LayerRange>> layer_ranges(std::int64_t layers,
                                                  const ParallelConfig& parallel);

}  // namespace orrery
