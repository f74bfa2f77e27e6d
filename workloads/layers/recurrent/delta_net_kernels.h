// SPDX-License-Identifier: Apache-2.0
// Kernels of gated delta networks (Yang et al. 2024, arXiv 2412.06464) as flash-linear-attention
// launches them (fla/ops/gated_delta_rule/chunk.py, common/chunk_delta_h.py, common/chunk_o.py,
// utils/solve_tril.py, modules/l2norm.py) and engines with it: a sequence is cut into chunks of 64;
// inside of a chunk the rule is a triangular system, between chunks a scan of states, one chunk
// after the other in one thread block for each head and columns of values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "workloads/layers/parts/mixer.h"
#include "workloads/layers/parts/rank_work.h"

namespace orrery {

/// What one rank works on.
struct DeltaShape {
  std::int64_t sequences = 1;
  std::int64_t query = 1;    ///< tokens of each sequence
  std::int64_t length = 64;  ///< tokens of a chunk
  std::int64_t key_heads = 1, heads = 1, key_dim = 1, value_dim = 1;
  /// Columns of queries, or of keys, that products of chunks read: training copies those of a key
  /// head for each of its value heads.
  std::int64_t product_keys = 1;
  double bytes = 2;  ///< bytes of an element of queries, keys, values and gates

  std::int64_t tokens() const { return sequences * query; }
  std::int64_t chunks() const { return sequences * ((query + length - 1) / length); }
  std::int64_t keys() const { return key_heads * key_dim; }
  std::int64_t values() const { return heads * value_dim; }
  /// Columns of what has those of a key for each value head.
  std::int64_t wide_keys() const { return heads * key_dim; }
  std::int64_t channels() const { return 2 * keys() + values(); }
  /// Elements of the states of one sequence, or of one chunk.
  std::int64_t states() const { return wide_keys() * value_dim; }
};
DeltaShape delta_shape(const DeltaNetConfig& net, int tp, std::int64_t sequences,
                       std::int64_t query, double bytes);

/// Bytes of an element of a state: fp32 (`mamba_ssm_dtype` of the models that are known).
inline constexpr double kDeltaStateBytes = 4;

/// What a sequence keeps: its states, and the inputs in 16 bits that convolutions look back at.
SequenceCache delta_cache(const DeltaNetConfig& net, int tp);
/// The last states of prompts are kept by the scan that makes them, and where a prompt goes on
/// those of its earlier tokens read.
void keep_states(Kernel& scan, const DeltaShape& s, const AttentionPart& part);

/// Causal convolution with SiLU over queries, keys and values, and its gradients.
Kernel conv_forward(const DeltaShape& s, std::int64_t taps);
Kernel conv_backward(const DeltaShape& s, std::int64_t taps);
/// Decays and steps of each head from their projections, in fp32, and their gradients.
Kernel delta_gates(const DeltaShape& s);
Kernel delta_gates_backward(const DeltaShape& s);
/// Queries and keys of length 1, and their gradients.
Kernel unit_keys(const DeltaShape& s);
Kernel unit_keys_backward(const DeltaShape& s);

/// Sums of decays, products of keys inside of chunks and the inverse of their triangles.
std::vector<Kernel> delta_triangles(const DeltaShape& s);
/// The inverse of unit triangles of products: blocks of 16 rows one after the other, then a block
/// at distance d from the diagonal by d + 1 products of blocks, in fp32 on vector lanes (FLA's
/// setting of their precision is ieee).
Kernel delta_triangle(const DeltaShape& s);
/// What backward passes compute again: keys and values as the triangles leave them (w and u).
Kernel delta_chunk_values(const DeltaShape& s);
/// States before each chunk, and values less what the states already give.
Kernel delta_states(const DeltaShape& s);
Kernel delta_outputs(const DeltaShape& s);
/// All chunks of a prompt, forward; the scan over them is the one at kDeltaStates.
std::vector<Kernel> delta_chunks(const DeltaShape& s);
inline constexpr std::size_t kDeltaStates = 4;
/// All of them and the norm of queries and keys in one kernel, a thread block for each head and
/// sequence (FlashInfer's chunk_gated_delta_rule; gdn_prefill.py).
Kernel fused_delta_rule(const DeltaShape& s);
/// Gradients of queries, keys, values, decays and steps, behind the two above.
std::vector<Kernel> delta_backward(const DeltaShape& s);

/// Norm by heads of the outputs, times SiLU of the gate, and its gradients.
Kernel gated_norm(const DeltaShape& s);
Kernel gated_norm_backward(const DeltaShape& s);

/// New tokens of a decode, one after the other: the state is read once and written for each token,
/// so that draft tokens may be taken back (fused_recurrent.py).
/// @param state_bytes bytes of an element of the state
Kernel conv_update(const DeltaShape& s, std::int64_t taps);
Kernel state_update(const DeltaShape& s, double state_bytes);

}  // namespace orrery
