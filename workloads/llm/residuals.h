// SPDX-License-Identifier: Apache-2.0
// What connects the halves of layers: one residual stream, several that hyper-connections mix, or
// mixtures of what blocks of layers gave.
#pragma once

#include <cstdint>
#include <string>

#include "workloads/llm/kept_tensors.h"
#include "workloads/llm/layer_parts.h"
#include "workloads/llm/step_list.h"

namespace orrery {

/// Adds the block's output to the residual stream. In inference the next norm does it.
void residual_forward(StepList& steps, const std::string& name, const LayerTask& task,
                      std::int64_t rows, KeptTensor mask);

/// An addition passes its gradient on as it is; dropout masks the block's.
void residual_backward(StepList& steps, const std::string& name, const LayerTask& task,
                       KeptTensor mask);

/// Hyper-connections: the input of a half is a mixture of the residual streams by weights that all
/// of them give (and Sinkhorn steps balance), and its output goes to all of them, mixed anew.
void hyper_connection_in(StepList& steps, const LayerTask& task);

void hyper_connection_out(StepList& steps, const LayerTask& task, std::int64_t rows);

/// Attention residuals: the input of a half is a mixture of what blocks of layers gave, weighed by
/// a softmax of the products of their norms with one learned query.
void residual_mixture(StepList& steps, const LayerTask& task);

}  // namespace orrery
