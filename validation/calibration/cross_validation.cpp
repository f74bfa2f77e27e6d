// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/cross_validation.h"

#include "models/kernels/calibrated_model.h"
#include "validation/calibration/row_ratios.h"

namespace orrery {
namespace {

/// Rows that a solve sees: some thirty for each parameter, as there are as many solves as models.
constexpr std::size_t kMostFolded = 800;

}  // namespace

double predicted_us(KernelPrices& prices, const FitRow& row) {
  Picoseconds time = 0;
  for (const Kernel& kernel : row.kernels) time += prices.cost(kernel).duration;
  return to_seconds(time).base() * 1e6;
}

std::set<std::string> groups_of(const std::vector<FitRow>& rows) {
  std::set<std::string> groups;
  for (const FitRow& row : rows) groups.insert(row.group);
  return groups;
}

std::vector<Comparison> leave_models_out(const Calibration& calibration,
                                         const AcceleratorConfig& accelerator, const KernelFit& fit,
                                         const std::vector<std::string>& free,
                                         const std::vector<FitRow>& rows, std::size_t ratios) {
  const std::set<std::string> groups = groups_of(rows);
  std::vector<Comparison> comparisons;
  if (groups.size() < kFewestModels) return comparisons;
  for (const std::string& group : groups) {
    std::vector<FitRow> others;
    for (const FitRow& row : rows)
      if (row.group != group) others.push_back(row);
    KernelFit fold = fit;
    fold.fitted.clear();
    fold.covariance.clear();
    fold.ratios = {};
    fold.residuals = {{}};
    fit_values(calibration.model, thinned(others, kMostFolded), accelerator, free, fold);
    fold.ratios = row_ratios(calibration, fold, others, accelerator, ratios);
    Calibration alone = calibration;
    alone.fits = {std::move(fold)};
    const CalibratedModel model(alone);
    const auto prices = model.on(accelerator);
    for (const FitRow& row : rows)
      if (row.group == group) comparisons.push_back({predicted_us(*prices, row), row.measured_us});
  }
  return comparisons;
}

}  // namespace orrery
