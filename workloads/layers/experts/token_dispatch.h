// SPDX-License-Identifier: Apache-2.0
// The way of tokens to the rows of their experts and back, by TokenDispatcher.
#pragma once

#include <memory>
#include <vector>

#include "workloads/layers/experts/experts.h"

namespace orrery {

/// Whether the host waits for the numbers of rows that were counted, before tokens are sent. Where
/// rows are made behind that (flex, allgather), it waits for those that have come.
bool waits_before_dispatch(const LayerTask& task);
/// Rows that are made of tokens in front of the dispatch. Gradients of rows are added up by token.
std::vector<LayerOp> permute_ops(const LayerTask& task);
/// Tokens, or rows, to the ranks of their experts.
std::vector<LayerOp> dispatch_ops(const LayerTask& task);
/// Inference, behind what runs beside the dispatch in issue order. Of prompts the rows of experts
/// out of the tokens that have come; of one of two batches of decodes rows out of the buffer where
/// peers put them, by a kernel that waits for them (DeepEP csrc/kernels/internode_ll.cu).
void receive_dispatched(StepList& steps, const LayerTask& task);
/// Results back, the copies of each token added up.
/// @param earlier null: nothing else is added to the sums here
std::vector<LayerOp> combine_ops(const LayerTask& task,
                                 const std::shared_ptr<ExpertSteps>& earlier);
/// To the sums of a token what shared experts gave.
LayerOp add_shared(const std::shared_ptr<ExpertSteps>& earlier);

}  // namespace orrery
