// SPDX-License-Identifier: Apache-2.0
#include "host/recurrent_reference.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace orrery::measure {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return x > 30 ? x : std::log1p(std::exp(x)); }

/// The vector at length 1 times `scale`.
std::vector<double> unit(std::vector<double> vector, double scale) {
  constexpr double kEpsilon = 1e-6;
  double squares = kEpsilon;
  for (const double x : vector) squares += x * x;
  for (double& x : vector) x *= scale / std::sqrt(squares);
  return vector;
}

/// vector matrix, whose rows are as many as the vector has elements.
std::vector<double> times(const std::vector<double>& vector, const std::vector<double>& matrix,
                          std::size_t columns) {
  std::vector<double> result(columns, 0.0);
  for (std::size_t row = 0; row < vector.size(); ++row)
    for (std::size_t c = 0; c < columns; ++c) result[c] += vector[row] * matrix[row * columns + c];
  return result;
}

}  // namespace

Recurred delta_update(const DeltaToken& token) {
  const std::size_t columns = token.value.size();
  const std::vector<double> key = unit(token.key, 1);
  const std::vector<double> query =
      unit(token.query, 1 / std::sqrt(static_cast<double>(token.query.size())));
  Recurred result;
  result.state = token.state;
  for (double& s : result.state) s *= std::exp(-softplus(token.decay_gate));
  const std::vector<double> known = times(key, result.state, columns);
  for (std::size_t row = 0; row < key.size(); ++row)
    for (std::size_t c = 0; c < columns; ++c)
      result.state[row * columns + c] +=
          key[row] * sigmoid(token.step_gate) * (token.value[c] - known[c]);
  result.out = times(query, result.state, columns);
  return result;
}

Recurred mamba_update(const MambaToken& token) {
  const std::size_t columns = token.b.size();
  const double step = softplus(token.step_gate);
  Recurred result;
  result.state.reserve(token.state.size());
  result.out.reserve(token.x.size());
  for (std::size_t row = 0; row < token.x.size(); ++row) {
    double sum = token.x[row];
    for (std::size_t c = 0; c < columns; ++c) {
      const double s =
          std::exp(-step) * token.state[row * columns + c] + step * token.x[row] * token.b[c];
      result.state.push_back(s);
      sum += s * token.c[c];
    }
    result.out.push_back(sum);
  }
  return result;
}

double causal_convolution(const std::vector<double>& inputs, const std::vector<double>& weights) {
  double sum = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) sum += inputs[i] * weights[i];
  return sum * sigmoid(sum);
}

std::vector<float> largest(std::vector<float> scores, std::size_t wanted) {
  const auto end = scores.begin() + static_cast<std::ptrdiff_t>(wanted);
  if (wanted < scores.size()) std::nth_element(scores.begin(), end, scores.end(), std::greater<>());
  scores.erase(end, scores.end());
  std::sort(scores.begin(), scores.end(), std::greater<>());
  return scores;
}

}  // namespace orrery::measure
