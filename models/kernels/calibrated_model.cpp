// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/calibrated_model.h"

#include <algorithm>
#include <cmath>

#include "sim/config/diagnostics.h"
#include "sim/machine/draws.h"

namespace orrery {
namespace {

constexpr double kMicro = 1e6;
/// A shape outside what was measured: its error is taken to be twice as wide. An assumption; the
/// largest ratio of spreads between neighbouring sizes of the fitted tables is about that.
constexpr double kExtrapolatedWidening = 2;

bool differs(double a, double b) { return std::abs(a - b) > 1e-3 * std::max(a, b); }

/// Whether anything of the machine but its matrix rates is not what was measured.
bool another_machine(const CalibratedRates& rates, const AcceleratorConfig& accelerator) {
  const auto other = [](double recorded, double value) {
    return recorded > 0 && differs(recorded, value);
  };
  const double cache = accelerator.cache ? accelerator.cache->capacity.value.base() : 0;
  return differs(rates.memory.base(), accelerator.memory.bandwidth.value.base()) ||
         other(rates.units, accelerator.compute.units.value) ||
         other(rates.clock.base(), accelerator.compute.clock.value.base()) ||
         other(rates.cache.base(), cache) ||
         other(rates.power.base(), accelerator.power.cap().base());
}

bool inside(const std::vector<std::int64_t>& range, std::int64_t value) {
  return range[0] <= value && value <= range[1];
}

const ResidualClass& residuals_at(const KernelFit& fit, double time_us) {
  for (const ResidualClass& residuals : fit.residuals)
    if (residuals.below_us == 0 || time_us < residuals.below_us) return residuals;
  return fit.residuals.back();
}

/// What an error belongs to: two kernels of one shape on one device err alike.
std::string shape_key(const Kernel& kernel) {
  std::string key = std::string(to_string(kernel.kind)) + "/" + to_string(kernel.precision);
  for (const std::int64_t dimension : {kernel.batch, kernel.m, kernel.n, kernel.k})
    key += "/" + std::to_string(dimension);
  return key;
}

/// Lower triangle L of the covariance C = L L^T; a pivot that rounding made negative is 0.
std::vector<std::vector<double>> cholesky(const std::vector<std::vector<double>>& c) {
  std::vector<std::vector<double>> l(c.size(), std::vector<double>(c.size()));
  for (std::size_t i = 0; i < c.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double rest = c[i][j];
      for (std::size_t k = 0; k < j; ++k) rest -= l[i][k] * l[j][k];
      if (i == j) {
        l[i][j] = std::sqrt(std::max(0.0, rest));
      } else {
        l[i][j] = l[j][j] > 0 ? rest / l[j][j] : 0;
      }
    }
  }
  return l;
}

/// The family of a group, by any class of kernels that has it.
const KernelFamily* family_named(const std::string& model, const std::string& group) {
  for (const auto& [kind, name] : config::EnumNames<KernelClass>::values) {
    const FamilyOf of = family_of(model, kind);
    if (of.group == group) return of.family;
  }
  return nullptr;
}

}  // namespace

CalibratedModel::CalibratedModel(const Calibration& calibration) : calibration_(calibration) {
  for (const KernelFit& fit : calibration_->fits) {
    for (const auto& [name, parameter] : fit.parameters) {
      const std::size_t dot = std::min(name.find('.'), name.size() - 1);
      const std::string group = name.substr(0, dot);
      const KernelFamily* family = family_named(calibration_->model, group);
      const std::size_t index = family ? parameter_index(*family, name.substr(dot + 1)) : 0;
      if (family == nullptr || index == family->parameters().size() ||
          parameter.unit != family->parameters()[index].unit) {
        throw config::ConfigError("calibration '" + calibration_->id + "': " + name + " [" +
                                  parameter.unit + "] is no parameter of the model '" +
                                  calibration_->model + "'");
      }
      Entry& entry = entries_[{group, fit.precision}];
      entry.fit = &fit;
      entry.values[index] = parameter.value;
    }
  }
}

const CalibratedModel::Entry* CalibratedModel::find(const std::string& group,
                                                    Precision precision) const {
  auto entry = entries_.find({group, precision});
  // The same units at the same rate; no table has both.
  if (entry == entries_.end() && precision == Precision::kFp16)
    entry = entries_.find({group, Precision::kBf16});
  return entry == entries_.end() ? nullptr : &entry->second;
}

std::vector<double> CalibratedModel::values(const FamilyOf& of, const Entry* entry,
                                            const Kernel& kernel,
                                            const AcceleratorConfig& accelerator) const {
  std::vector<double> values = of.family->priors(accelerator, kernel.precision);
  if (entry != nullptr)
    for (const auto& [index, value] : entry->values) values[index] = value;
  return values;
}

bool CalibratedModel::extrapolates(const Entry& entry, const Kernel& kernel,
                                   const AcceleratorConfig& accelerator) const {
  const CalibratedRates& rates = calibration_->rates;
  if (another_machine(rates, accelerator)) return true;
  const auto rate = rates.matrix.find(kernel.precision);
  const auto* peak = find_precision(accelerator.compute.matrix, kernel.precision);
  if (rate != rates.matrix.end() && peak && differs(rate->second.base(), peak->value.base()))
    return true;
  const auto shapes = entry.fit->shapes.find(kernel.kind);
  if (shapes == entry.fit->shapes.end()) return true;
  const ShapeRange& range = shapes->second;
  return !(inside(range.batch, kernel.batch) && inside(range.m, kernel.m) &&
           inside(range.n, kernel.n) && inside(range.k, kernel.k));
}

KernelCost CalibratedModel::cost(const Kernel& kernel, const AcceleratorConfig& accelerator) const {
  const FamilyOf of = family_of(model(), kernel.kind);
  const Entry* entry = find(of.group, kernel.precision);
  const KernelTime time =
      of.family->time(kernel, accelerator, values(of, entry, kernel, accelerator).data());
  KernelCost cost;
  cost.launch = to_picoseconds(Seconds(time.launch_us / kMicro));
  cost.duration =
      checked_add(cost.launch, to_picoseconds(Seconds((time.total_us - time.launch_us) / kMicro)));
  cost.bound = time.bound;
  if (entry != nullptr) {
    cost.provenance = extrapolates(*entry, kernel, accelerator) ? Provenance::kExtrapolated
                                                                : Provenance::kCalibrated;
  }
  return cost;
}

std::vector<std::vector<double>> CalibratedModel::drawn_values(const FamilyOf& of,
                                                               const Entry& entry,
                                                               const std::vector<double>& values,
                                                               std::int64_t seed) const {
  std::vector<std::vector<double>> drawn(kDraws, values);
  const KernelFit& fit = *entry.fit;
  const auto triangle = cholesky(fit.covariance);
  std::vector<std::vector<double>> normals;
  for (const std::string& name : fit.fitted) {
    normals.push_back(normal_draws(
        seed, calibration_->id + "/" + fit.table + "/" + to_string(fit.precision) + "/" + name));
  }
  for (const auto& [index, value] : entry.values) {
    const std::string name = of.group + "." + of.family->parameters()[index].name;
    const auto place = std::find(fit.fitted.begin(), fit.fitted.end(), name);
    if (place == fit.fitted.end()) continue;
    const auto row = static_cast<std::size_t>(place - fit.fitted.begin());
    for (std::size_t draw = 0; draw < kDraws; ++draw) {
      double shift = 0;
      for (std::size_t k = 0; k <= row; ++k) shift += triangle[row][k] * normals[k][draw];
      drawn[draw][index] *= std::exp(shift);
    }
  }
  return drawn;
}

std::vector<double> CalibratedModel::draws(const Kernel& kernel,
                                           const AcceleratorConfig& accelerator,
                                           std::int64_t seed) const {
  const FamilyOf of = family_of(model(), kernel.kind);
  const Entry* entry = find(of.group, kernel.precision);
  std::vector<double> factors =
      normal_draws(seed, accelerator.id + "/" + shape_key(kernel) + "/residual");
  if (entry == nullptr) {
    for (double& factor : factors) factor = std::exp(accelerator.kernel.uncertainty.value * factor);
    return factors;
  }
  const std::vector<double> fitted = values(of, entry, kernel, accelerator);
  const double time = of.family->time(kernel, accelerator, fitted.data()).total_us;
  const ResidualClass& residuals = residuals_at(*entry->fit, time);
  // A class that is off by its median on shapes it has not seen is that much less certain; moving
  // the prediction instead would fit it to what was held out.
  const double widening = extrapolates(*entry, kernel, accelerator) ? kExtrapolatedWidening : 1;
  const double sigma = widening * std::hypot(residuals.sigma, residuals.median);
  const auto drawn = drawn_values(of, *entry, fitted, seed);
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    factors[draw] = of.family->time(kernel, accelerator, drawn[draw].data()).total_us / time *
                    std::exp(sigma * factors[draw]);
  }
  return factors;
}

}  // namespace orrery
