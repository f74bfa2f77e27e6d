// SPDX-License-Identifier: Apache-2.0
// The products of experts and what runs between them, on the rows of one rank.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "workloads/layers/parts/layer_op.h"
#include "workloads/software/expert_software.h"

namespace orrery {

/// Steps of a pass through experts that later ones need.
struct ExpertSteps {
  std::size_t input = StepList::kStart;  ///< makes what router and shared experts read
  std::vector<std::size_t> shared = {};  ///< makes what shared experts give; none: there are none
  std::size_t gradient = StepList::kStart;  ///< makes the gradient of what first matrices give
};

/// From rows to rows.
std::vector<LayerOp> expert_ops(const LayerTask& task, const std::shared_ptr<ExpertSteps>& earlier);
/// The weight gradient of the first matrices, if the software has it at this `place`.
LayerOp first_weight_gradient(const LayerTask& task, ExpertGradients place,
                              const std::shared_ptr<ExpertSteps>& earlier);

}  // namespace orrery
