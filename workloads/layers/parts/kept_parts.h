// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>

#include "workloads/layers/parts/kept_tensors.h"

/// Helpers that the kept tensors of layers share.
namespace orrery::kept {

/// A tensor that is made again with one of these parts as well.
Tensor of_modules(Tensor tensor, const LayerTask& task,
                  std::initializer_list<RecomputeModule> modules);
Tensor of_modules(const char* name, const LayerTask& task, double bytes,
                  std::initializer_list<RecomputeModule> modules);
/// Whether each operator of PyTorch saves what its gradient needs.
bool saves_by_operator(const LayerTask& task);
/// Columns that are kept of the function of an MLP: its input and, where that is gated, the gate's,
/// and what the function gives where the product with it is an operator of its own.
double function_columns(const LayerTask& task);
/// Rows of the experts of a rank.
double routed_rows(const LayerTask& task);

}  // namespace orrery::kept
