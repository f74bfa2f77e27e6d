// SPDX-License-Identifier: Apache-2.0
// Kernels of Kimi delta attention (arXiv 2510.26692) as flash-linear-attention launches them
// (fla/ops/kda/chunk.py, chunk_intra.py, gate.py; common/chunk_delta_h.py; gla/chunk.py): those of
// gated delta networks, with a decay for each column of keys.
#pragma once

#include <vector>

#include "workloads/layers/recurrent/delta_net_kernels.h"

namespace orrery {

/// Decays of all columns of keys, summed from the begin of each chunk, and steps of heads, in fp32.
Kernel kimi_decays(const DeltaShape& s);
/// Chunks of a prompt: products of queries and keys with keys, blocks of 16 tokens on the diagonal
/// on vector lanes; triangles; keys and values behind them; states; outputs. The scan over chunks
/// is the one at kKimiStates.
std::vector<Kernel> kimi_chunks(const DeltaShape& s);
inline constexpr std::size_t kKimiStates = 3;
/// What backward passes compute again of these, in fp32 decays, keys and values behind triangles,
/// and states.
std::vector<Kernel> kimi_again(const DeltaShape& s);
/// Gradients of queries, keys, values, decays and steps (fla/ops/kda/chunk_bwd.py: dAv,
/// bwd_dhu, wy_dqkg_fused, bwd_intra; gate.py), behind the above.
std::vector<Kernel> kimi_backward(const DeltaShape& s);
/// New tokens of a decode.
Kernel kimi_update(const DeltaShape& s, double state_bytes);

}  // namespace orrery
