// SPDX-License-Identifier: Apache-2.0
// Training of a layer whose attention and MLP stand beside each other (GPT-J; PaLM, arXiv
// 2204.02311; MegaScale, arXiv 2402.15627): one residual adds what both give, which tensor parallel
// ranks sum up once. They read one norm, gathered once, or one each (GPT-NeoX, Falcon's newer
// decoders), where each gathers its own (EleutherAI/gpt-neox, megatron/model/transformer.py:
// gpt_j_residual without gpt_j_tied).
#pragma once

#include <vector>

#include "workloads/layers/parts/layer_op.h"

namespace orrery {

std::vector<LayerOp> parallel_block(const LayerTask& task);

}  // namespace orrery
