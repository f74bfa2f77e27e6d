// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/least_squares.h"

#include <ceres/crs_matrix.h>
#include <ceres/dynamic_numeric_diff_cost_function.h>
#include <ceres/loss_function.h>
#include <ceres/problem.h>
#include <ceres/solver.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

namespace orrery {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kLossScale = 0.05;
/// Far below what any residual tells, so that a direction nothing tells gets a huge variance
/// instead of none.
constexpr double kRidge = 1e-9;

struct Residual {
  const LeastSquares* problem;
  std::size_t index;

  bool operator()(double const* const* blocks, double* residual) const {
    residual[0] = problem->residual(index, blocks[0]);
    return true;
  }
};

VectorXd gradient(const LeastSquaresSolution& solution, std::size_t residual) {
  const std::vector<double>& row = solution.jacobian[residual];
  return Eigen::Map<const VectorXd>(row.data(), static_cast<Eigen::Index>(row.size()));
}

MatrixXd ridge(const LeastSquaresSolution& solution) {
  const auto size = static_cast<Eigen::Index>(solution.values.size());
  return MatrixXd::Identity(size, size) * kRidge;
}

/// The inverse of J'J.
MatrixXd inverse_normal(const LeastSquaresSolution& solution) {
  MatrixXd normal = ridge(solution);
  for (std::size_t i = 0; i < solution.residuals.size(); ++i)
    normal += gradient(solution, i) * gradient(solution, i).transpose();
  return normal.ldlt().solve(MatrixXd::Identity(normal.rows(), normal.cols()));
}

void evaluate(ceres::Problem& problem, LeastSquaresSolution& solution) {
  ceres::CRSMatrix sparse;
  problem.Evaluate({}, nullptr, &solution.residuals, nullptr, &sparse);
  solution.jacobian.assign(solution.residuals.size(), std::vector<double>(solution.values.size()));
  for (std::size_t row = 0; row < solution.residuals.size(); ++row) {
    const auto first = static_cast<std::size_t>(sparse.rows[row]);
    const auto last = static_cast<std::size_t>(sparse.rows[row + 1]);
    for (std::size_t at = first; at < last; ++at)
      solution.jacobian[row][static_cast<std::size_t>(sparse.cols[at])] = sparse.values[at];
  }
}

}  // namespace

LeastSquaresSolution solve(const LeastSquares& problem) {
  LeastSquaresSolution solution{problem.start, {}, {}};
  ceres::Problem::Options keep;
  keep.loss_function_ownership = ceres::DO_NOT_TAKE_OWNERSHIP;
  ceres::SoftLOneLoss loss(kLossScale);
  ceres::Problem solved(keep);
  double* values = solution.values.data();
  for (std::size_t i = 0; i < problem.residuals; ++i) {
    auto* cost = new ceres::DynamicNumericDiffCostFunction<Residual, ceres::CENTRAL>(
        new Residual{&problem, i});
    cost->AddParameterBlock(static_cast<int>(solution.values.size()));
    cost->SetNumResiduals(1);
    solved.AddResidualBlock(cost, &loss, values);
  }
  for (std::size_t i = 0; i < solution.values.size(); ++i) {
    solved.SetParameterLowerBound(values, static_cast<int>(i), problem.lower[i]);
    solved.SetParameterUpperBound(values, static_cast<int>(i), problem.upper[i]);
  }
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.max_num_iterations = problem.most_iterations;
  options.logging_type = ceres::SILENT;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &solved, &summary);
  if (!summary.IsSolutionUsable()) throw std::logic_error("fit: " + summary.message);
  evaluate(solved, solution);
  return solution;
}

std::vector<double> standard_errors(const LeastSquaresSolution& solution) {
  double squares = 0;
  for (const double residual : solution.residuals) squares += residual * residual;
  const double freedom = std::max(1.0, static_cast<double>(solution.residuals.size()) -
                                           static_cast<double>(solution.values.size()));
  const MatrixXd inverse = inverse_normal(solution);
  std::vector<double> errors;
  for (Eigen::Index i = 0; i < inverse.rows(); ++i)
    errors.push_back(std::sqrt(std::max(0.0, inverse(i, i)) * squares / freedom));
  return errors;
}

std::vector<std::vector<double>> clustered_covariance(const LeastSquaresSolution& solution,
                                                      const std::vector<std::string>& groups) {
  const VectorXd none = VectorXd::Zero(static_cast<Eigen::Index>(solution.values.size()));
  std::map<std::string, VectorXd> scores;
  for (std::size_t i = 0; i < solution.residuals.size(); ++i)
    scores.try_emplace(groups[i], none).first->second +=
        gradient(solution, i) * solution.residuals[i];
  MatrixXd middle = ridge(solution);
  for (const auto& [group, score] : scores) middle += score * score.transpose();
  const MatrixXd inverse = inverse_normal(solution);
  const MatrixXd covariance = inverse * middle * inverse;
  std::vector<std::vector<double>> rows(solution.values.size(),
                                        std::vector<double>(solution.values.size()));
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < rows.size(); ++j)
      rows[i][j] = covariance(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j));
  return rows;
}

}  // namespace orrery
