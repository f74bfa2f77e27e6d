// SPDX-License-Identifier: Apache-2.0
// Kernels of Mamba-2 (arXiv 2405.21060) as state-spaces/mamba launches them (mamba_ssm 2.2,
// ops/triton/ssd_*.py, layernorm_gated.py, selective_state_update.py; causal_conv1d 1.5): a
// sequence is cut into chunks; products inside of chunks, and a scan of their states over chunks.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/graph/kernel.h"
#include "workloads/models/llm_config.h"

namespace orrery {

/// What one rank scans.
struct ScanShape {
  std::int64_t sequences = 1;
  std::int64_t query = 1;   ///< tokens of each sequence
  std::int64_t length = 1;  ///< tokens of a chunk
  std::int64_t heads = 1, groups = 1, head_dim = 1, state = 1;
  double bytes = 2;  ///< bytes of an element of x, B, C, dt and z

  std::int64_t tokens() const { return sequences * query; }
  std::int64_t chunks() const { return sequences * ((query + length - 1) / length); }
  std::int64_t inner() const { return heads * head_dim; }
  std::int64_t channels() const { return inner() + 2 * groups * state; }
  /// Elements of the states of one sequence, or of one chunk.
  std::int64_t states() const { return inner() * state; }
  /// Keys of the same chunk that a token sees on average, itself included.
  double earlier() const { return static_cast<double>(length + 1) / 2; }
};
/// What one of tp ranks has of a mixer: heads and groups are split, but one group alone is copied
/// to all (vLLM, layers/mamba/mamba_mixer2.py, extra_groups_for_head_shards).
MambaConfig on_rank(MambaConfig mamba, int tp);
ScanShape scan_shape(const MambaConfig& mamba, int tp, std::int64_t sequences, std::int64_t query,
                     double bytes);

/// Causal convolution with SiLU over x, B and C, and its gradients.
Kernel conv_forward(const ScanShape& s, std::int64_t taps);
Kernel conv_backward(const ScanShape& s, std::int64_t taps);

/// What backward passes compute again: steps and decays by token, states of chunks, their scan,
/// products of C and B inside of chunks.
std::vector<Kernel> scan_states(const ScanShape& s);
/// Outputs of all tokens from states and products; in training also times SiLU of the gate z.
Kernel scan_outputs(const ScanShape& s);
Kernel gated_scan_outputs(const ScanShape& s);
/// Gradients of x, B, C and dt, behind scan_states().
std::vector<Kernel> scan_backward(const ScanShape& s);

/// Norm by groups of the product with SiLU of z.
Kernel gated_norm(const ScanShape& s);
/// The product with SiLU of z alone.
Kernel gate_outputs(const ScanShape& s);
/// Norm by groups of what the scan has multiplied, and its gradients.
Kernel group_norm(const ScanShape& s);
Kernel group_norm_backward(const ScanShape& s);
/// Gradients of z and of the scan's outputs (_chunk_scan_bwd_dz).
Kernel gate_backward(const ScanShape& s);

/// New tokens of a decode, one after the other: the state is read once and written for each token,
/// so that draft tokens may be taken back.
/// @param state_bytes bytes of an element of the state
Kernel conv_update(const ScanShape& s, std::int64_t taps);
Kernel state_update(const ScanShape& s, double state_bytes);

}  // namespace orrery
