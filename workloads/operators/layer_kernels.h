// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/layers/parts/layer_op.h"

namespace orrery {

/// The kernels of a part of a layer on one rank that holds all of it, in issue order.
inline std::vector<Kernel> layer_kernels(std::vector<LayerOp> (*part)(const LayerTask& task),
                                         const LlmConfig& model, std::int64_t tokens,
                                         Precision precision) {
  LayerConfig layer;
  layer.moe = model.has_moe();
  RankWork work;
  work.batch.phase = Phase::kPrefill;
  work.batch.query = work.batch.context = tokens;
  work.formats.precision = precision;
  const LayerTask task{model, layer, work};
  const StepList steps = forward_pass(task, part(task));
  std::vector<Kernel> kernels;
  kernels.reserve(steps.steps().size());
  for (const Step& step : steps.steps())
    if (step.kernel() != nullptr) kernels.push_back(*step.kernel());
  return kernels;
}

}  // namespace orrery
