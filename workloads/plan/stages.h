// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/plan/parallel_config.h"
#include "workloads/plan/placement.h"

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

  std::int64_t end() const { return first + count; }
  bool holds(std::int64_t layer) const { return first <= layer && layer < end(); }
};

/// Layers of each slice of a model, in order, as parallel.layout deals them out: equally many,
/// or what it says.
/// @param modules of multi-token prediction that the model trains with
/// @throws config::ConfigError at the keys that do not fit the layers
std::vector<LayerRange> slice_layers(std::int64_t layers, const ParallelConfig& parallel,
                                     const Placement& placement, int modules = 0);

/// The slice that has the modules of multi-token prediction: the last where no layout says.
int module_slice(const ParallelConfig& parallel, const Placement& placement);

/// ranges[stage][chunk] of slices that are placed so.
/// @throws config::ConfigError as slice_layers does.
std::vector<std::vector<LayerRange>> layer_ranges(std::int64_t layers,
                                                  const ParallelConfig& parallel,
                                                  const Placement& placement, int modules = 0);
/// The same with slices dealt out in turn: chunk c of stage p holds slice c * pp + p.
std::vector<std::vector<LayerRange>> layer_ranges(std::int64_t layers,
                                                  const ParallelConfig& parallel);

/// Numbers of the layers of a stage, chunk by chunk.
std::vector<std::int64_t> layers_of_stage(std::int64_t layers, const ParallelConfig& parallel,
                                          const Placement& placement, int stage, int modules = 0);
/// Layers of a stage of a pipeline with one chunk a stage, as inference has.
LayerRange layers_of_stage(std::int64_t layers, const ParallelConfig& parallel, int stage);

}  // namespace orrery
