// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace orrery {

/// Residuals to be made small by moving some values within their limits.
struct LeastSquares {
  std::vector<double> start, lower, upper;  ///< a number for each value
  std::size_t residuals = 0;
  std::function<double(std::size_t residual, const double* values)> residual;
  int most_iterations = 40;
};

/// Values with the residuals and the Jacobian there, both after the loss.
struct LeastSquaresSolution {
  std::vector<double> values, residuals;
  std::vector<std::vector<double>> jacobian;  ///< a row for each residual, a column for each value
};

/// Minimises a soft L1 loss of the residuals, by Levenberg-Marquardt with central differences
/// (Ceres). Residuals beyond 0.05 count by their size, not its square: the fit minimises what is
/// reported, a mean absolute error, and outliers do not rule.
/// @throws std::logic_error where no solution is found.
LeastSquaresSolution solve(const LeastSquares& problem);

/// Standard errors of the values: (J'J)^-1 times the variance of the residuals.
std::vector<double> standard_errors(const LeastSquaresSolution& solution);

/// Covariance of the values where residuals of one group err alike (Liang and Zeger, Biometrika
/// 73(1), 1986): (J'J)^-1 (sum over groups of J_g' r_g r_g' J_g) (J'J)^-1.
/// @param groups a name for each residual
std::vector<std::vector<double>> clustered_covariance(const LeastSquaresSolution& solution,
                                                      const std::vector<std::string>& groups);

}  // namespace orrery
