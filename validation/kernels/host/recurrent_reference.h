// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace orrery::measure {

/// What one head of a gated delta network is given for a new token.
struct DeltaToken {
  std::vector<double> state;  ///< [key columns][value columns]
  std::vector<double> query, key, value;
  double decay_gate = 0;  ///< states decay by e^-softplus of it
  double step_gate = 0;   ///< corrections count by its sigmoid
};
/// What one head of a recurrence makes of it.
struct Recurred {
  std::vector<double> state, out;
};
/// The gated delta rule (Yang et al., arXiv 2412.06464, equation 10) in double, with keys and
/// queries of length 1 and queries over the square root of their columns, step by step as
/// flash-linear-attention writes it (fused_recurrent_gated_delta_rule).
Recurred delta_update(const DeltaToken& token);

/// What one head of a Mamba-2 is given for a new token.
struct MambaToken {
  std::vector<double> state;  ///< [columns of the head][columns of the state]
  std::vector<double> x, b, c;
  double step_gate = 0;  ///< softplus of it is the step
};
/// selective_state_update of mamba_ssm in double, with A = -1, D = 1, no bias and no gate.
Recurred mamba_update(const MambaToken& token);

/// SiLU of the sum of weights and inputs, the oldest first: one result of a causal convolution.
double causal_convolution(const std::vector<double>& inputs, const std::vector<double>& weights);

/// The `wanted` largest, in falling order.
std::vector<float> largest(std::vector<float> scores, std::size_t wanted);

}  // namespace orrery::measure
