// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/errors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "sim/serving/serving_log.h"

namespace orrery {
namespace {

constexpr std::array<double, 4> kLimits = {10, 100, 1000, 10000};  // us
constexpr std::size_t kFewest = 30;  // rows that a spread is worth stating of

std::size_t class_index(double time_us) {
  return static_cast<std::size_t>(std::upper_bound(kLimits.begin(), kLimits.end(), time_us) -
                                  kLimits.begin());
}

ResidualClass residuals_of(std::vector<double> logs, double below_us) {
  std::sort(logs.begin(), logs.end());
  // The range from p10 to p90 of a normal distribution is 2 x 1.2816 standard deviations.
  return {below_us, static_cast<std::int64_t>(logs.size()), quantile(logs, 0.5),
          (quantile(logs, 0.9) - quantile(logs, 0.1)) / (2 * 1.2815515655446004)};
}

}  // namespace

const char* size_class(double time_us) { return size_classes()[class_index(time_us)].c_str(); }

const std::vector<std::string>& size_classes() {
  static const std::vector<std::string> names = {"<10us", "10-100us", "0.1-1ms", "1-10ms", ">10ms"};
  return names;
}

ErrorSummary summarise(const std::vector<Comparison>& rows) {
  ErrorSummary summary;
  if (rows.empty()) return summary;
  std::vector<double> absolute;
  for (const Comparison& row : rows) {
    absolute.push_back(std::abs(row.error()));
    summary.mape += absolute.back();
    summary.bias += row.error();
  }
  const auto count = static_cast<double>(rows.size());
  summary.count = static_cast<std::int64_t>(rows.size());
  summary.mape /= count;
  summary.bias /= count;
  summary.worst = std::max_element(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
                    return std::abs(a.error()) < std::abs(b.error());
                  })->error();
  std::sort(absolute.begin(), absolute.end());
  summary.median = quantile(absolute, 0.5);
  summary.p90 = quantile(absolute, 0.9);
  return summary;
}

std::vector<ResidualClass> residual_classes(const std::vector<Comparison>& rows) {
  std::array<std::vector<double>, kLimits.size() + 1> decades;
  for (const Comparison& row : rows) {
    decades[class_index(row.predicted)].push_back(std::log(row.measured / row.predicted));
  }
  std::vector<ResidualClass> classes;
  std::vector<double> pending;
  for (std::size_t i = 0; i < decades.size(); ++i) {
    pending.insert(pending.end(), decades[i].begin(), decades[i].end());
    std::size_t above = 0;
    for (std::size_t j = i + 1; j < decades.size(); ++j) above += decades[j].size();
    const bool last = above < kFewest;  // what is left is too little for a class of its own
    if (!last && pending.size() < kFewest) continue;
    if (last)
      for (std::size_t j = i + 1; j < decades.size(); ++j)
        pending.insert(pending.end(), decades[j].begin(), decades[j].end());
    if (!pending.empty()) classes.push_back(residuals_of(pending, last ? 0 : kLimits[i]));
    if (last) break;
    pending.clear();
  }
  return classes;
}

double rounded(double value, int digits) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return std::strtod(text, nullptr);
}

ErrorSummary rounded(ErrorSummary errors, int digits) {
  for (double* value : {&errors.mape, &errors.median, &errors.p90, &errors.bias, &errors.worst})
    *value = rounded(*value, digits);
  return errors;
}

std::vector<ResidualClass> rounded(std::vector<ResidualClass> classes, int digits) {
  for (ResidualClass& residuals : classes) {
    residuals.median = rounded(residuals.median, digits);
    residuals.sigma = rounded(residuals.sigma, digits);
  }
  return classes;
}

}  // namespace orrery
