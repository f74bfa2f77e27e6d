// SPDX-License-Identifier: Apache-2.0
#include "workloads/requests/lengths.h"

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <charconv>
#include <cmath>
#include <sstream>
#include <utility>

#include "sim/config/byte_source.h"
#include "sim/config/diagnostics.h"
#include "sim/config/schema.h"
#include "sim/units/hash.h"

namespace orrery {
namespace {

constexpr double kMostTokensDrawn = 1e8;
const double kNinety = 1.2815515655446004;  // 0.9 quantile of the standard normal distribution

/// A standard normal number.
double draw_normal(std::uint64_t& state) {
  return std::sqrt(2.0) * boost::math::erf_inv(2 * next_uniform(state) - 1);
}

std::int64_t rounded(double tokens) {
  return std::llround(std::clamp(tokens, 1.0, kMostTokensDrawn));
}

int forms(const Lengths& l) {
  return int(l.fixed.has_value()) + int(!l.uniform.empty()) + int(l.lognormal.has_value()) +
         int(!l.empirical.empty());
}

}  // namespace

/// With x = log(p90 / mean): x = z s - s^2 / 2, of which the smaller s is meant; x = z s of a
/// median.
std::optional<double> Lognormal::sigma() const {
  if (median)
    return p90 > *median ? std::optional(std::log(p90 / *median) / kNinety) : std::nullopt;
  const double x = std::log(p90 / mean.value_or(1));
  const double root = kNinety * kNinety - 2 * x;
  if (x <= 0 || root < 0) return std::nullopt;
  return kNinety - std::sqrt(root);
}

const config::Schema<Lognormal>& Lognormal::schema() {
  static const auto schema =
      config::Schema<Lognormal>("lognormal", "lognormal lengths by two figures")
          .optional("mean", &Lognormal::mean, "mean, in tokens",
                    config::between(1, kMostTokensDrawn))
          .optional("median", &Lognormal::median, "median, in the place of the mean",
                    config::between(1, kMostTokensDrawn))
          .required("p90", &Lognormal::p90, "what nine of ten do not exceed, in tokens",
                    config::between(1, kMostTokensDrawn))
          .check(
              "needs either mean or median",
              [](const Lognormal& l) { return l.mean.has_value() != l.median.has_value(); }, "p90")
          .check(
              "no lognormal distribution has them: p90 is more than the median, and up to 2.27 "
              "times the mean (longer tails have more of the mean beyond it); give the median",
              [](const Lognormal& l) {
                return l.mean.has_value() == l.median.has_value() || l.sigma().has_value();
              },
              "p90");
  return schema;
}

const config::Schema<Lengths>& Lengths::schema() {
  static const auto schema =
      config::Schema<Lengths>("lengths", "how many tokens: a number, or one of the keys")
          .shorthand("fixed")
          .optional("fixed", &Lengths::fixed, "tokens of each",
                    config::between(1, kMostTokensDrawn))
          .optional("uniform", &Lengths::uniform, "[least, most], all between as likely",
                    config::between(1, kMostTokensDrawn))
          .optional("lognormal", &Lengths::lognormal, "lognormal by mean or median, and p90")
          .optional("empirical", &Lengths::empirical,
                    "file with a number a line, each as likely; plain or gzip")
          .check("needs one of fixed, uniform, lognormal and empirical",
                 [](const Lengths& l) { return forms(l) == 1; },
                 {"fixed", "uniform", "lognormal", "empirical"})
          .check(
              "needs two numbers, the least first",
              [](const Lengths& l) {
                return l.uniform.empty() || (l.uniform.size() == 2 && l.uniform[0] <= l.uniform[1]);
              },
              "uniform");
  return schema;
}

std::int64_t Lengths::draw(std::uint64_t& state, const std::vector<std::int64_t>& values) const {
  if (fixed) return *fixed;
  const auto among = [&](std::int64_t count) {
    return static_cast<std::int64_t>(next_uniform(state) * static_cast<double>(count));
  };
  if (!uniform.empty()) return uniform[0] + among(uniform[1] - uniform[0] + 1);
  if (lognormal) {
    const double s = *lognormal->sigma();
    const double middle =
        lognormal->median ? *lognormal->median : *lognormal->mean * std::exp(-s * s / 2);
    return rounded(middle * std::exp(s * draw_normal(state)));
  }
  return values[static_cast<std::size_t>(among(static_cast<std::int64_t>(values.size())))];
}

std::vector<std::int64_t> Lengths::values() const {
  std::vector<std::int64_t> all;
  if (empirical.empty()) return all;
  const std::string text = read_input(empirical.path);
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (code != std::errc() || end != line.data() + line.size() || value < 1)
      config::throw_error(text, {empirical.path, number, 1}, static_cast<int>(line.size()),
                          "expected a number of tokens");
    all.push_back(value);
  }
  if (all.empty()) throw config::ConfigError(empirical.path + ": has no numbers");
  return all;
}

LengthDraws::LengthDraws(Lengths input, Lengths output, std::int64_t seed)
    : input_(std::move(input)),
      output_(std::move(output)),
      inputs_(input_.values()),
      outputs_(output_.values()),
      state_(static_cast<std::uint64_t>(seed) ^ stable_hash("lengths")) {}

}  // namespace orrery
