// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/row_ratios.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "models/kernels/calibrated_model.h"
#include "models/kernels/residual_table.h"

namespace orrery {
namespace {

constexpr double kLargestRatio = 4;
/// A row that is further (by the logarithm of its time) from what its neighbours tell is a slip of
/// the measurement: it would reach over all kernels around it. A few rows in 10,000 are.
constexpr double kSlip = 0.5;
/// Rows of a part that a table keeps whatever the share of the part.
constexpr std::size_t kFewestOfPart = 100;

/// A ratio before it is known whether its row can be trusted.
struct Candidate {
  MeasuredRatio ratio;
  ResidualPoint point;
  std::size_t row = 0;  ///< index among the rows that are kept
  double share = 1;     ///< share of the row's predicted time, all kernels of the class together
};

/// The kernel that a row is about; null: it computes no products.
const Kernel* subject(const FitRow& row) {
  const Kernel* most = nullptr;
  for (const Kernel& kernel : row.kernels)
    if (kernel.matrix_flops.base() > (most ? most->matrix_flops.base() : 0)) most = &kernel;
  return most;
}

/// The shape of a kernel without its work, as a file keeps it.
Kernel shape_of(const Kernel& kernel) {
  Kernel shape;
  shape.kind = kernel.kind;
  shape.precision = kernel.precision;
  shape.batch = kernel.batch;
  shape.m = kernel.m;
  shape.n = kernel.n;
  shape.k = kernel.k;
  shape.attention = kernel.attention;
  shape.load.active = kernel.load.active;
  shape.load.rows = kernel.load.rows;
  shape.load.experts = kernel.load.experts;
  shape.load.expected = kernel.load.expected;
  shape.load.blocks[0] = kernel.load.blocks[0];
  shape.load.copies = kernel.load.copies;
  return shape;
}

/// Tells where the kernels of a fit stand.
class Points {
 public:
  Points(std::string model, const KernelFit& fit, const AcceleratorConfig& accelerator)
      : model_(std::move(model)), fit_(fit), accelerator_(accelerator) {}

  std::optional<ResidualPoint> of(const Kernel& kernel) {
    const FamilyOf of = family_of(model_, kernel);
    auto known = values_.find(of.group);
    if (known == values_.end())
      known = values_.emplace(of.group, values_of(fit_, of, accelerator_)).first;
    return of.family->residual_point(shape_of(kernel), accelerator_, known->second.data());
  }

 private:
  std::string model_;
  const KernelFit& fit_;
  const AcceleratorConfig& accelerator_;
  std::map<std::string, std::vector<double>> values_;  ///< values of families, by group
};

/// The rows that are kept, part after part, in the order of the table.
std::vector<const FitRow*> thinned(Points& points, const std::vector<FitRow>& rows,
                                   std::size_t most) {
  std::map<int, std::vector<const FitRow*>> parts;
  std::size_t all = 0;
  for (const FitRow& row : rows) {
    const Kernel* about = subject(row);
    if (about == nullptr) continue;
    const auto point = points.of(*about);
    if (!point) continue;
    parts[point->part].push_back(&row);
    ++all;
  }
  std::vector<const FitRow*> kept;
  kept.reserve(std::min(all, most + parts.size() * kFewestOfPart));
  for (const auto& [part, members] : parts) {
    const std::size_t size = members.size();
    const std::size_t share = all <= most ? size : size * most / all;
    const std::size_t count = std::min(size, std::max(share, kFewestOfPart));
    for (std::size_t i = 0; i < count; ++i) kept.push_back(members[i * size / count]);
  }
  return kept;
}

/// Adds the ratio of a row to each of the kernels that it is about.
void add_candidates(KernelPrices& prices, Points& points, const FitRow& row,
                    std::vector<Candidate>& candidates) {
  const KernelClass about = subject(row)->kind;
  double others = 0, predicted = 0;
  for (const Kernel& kernel : row.kernels)
    (kernel.kind == about ? predicted : others) +=
        to_seconds(prices.cost(kernel).duration).base() * 1e6;
  const double ratio =
      std::clamp((row.measured_us - others) / predicted, 1 / kLargestRatio, kLargestRatio);
  const std::size_t number = candidates.empty() ? 0 : candidates.back().row + 1;
  for (const Kernel& kernel : row.kernels) {
    if (kernel.kind != about) continue;
    const auto point = points.of(kernel);
    if (point)
      candidates.push_back(
          {{shape_of(kernel), ratio}, *point, number, predicted / (predicted + others)});
  }
}

/// The ratios without those of slips: rows are judged in turn by the even and by the odd ones.
std::vector<MeasuredRatio> without_slips(const std::vector<Candidate>& candidates) {
  std::array<std::vector<MeasuredResidual>, 2> points;
  for (const Candidate& candidate : candidates)
    points[candidate.row % 2].push_back({candidate.point, std::log(candidate.ratio.ratio)});
  const std::array<ResidualTable, 2> tables = {ResidualTable(std::move(points[0])),
                                               ResidualTable(std::move(points[1]))};
  std::vector<MeasuredRatio> ratios;
  ratios.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    const double told = tables[1 - candidate.row % 2].log_ratio(candidate.point);
    // Of the row's time: where others take most of it, the ratio bears all that they do not tell.
    const double apart = candidate.share * (std::log(candidate.ratio.ratio) - told);
    if (std::abs(apart) < kSlip) ratios.push_back(candidate.ratio);
  }
  return ratios;
}

}  // namespace

std::vector<MeasuredRatio> row_ratios(const Calibration& calibration, const KernelFit& fit,
                                      const std::vector<FitRow>& rows,
                                      const AcceleratorConfig& accelerator, std::size_t most) {
  Calibration alone = calibration;
  alone.fits = {fit};
  alone.fits.front().ratios = {};
  const CalibratedModel model(alone);
  const auto prices = model.on(accelerator);
  std::vector<Candidate> candidates;
  candidates.reserve(most);
  Points points(calibration.model, fit, accelerator);
  for (const FitRow* row : thinned(points, rows, most))
    add_candidates(*prices, points, *row, candidates);
  std::vector<MeasuredRatio> ratios = without_slips(candidates);
  arrange(ratios);
  return ratios;
}

}  // namespace orrery
