// SPDX-License-Identifier: Apache-2.0
// The way of tokens to the rows of their experts and back, by TokenDispatcher.
#pragma once

#include <cstddef>
#include <vector>

#include "workloads/layers/parts/layer_parts.h"
#include "workloads/ops/step_list.h"

namespace orrery {

/// Whether the host waits for the numbers of rows that were counted, before tokens are sent. Where
/// rows are made behind that (flex, allgather), it waits for those that have come.
bool waits_before_dispatch(const LayerTask& task);
/// Tokens to the rows of their experts, wherever these are.
void dispatch(StepList& steps, const LayerTask& task);
/// Inference, behind what runs beside the dispatch in issue order. Of prompts the rows of experts
/// out of the tokens that have come; of one of two batches of decodes rows out of the buffer where
/// peers put them, by a kernel that waits for them (DeepEP csrc/kernels/internode_ll.cu).
void receive_dispatched(StepList& steps, const LayerTask& task);
/// Results back, the copies of each token added up, and to them what the steps `beside` gave.
void combine(StepList& steps, const LayerTask& task, const std::vector<std::size_t>& beside);
/// To the sums of a token what the steps `beside` gave.
void add_results(StepList& steps, const LayerTask& task, const std::vector<std::size_t>& beside);
/// Gradients of the sums to the rows of experts.
void combine_backward(StepList& steps, const LayerTask& task);
/// Gradients of rows back to the ranks of their tokens.
void dispatch_backward(StepList& steps, const LayerTask& task);
/// What comes behind that: where rows were made before the dispatch, those of a token added up.
void permute_backward(StepList& steps, const LayerTask& task);

}  // namespace orrery
