// SPDX-License-Identifier: Apache-2.0
// Rows of a mixture of experts on one rank: how many tokens it routes, sends and gets, and the
// shapes of its experts' products.
#pragma once

#include <cstdint>

#include "workloads/layers/parts/layer_parts.h"
#include "workloads/ops/kernels.h"

namespace orrery {

struct ExpertSoftware;

bool all_reduces(const LayerTask& task);
/// Whether a part is computed again, but not with all of the experts.
bool again_alone(const LayerTask& task, RecomputeModule part);
/// Whether tokens are gathered over etp themselves, not the rows that were made of them.
bool gathers_tokens(const LayerTask& task);
bool gathers_rows(const LayerTask& task);
/// Inference: whether prompts are sent token by token: their rows are made, and added up, where
/// they come to (SGLang python/sglang/srt/layers/moe/ep_moe/kernels.py, 2025: ep_scatter and
/// ep_gather around the products), and the kernels of the combine add up the results of ranks.
bool sends_tokens_once(const LayerTask& task);

/// Inference: whether the shared expert is one more of the routed ones, to which all tokens go.
/// SGLang models/deepseek_v2.py, determine_num_fused_shared_experts (2025): of 256 experts and a
/// shared one, not under expert parallelism.
bool shared_is_routed(const LayerTask& task);

/// Tokens that this rank routes.
std::int64_t routed_tokens(const LayerTask& task);
/// Token copies that this rank's experts get, over the mean of all ranks; with a capacity rows of
/// every rank, copies or not.
double skew_of(const LayerTask& task);
/// Copies of each routed token that this rank makes.
double copies_of(const LayerTask& task);
/// Columns of an expert on one of the ranks that share it.
std::int64_t split_width(const LayerTask& task);
/// Tokens whose copies this rank puts into the rows of experts.
std::int64_t permuted_tokens(const LayerTask& task);
/// Token copies that this rank sends out, and in balance receives.
std::int64_t sent_rows(const LayerTask& task);
/// Tokens that come to this rank where each comes once to a rank, one for all its experts there.
double received_tokens(const LayerTask& task);
/// Rows of its experts' products.
std::int64_t expert_rows(const LayerTask& task);
/// Experts that this rank holds.
std::int64_t local_experts(const LayerTask& task);

/// Products of its experts.
GroupedShape expert_up(const LayerTask& task);
GroupedShape expert_down(const LayerTask& task);

/// How the software of a training step does experts.
const ExpertSoftware& expert_software(const LayerTask& task);

}  // namespace orrery
