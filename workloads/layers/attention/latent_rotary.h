// SPDX-License-Identifier: Apache-2.0
// How training puts queries, keys and values of latent attention together (Megatron-LM 003b4ce,
// core/transformer/multi_latent_attention.py: qkv_up_proj_and_rope_apply).
#pragma once

#include "workloads/layers/parts/layer_parts.h"
#include "workloads/ops/step_list.h"

namespace orrery {

/// Rotary positions of queries and keys, and the copies around them, or their gradients.
void rotate_trained(StepList& steps, const LayerTask& task, bool forward);

}  // namespace orrery
