// SPDX-License-Identifier: Apache-2.0
#include "host/reference.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "host/measurement.h"

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

double dot(const RandomBuffer& a, std::int64_t a_start, const RandomBuffer& b, std::int64_t b_start,
           std::int64_t k) {
  double sum = 0;
  for (std::int64_t i = 0; i < k; ++i) sum += a.at(a_start + i) * b.at(b_start + i);
  return sum;
}

std::vector<double> softmax(const std::vector<double>& row) {
  const double largest = *std::max_element(row.begin(), row.end());
  std::vector<double> result;
  result.reserve(row.size());
  double sum = 0;
  for (const double x : row) {
    result.push_back(std::exp(x - largest));
    sum += result.back();
  }
  for (double& x : result) x /= sum;
  return result;
}

std::vector<double> attention(const AttentionRow& row) {
  const auto start_of = [&row](std::int64_t key) {
    if (row.pages == nullptr) return row.kv_start + key * row.kv_stride;
    return row.kv_start + row.pages[key / row.page_size] * row.page_stride +
           key % row.page_size * row.kv_stride;
  };
  std::vector<double> query;
  query.reserve(static_cast<std::size_t>(row.head_dim));
  for (int d = 0; d < row.head_dim; ++d) query.push_back(row.query.at(row.query_start + d));
  std::vector<double> scores;
  scores.reserve(static_cast<std::size_t>(row.length));
  for (std::int64_t key = 0; key < row.length; ++key) {
    double score = 0;
    for (int d = 0; d < row.head_dim; ++d) {
      score += query[static_cast<std::size_t>(d)] * row.key.at(start_of(key) + d);
    }
    scores.push_back(row.scale * score);
  }
  const std::vector<double> weights = softmax(scores);
  std::vector<double> result(static_cast<std::size_t>(row.head_dim), 0.0);
  for (std::int64_t key = 0; key < row.length; ++key) {
    const double weight = weights[static_cast<std::size_t>(key)];
    for (int d = 0; d < row.head_dim; ++d) {
      result[static_cast<std::size_t>(d)] += weight * row.value.at(start_of(key) + d);
    }
  }
  return result;
}

std::vector<double> rms_norm(const std::vector<double>& row, const std::vector<double>& weight,
                             double epsilon) {
  double squares = 0;
  for (const double x : row) squares += x * x;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(row.size()) + epsilon);
  std::vector<double> result;
  result.reserve(row.size());
  for (std::size_t i = 0; i < row.size(); ++i) result.push_back(row[i] * scale * weight[i]);
  return result;
}

double swiglu(double gate, double up) { return gate / (1 + std::exp(-gate)) * up; }

double rotary_angle(std::int64_t position, int pair, int head_dim, double base) {
  return static_cast<double>(position) * std::pow(base, -2.0 * pair / head_dim);
}

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

void Comparison::add(double got, double expected) {
  const double error = std::abs(got - expected);
  error_squares_ += error * error;
  expected_squares_ += expected * expected;
  // A NaN must stay: std::max would drop it.
  if (!(error <= largest_error_)) largest_error_ = error;
  ++count_;
}

double Comparison::relative_error() const {
  if (error_squares_ == 0) return 0;
  return std::sqrt(error_squares_ / expected_squares_);
}

double Comparison::worst_error() const {
  if (error_squares_ == 0) return 0;
  return largest_error_ / std::sqrt(expected_squares_ / static_cast<double>(count_));
}

void Comparison::require(double tolerance, const std::string& what) const {
  if (count_ == 0) throw WrongResult(what + ": nothing was compared");
  if (relative_error() <= tolerance && worst_error() <= 8 * tolerance) return;
  throw WrongResult(what + ": relative error " + std::to_string(relative_error()) +
                    ", worst entry " + std::to_string(worst_error()) + ", tolerance " +
                    std::to_string(tolerance));
}

double gemm_tolerance(Format format, std::int64_t k) {
  if (format == Format::kE4m3) return 0.01 + 5e-6 * static_cast<double>(k);
  return format == Format::kBf16 ? 0.01 : 0.002;
}

std::vector<Place> sample_places(std::int64_t rows, std::int64_t columns, int count,
                                 std::uint64_t seed) {
  std::vector<Place> places = {{0, 0}, {0, columns - 1}, {rows - 1, 0}, {rows - 1, columns - 1}};
  for (std::uint64_t i = 0; places.size() < static_cast<std::size_t>(count); ++i) {
    const auto pick = [&](std::uint64_t n, std::int64_t size) {
      return static_cast<std::int64_t>(random_bits(seed, n) % static_cast<std::uint64_t>(size));
    };
    places.push_back({pick(2 * i, rows), pick(2 * i + 1, columns)});
  }
  return places;
}

}  // namespace orrery::measure
