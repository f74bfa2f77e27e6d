// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/collective_fit.h"

#include <ceres/ceres.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "sim/config/diagnostics.h"
#include "validation/calibration/calibrate.h"
#include "validation/calibration/collective_predictor.h"
#include "validation/calibration/errors.h"

namespace orrery {
namespace {

constexpr double kLossScale = 0.05;  // as of kernels (fit.cpp): what is judged is a mean error
constexpr int kMaxIterations = 60;
constexpr double kTold = 1e-6;  // relative change of a prediction when a parameter doubles

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

struct LogRatio {
  const ProtocolsConfig* start;
  const Free* free;
  const Sample* sample;

  bool operator()(double const* const* blocks, double* residual) const {
    ProtocolsConfig protocols = *start;
    for (std::size_t i = 0; i < free->size(); ++i)
      (*free)[i]->set(protocols, std::exp(blocks[0][i]));
    residual[0] = std::log(predicted_us(protocols, *sample) / sample->measured_us);
    return true;
  }
};

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

/// Standard errors of least squares: (J'J)^-1 times the variance of the residuals.
Values standard_errors(ceres::Problem& problem, std::size_t parameters) {
  std::vector<double> residuals;
  ceres::CRSMatrix jacobian;
  problem.Evaluate({}, nullptr, &residuals, nullptr, &jacobian);
  const auto size = static_cast<Eigen::Index>(parameters);
  Eigen::MatrixXd normal = Eigen::MatrixXd::Identity(size, size) * 1e-9;
  double squares = 0;
  for (std::size_t row = 0; row < residuals.size(); ++row) {
    Eigen::VectorXd gradient = Eigen::VectorXd::Zero(size);
    for (int at = jacobian.rows[row]; at < jacobian.rows[row + 1]; ++at)
      gradient[jacobian.cols[static_cast<std::size_t>(at)]] =
          jacobian.values[static_cast<std::size_t>(at)];
    normal += gradient * gradient.transpose();
    squares += residuals[row] * residuals[row];
  }
  const double freedom =
      std::max(1.0, static_cast<double>(residuals.size()) - static_cast<double>(parameters));
  const Eigen::MatrixXd inverse = normal.ldlt().solve(Eigen::MatrixXd::Identity(size, size));
  Values errors;
  for (Eigen::Index i = 0; i < size; ++i)
    errors.push_back(std::sqrt(std::max(0.0, inverse(i, i)) * squares / freedom));
  return errors;
}

Solution solve(const ProtocolsConfig& start, const std::vector<Sample>& samples) {
  Solution solution{start, told(start, samples), {}};
  Values logs;
  for (const ProtocolParameter* p : solution.free)
    logs.push_back(std::log(std::clamp(p->get(start), p->lower * 1.05, p->upper * 0.95)));
  ceres::Problem::Options keep;
  keep.loss_function_ownership = ceres::DO_NOT_TAKE_OWNERSHIP;
  ceres::SoftLOneLoss loss(kLossScale);
  ceres::Problem problem(keep);
  for (const Sample& sample : samples) {
    auto* cost = new ceres::DynamicNumericDiffCostFunction<LogRatio, ceres::CENTRAL>(
        new LogRatio{&start, &solution.free, &sample});
    cost->AddParameterBlock(static_cast<int>(logs.size()));
    cost->SetNumResiduals(1);
    problem.AddResidualBlock(cost, &loss, logs.data());
  }
  for (std::size_t i = 0; i < logs.size(); ++i) {
    const auto at = static_cast<int>(i);
    problem.SetParameterLowerBound(logs.data(), at, std::log(solution.free[i]->lower));
    problem.SetParameterUpperBound(logs.data(), at, std::log(solution.free[i]->upper));
  }
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.max_num_iterations = kMaxIterations;
  options.logging_type = ceres::SILENT;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  if (!summary.IsSolutionUsable()) throw std::logic_error("fit: " + summary.message);
  for (std::size_t i = 0; i < logs.size(); ++i)
    solution.free[i]->set(solution.protocols, std::exp(logs[i]));
  solution.errors = standard_errors(problem, logs.size());
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

/// Four digits: what is written is what is used.
double rounded(double value) {
  if (value == 0) return 0;
  const double scale = std::pow(10.0, 3 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

ErrorSummary rounded(ErrorSummary e) {
  for (double* value : {&e.mape, &e.median, &e.p90, &e.bias, &e.worst}) *value = rounded(*value);
  return e;
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
    written.value = rounded(p.get(solution.protocols));
    p.set(solution.protocols, written.value);
    if (at == solution.free.end()) continue;
    written.provenance = ParameterProvenance::kFitted;
    const auto index = static_cast<std::size_t>(at - solution.free.begin());
    written.standard_error = rounded(written.value * solution.errors[index]);
  }
  const auto held_out = compare(solution.protocols, rows.held_out);
  calibration.fit_error = rounded(summarise(compare(solution.protocols, rows.fitted)));
  calibration.held_out_error = rounded(summarise(held_out));
  calibration.left_out_error = rounded(summarise(leave_groups_out(start, rows.fitted)));
  calibration.residuals = residual_classes(held_out);
  for (ResidualClass& residuals : calibration.residuals) {
    residuals.median = rounded(residuals.median);
    residuals.sigma = rounded(residuals.sigma);
  }
  return calibration;
}

}  // namespace orrery
