// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "device/random.h"

namespace orrery::measure {

/// A buffer that the device filled with device/random.cuh, known to the host by its formula.
struct RandomBuffer {
  Format format = Format::kBf16;
  Data data = Data::kRandom;
  std::uint64_t seed = 0;

  double at(std::int64_t index) const {
    return stored_value(format, data, seed, static_cast<std::uint64_t>(index));
  }
};

/// Dot product in double of k elements from a_start of `a` and from b_start of `b`: one entry of
/// out[m,n] = in[m,k] x weight[n,k]^T.
double dot(const RandomBuffer& a, std::int64_t a_start, const RandomBuffer& b, std::int64_t b_start,
           std::int64_t k);

/// One query row of attention over `length` keys and values.
struct AttentionRow {
  RandomBuffer query, key, value;
  std::int64_t query_start = 0;         ///< first of head_dim elements in a row
  std::int64_t kv_start = 0;            ///< index of key 0 and of value 0
  std::int64_t kv_stride = 0;           ///< elements from one key to the next
  const std::int32_t* pages = nullptr;  ///< paged: key j is in page pages[j / page_size] ...
  std::int64_t page_size = 0, page_stride = 0;  ///< ... of page_stride elements, at j % page_size
  std::int64_t length = 0;
  int head_dim = 0;
  double scale = 1;  ///< factor of the scores before the softmax
};

/// softmax(scale q K^T) V of the row, in double: head_dim numbers.
std::vector<double> attention(const AttentionRow& row);

std::vector<double> softmax(const std::vector<double>& row);
/// x / sqrt(mean(x^2) + epsilon) * weight (Zhang and Sennrich, arXiv 1910.07467, equation 4).
std::vector<double> rms_norm(const std::vector<double>& row, const std::vector<double>& weight,
                             double epsilon);
/// silu(gate) * up, the gate of SwiGLU (Shazeer, arXiv 2002.05202, equation 5 without its weights).
double swiglu(double gate, double up);
/// The angle by which rotary embedding turns pair `pair` of a head at `position`: position *
/// base^(-2 pair / head_dim) (Su et al., arXiv 2104.09864, equation 15).
double rotary_angle(std::int64_t position, int pair, int head_dim, double base);

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

/// Collects results against their reference; a kernel passes as a whole or is never timed.
class Comparison {
 public:
  void add(double got, double expected);

  /// ||got - expected|| / ||expected|| over all entries; NaN when a result is.
  double relative_error() const;
  /// The largest single error in units of the expected values' root mean square.
  double worst_error() const;

  /// @throws WrongResult, naming `what`, when the relative error exceeds `tolerance`, one entry is
  /// wrong by more than 8 times that, a result is not a number, or nothing was compared.
  void require(double tolerance, const std::string& what) const;

 private:
  double error_squares_ = 0, expected_squares_ = 0, largest_error_ = 0;
  std::int64_t count_ = 0;
};

/// The error that a right GEMM may show against exact arithmetic on the same stored inputs, with a
/// bf16 result (relative rounding 2^-9) unless tf32. Hopper adds fp8 products to an accumulator of
/// about 14 bits, so that its error grows with k (DeepSeek-V3, arXiv 2412.19437, section 3.3.2:
/// about 2 % at k = 4096).
double gemm_tolerance(Format format, std::int64_t k);

/// `count` (row, column) places of a rows x columns matrix: the corners, then seeded random ones.
struct Place {
  std::int64_t row = 0, column = 0;
};
std::vector<Place> sample_places(std::int64_t rows, std::int64_t columns, int count,
                                 std::uint64_t seed);

}  // namespace orrery::measure
