// SPDX-License-Identifier: Apache-2.0
// The products of experts and what runs between them, on the rows of one rank.
#pragma once

#include <cstddef>

#include "workloads/layers/parts/layer_parts.h"
#include "workloads/ops/step_list.h"

namespace orrery {

void experts_forward(StepList& steps, const LayerTask& task);
/// What copies rows out of filled ones, behind the data gradient of the first matrix.
void fill_backward(StepList& steps, const LayerTask& task);
/// All but the weight gradient of the first matrix.
/// @return the step that makes the gradient which that one needs
std::size_t experts_backward(StepList& steps, const LayerTask& task);
void first_weight_gradient(StepList& steps, const LayerTask& task, std::size_t gradient);

}  // namespace orrery
