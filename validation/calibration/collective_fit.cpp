// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/collective_fit.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "sim/config/diagnostics.h"
#include "validation/calibration/calibrate.h"
#include "validation/calibration/collective_predictor.h"
#include "validation/calibration/errors.h"
#include "validation/calibration/least_squares.h"

namespace orrery {
namespace {

constexpr int kMostIterations = 60;
constexpr int kWrittenDigits = 4;  // of what is written
constexpr double kTold = 1e-6;     // relative change of a prediction when a parameter doubles

/// One measured collective and the ways to carry it out.
struct Sample {
  std::vector<Carried> ways;
  double measured_us = 0;
  std::string group;  ///< collective and ranks
};

using Values = std::vector<double>;  // of the free parameters
using Free = std::vector<const ProtocolParameter*>;

double predicted_us(const ProtocolsConfig& protocols, const Sample& sample) {
  Seconds best(INFINITY);
  for (const Carried& way : sample.ways) {
    const ProtocolCost cost = protocol_cost(protocols, way.protocol, way.traffic);
    best = std::min(best, cost.total(way.traffic));
  }
  return best.base() * 1e6;
}

/// The parameters that some row depends on.
Free told(const ProtocolsConfig& protocols, const std::vector<Sample>& samples) {
  Free free;
  for (const ProtocolParameter& parameter : protocol_parameters()) {
    ProtocolsConfig moved = protocols;
    parameter.set(moved, 2 * parameter.get(protocols));
    const bool tells = std::any_of(samples.begin(), samples.end(), [&](const Sample& sample) {
      const double before = predicted_us(protocols, sample);
      return std::abs(predicted_us(moved, sample) / before - 1) > kTold;
    });
    if (tells) free.push_back(&parameter);
  }
  return free;
}

struct Solution {
  ProtocolsConfig protocols;
  Free free;
  Values errors;  ///< standard errors of the logarithms
};

Solution solve(const ProtocolsConfig& start, const std::vector<Sample>& samples) {
  Solution solution{start, told(start, samples), {}};
  LeastSquares problem;
  for (const ProtocolParameter* p : solution.free) {
    problem.start.push_back(std::log(std::clamp(p->get(start), p->lower * 1.05, p->upper * 0.95)));
    problem.lower.push_back(std::log(p->lower));
    problem.upper.push_back(std::log(p->upper));
  }
  const auto at = [&](const double* logs) {
    ProtocolsConfig protocols = start;
    for (std::size_t i = 0; i < solution.free.size(); ++i)
      solution.free[i]->set(protocols, std::exp(logs[i]));
    return protocols;
  };
  problem.residuals = samples.size();
  problem.residual = [&](std::size_t i, const double* logs) {
    return std::log(predicted_us(at(logs), samples[i]) / samples[i].measured_us);
  };
  problem.most_iterations = kMostIterations;
  const LeastSquaresSolution solved = solve(problem);
  solution.protocols = at(solved.values.data());
  solution.errors = standard_errors(solved);
  return solution;
}

std::vector<Comparison> compare(const ProtocolsConfig& protocols,
                                const std::vector<Sample>& samples) {
  std::vector<Comparison> comparisons;
  comparisons.reserve(samples.size());
  for (const Sample& sample : samples)
    comparisons.push_back({predicted_us(protocols, sample), sample.measured_us});
  return comparisons;
}

/// Every group predicted by a fit of the others.
std::vector<Comparison> leave_groups_out(const ProtocolsConfig& start,
                                         const std::vector<Sample>& samples) {
  std::set<std::string> groups;
  for (const Sample& sample : samples) groups.insert(sample.group);
  std::vector<Comparison> comparisons;
  for (const std::string& group : groups) {
    std::vector<Sample> others, left_out;
    for (const Sample& sample : samples)
      (sample.group == group ? left_out : others).push_back(sample);
    const auto judged = compare(solve(start, others).protocols, left_out);
    comparisons.insert(comparisons.end(), judged.begin(), judged.end());
  }
  return comparisons;
}

struct Rows {
  std::vector<Sample> fitted, held_out;
};

Rows read_rows(const SystemConfig& system, const std::vector<CollectiveInput>& inputs,
               NetworkCalibration& calibration) {
  const CollectivePredictor predictor(system);
  Rows rows;
  std::int64_t least_ranks = 0, most_ranks = 0;
  for (const CollectiveInput& input : inputs) {
    MeasurementFile file = input.file;
    for (const CollectiveRow& row : input.table.rows) {
      if (row.system != system.accelerator.id) continue;
      ++file.rows;
      Sample sample{predictor.carried(input.table.kind, row), row.latency_us,
                    row.collective + " " + std::to_string(row.ranks)};
      const Bytes bytes(static_cast<double>(row.bytes));
      CollectiveRange& range = calibration.range;
      range.least = most_ranks == 0 ? bytes : std::min(range.least, bytes);
      range.most = std::max(range.most, bytes);
      least_ranks = most_ranks == 0 ? row.ranks : std::min(least_ranks, row.ranks);
      most_ranks = std::max(most_ranks, row.ranks);
      (is_held_out(row) ? rows.held_out : rows.fitted).push_back(std::move(sample));
    }
    if (file.rows > 0) calibration.measurements.push_back(file);
  }
  calibration.range.ranks = {least_ranks, most_ranks};
  return rows;
}

}  // namespace

CollectiveInput read_collective_input(const std::string& path, const std::string& date) {
  return {read_collective_table(path), measurement_file(path, date)};
}

NetworkCalibration calibrate_network(const SystemConfig& system,
                                     const std::vector<CollectiveInput>& inputs,
                                     const std::string& made_with) {
  if (!system.scale_up.protocols)
    throw config::ConfigError(system.id + " has no scale_up.protocols to fit");
  NetworkCalibration calibration;
  calibration.id = calibration.system = system.id;
  calibration.made_with = made_with;
  const Rows rows = read_rows(system, inputs, calibration);
  if (rows.fitted.size() <= protocol_parameters().size())
    throw config::ConfigError("the tables have too few rows of " + system.accelerator.id);
  const ProtocolsConfig& start = *system.scale_up.protocols;
  Solution solution = solve(start, rows.fitted);
  for (const ProtocolParameter& p : protocol_parameters()) {
    CalibratedParameter& written = calibration.parameters[p.name];
    const auto at = std::find(solution.free.begin(), solution.free.end(), &p);
    written.unit = p.unit();
    written.value = rounded(p.get(solution.protocols), kWrittenDigits);
    p.set(solution.protocols, written.value);
    if (at == solution.free.end()) continue;
    written.provenance = ParameterProvenance::kFitted;
    const auto index = static_cast<std::size_t>(at - solution.free.begin());
    written.standard_error = rounded(written.value * solution.errors[index], kWrittenDigits);
  }
  const auto held_out = compare(solution.protocols, rows.held_out);
  calibration.fit_error =
      rounded(summarise(compare(solution.protocols, rows.fitted)), kWrittenDigits);
  calibration.held_out_error = rounded(summarise(held_out), kWrittenDigits);
  calibration.left_out_error =
      rounded(summarise(leave_groups_out(start, rows.fitted)), kWrittenDigits);
  calibration.residuals = rounded(residual_classes(held_out), kWrittenDigits);
  return calibration;
}

}  // namespace orrery
