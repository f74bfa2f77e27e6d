// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "models/kernels/device/family.h"
#include "sim/graph/kernel.h"
#include "sim/machine/accelerator_config.h"
#include "sim/machine/calibration.h"

namespace orrery {

/// One measured operator, ready to be fitted: the kernels whose times add up to it.
struct FitRow {
  std::vector<Kernel> kernels;
  double measured_us = 0;
  std::string group;  ///< shape group: rows of one group err alike
};

/// Values of a family where a fit has them, priors elsewhere.
std::vector<double> values_of(const KernelFit& fit, const FamilyOf& of,
                              const AcceleratorConfig& device);

/// Every so many-th row, no more than `most`: tables are sorted, so all shapes stay.
std::vector<FitRow> thinned(const std::vector<FitRow>& rows, std::size_t most);

/// Whether a parameter changes the time of any row: others belong to code paths that no row takes.
bool moves(const KernelFamily& family, std::size_t index, KernelClass kind,
           const std::vector<FitRow>& rows, const AcceleratorConfig& accelerator);

/// Fits the parameters of a kernel model to measured rows: least squares of log(predicted /
/// measured) with a soft L1 loss, within the physical limits of each parameter, by
/// Levenberg-Marquardt (Ceres). Parameters that the rows do not tell stay at their prior, those
/// that `fit` already has at the value they have there. Fills parameters, their standard errors,
/// and their covariance, which is clustered by shape group (Liang and Zeger, Biometrika 73(1),
/// 1986): rows of one group are no independent evidence.
/// @param free names of the parameters that may move: "gemm.launch"
/// @throws std::invalid_argument for fewer rows than parameters, or a name that no row's kernels
/// have.
void fit_parameters(const std::string& model, const std::vector<FitRow>& rows,
                    const AcceleratorConfig& accelerator, const std::vector<std::string>& free,
                    KernelFit& fit);

/// The values alone, all `free` parameters within their limits at once, from those that `fit` has:
/// what cross-validation solves again and again. @throws as fit_parameters()
void fit_values(const std::string& model, const std::vector<FitRow>& rows,
                const AcceleratorConfig& accelerator, const std::vector<std::string>& free,
                KernelFit& fit);

/// Mean of |log(predicted / measured)| by the parameters of a fit.
double mean_deviation(const std::string& model, const std::vector<FitRow>& rows,
                      const AcceleratorConfig& accelerator, const KernelFit& fit);

}  // namespace orrery
