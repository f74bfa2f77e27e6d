// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/calibrated_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "models/kernels/cholesky.h"
#include "models/kernels/device_numbers.h"
#include "models/kernels/parameter_limits.h"
#include "models/kernels/residual_table.h"
#include "models/kernels/same_machine.h"
#include "models/kernels/smaller_kernels.h"
#include "models/kernels/tiles/tile_model.h"
#include "sim/config/diagnostics.h"
#include "sim/machine/draws.h"
#include "sim/machine/limits.h"
#include "sim/units/hash.h"

namespace orrery {
namespace {

constexpr double kMicro = 1e6;
/// A shape outside what was measured: its error is taken to be twice as wide. An assumption; the
/// largest ratio of spreads between neighbouring sizes of the fitted tables is about that.
constexpr double kExtrapolatedWidening = 2;
/// Of ResidualEstimate: above, measured shapes tell little about a kernel. Of the held-out rows of
/// H200's GEMMs and prefill, fewer than 1 % are that far from the fitted ones.
constexpr double kUnknown = 0.75;
/// Costs that are kept, by the hash of the kernel.
constexpr std::size_t kMemo = 1024;
/// Accelerators whose numbers are kept: one as it is, with what transfers leave of it, and as it is
/// in a what-if.
constexpr std::size_t kDevices = 8;
constexpr std::size_t kClasses = std::size(config::EnumNames<KernelClass>::values);
constexpr std::size_t kPrecisions = std::size(config::EnumNames<Precision>::values);

const ResidualClass& residuals_at(const KernelFit& fit, double time_us) {
  for (const ResidualClass& residuals : fit.residuals)
    if (residuals.below_us == 0 || time_us < residuals.below_us) return residuals;
  return fit.residuals.back();
}

/// Where the cost of a kernel is kept.
std::size_t memo_place(const Kernel& kernel) {
  std::uint64_t state = static_cast<std::uint64_t>(kernel.kind) * kPrecisions +
                        static_cast<std::uint64_t>(kernel.precision);
  for (const std::int64_t dimension :
       {kernel.batch, kernel.m, kernel.n, kernel.k, kernel.attention.kv_heads})
    state = (state ^ static_cast<std::uint64_t>(dimension)) * 0x9e3779b97f4a7c15;
  return next_random(state) % kMemo;
}

/// The table of a class of kernels as they are on an accelerator.
ResidualTable residual_table(const KernelFit& fit, const KernelFamily& family, KernelClass kind,
                             const AcceleratorConfig& accelerator) {
  std::vector<MeasuredResidual> points;
  points.reserve(fit.ratios.size());
  for (const MeasuredRatio& measured : fit.ratios) {
    if (measured.shape.kind != kind) continue;
    if (const auto point = family.residual_point(measured.shape, accelerator))
      points.push_back({*point, std::log(measured.ratio)});
  }
  return ResidualTable(std::move(points));
}

/// What an error belongs to: two kernels of one shape on one device err alike.
std::string shape_key(const Kernel& kernel) {
  std::string key = std::string(to_string(kernel.kind)) + "/" + to_string(kernel.precision);
  for (const std::int64_t dimension : {kernel.batch, kernel.m, kernel.n, kernel.k})
    key += "/" + std::to_string(dimension);
  return key;
}

/// Formats that run on the same units at the same width and rate; no table has both.
std::optional<Precision> like(Precision precision) {
  if (precision == Precision::kFp16) return Precision::kBf16;
  if (precision == Precision::kInt8) return Precision::kFp8;
  return std::nullopt;
}

/// What tiles load passes the L2, and fits have its bandwidth as it was in them: with less of it,
/// what it was busy for takes longer.
double through_cache_us(const KernelTime& time, double fitted, double here) {
  if (!(here > 0) || here >= fitted) return 0;
  const double busy = std::min(time.loaded_bytes / fitted, time.total_us - time.launch_us);
  return time.launch_us + busy * fitted / here;
}

}  // namespace

/// What predicts kernels of one class and precision on one accelerator.
struct CalibratedModel::Slot {
  bool ready = false;
  FamilyOf of;
  std::optional<Entry> entry;  ///< none: priors alone
  std::vector<double> values;
  const ShapeRange* shapes = nullptr;  ///< that were fitted; null: none
  bool other_rates = false;            ///< than the parameters were fitted with
  std::vector<double> shaken;          ///< with those of a sibling changed; empty: there are none
  double fitted_cache = 0;             ///< bytes/us of the L2 that fits have in them
  ResidualTable residuals;
};

struct CalibratedModel::Device {
  struct Kept {
    Kernel kernel;
    KernelCost cost;
    bool used = false;
  };

  DeviceNumbers numbers{};
  /// With as many units as were fitted, where there are more, or with twice the units but no more
  /// than that, where there are fewer; null: else.
  std::unique_ptr<Device> other;
  AcceleratorConfig other_units;
  bool fewer = false;  ///< the other one has
  std::array<Slot, kClasses * kPrecisions> slots;
  std::vector<Kept> memo = std::vector<Kept>(kMemo);
};

struct CalibratedModel::Prediction {
  KernelTime time;
  bool fitted = false, extrapolated = false;
};

CalibratedModel::CalibratedModel() = default;
CalibratedModel::~CalibratedModel() = default;

CalibratedModel::CalibratedModel(const Calibration& calibration)
    : CalibratedModel(std::make_shared<const Calibration>(calibration)) {}

CalibratedModel::CalibratedModel(std::shared_ptr<const Calibration> calibration)
    : calibration_(std::move(calibration)) {
  const KernelFits& fits = calibration_->fits;
  for (std::size_t i = 0; i < fits.size(); ++i) {
    for (const std::string& group : fits.subject(i).groups) {
      fits_[{group, fits.subject(i).precision}] = i;
      if (fits.is_read(i)) entry(fits[i], group);
    }
  }
}

CalibratedModel::Entry CalibratedModel::entry(const KernelFit& fit,
                                              const std::string& group) const {
  const KernelFamily* family = family_named(calibration_->model, group);
  Entry entry{&fit, {}};
  for (const auto& [name, parameter] : fit.parameters) {
    const std::size_t dot = std::min(name.find('.'), name.size() - 1);
    if (name.substr(0, dot) != group) continue;
    const std::size_t index = family ? parameter_index(*family, name.substr(dot + 1)) : 0;
    if (family == nullptr || index == family->parameters().size() ||
        parameter.unit != family->parameters()[index].unit) {
      throw config::ConfigError("calibration '" + calibration_->id + "': " + name + " [" +
                                parameter.unit + "] is no parameter of the model '" +
                                calibration_->model + "'");
    }
    entry.values[index] = parameter.value;
  }
  return entry;
}

std::optional<CalibratedModel::Entry> CalibratedModel::find(const std::string& group,
                                                            Precision precision) const {
  auto fit = fits_.find({group, precision});
  if (const auto other = like(precision); fit == fits_.end() && other)
    fit = fits_.find({group, *other});
  if (fit == fits_.end()) return std::nullopt;
  return entry(calibration_->fits.at(fit->second), group);
}

std::vector<double> CalibratedModel::values(const FamilyOf& of, const std::optional<Entry>& entry,
                                            Precision precision,
                                            const AcceleratorConfig& accelerator) const {
  if (!entry) return of.family->priors(accelerator, precision);
  const std::optional<AcceleratorConfig>& measured = calibration_->device;
  const AcceleratorConfig& from = measured ? *measured : accelerator;
  const Precision fitted =
      find_precision(from.compute.matrix, precision) ? precision : entry->fit->precision;
  std::vector<double> values = of.family->priors(from, fitted);
  for (const auto& [index, value] : entry->values) values[index] = value;
  return of.family->transferred(values, from, accelerator, fitted);
}

bool CalibratedModel::other_rates(Precision precision, const AcceleratorConfig& accelerator) const {
  const CalibratedRates& rates = calibration_->rates;
  if (another_machine(rates, accelerator)) return true;
  const std::optional<AcceleratorConfig>& measured = calibration_->device;
  if (measured && other_structure(*measured, accelerator)) return true;
  if (precision == Precision::kInt8) return true;  // by the fit of fp8
  const auto rate = rates.matrix.find(precision);
  const auto* peak = find_precision(accelerator.compute.matrix, precision);
  return rate != rates.matrix.end() && peak && differs(rate->second.base(), peak->value.base());
}

void CalibratedModel::fill(Slot& slot, const Kernel& kernel,
                           const AcceleratorConfig& accelerator) const {
  slot.of = family_of(model(), kernel.kind);
  slot.entry = find(slot.of.group, kernel.precision);
  slot.values = values(slot.of, slot.entry, kernel.precision, accelerator);
  if (slot.entry) {
    const KernelFit& fit = *slot.entry->fit;
    const auto shapes = fit.shapes.find(kernel.kind);
    slot.shapes = shapes == fit.shapes.end() ? nullptr : &shapes->second;
    slot.other_rates = other_rates(kernel.precision, accelerator);
    slot.shaken = shaken(slot.of, fit, slot.values);
    slot.residuals = residual_table(fit, *slot.of.family, kernel.kind, accelerator);
  }
  if (calibration_ && calibration_->device)
    slot.fitted_cache = cache_bandwidth(*calibration_->device);
  slot.ready = true;
}

CalibratedModel::Device& CalibratedModel::device(const AcceleratorConfig& accelerator) const {
  const DeviceNumbers numbers = device_numbers(accelerator);
  const auto known = std::find_if(devices_.begin(), devices_.end(), [&](const auto& device) {
    // Bit by bit, which is faster: two zeros that differ only start anew.
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
    return std::memcmp(&device->numbers, &numbers, sizeof numbers) == 0;
  });
  if (known != devices_.end()) {
    std::rotate(devices_.begin(), known, known + 1);
    return *devices_.front();
  }
  if (devices_.size() == kDevices) devices_.pop_back();
  return **devices_.insert(devices_.begin(), make_device(numbers, accelerator));
}

std::unique_ptr<CalibratedModel::Device> CalibratedModel::make_device(
    const DeviceNumbers& numbers, const AcceleratorConfig& accelerator) const {
  auto made = std::make_unique<Device>();
  made->numbers = numbers;
  const bool fitted = calibration_ != nullptr && calibration_->device;
  const double share =
      fitted ? units_of_rank(*calibration_->device) / units_of_rank(accelerator) : 1;
  // A part's power is that of its own units.
  if (share == 1 || (share > 1 && accelerator.partition)) return made;
  made->fewer = share < 1;
  const AcceleratorConfig& other = made->other_units =
      left_of(accelerator, {std::min(2.0, share), 1});
  made->other =
      made->fewer ? std::make_unique<Device>() : make_device(device_numbers(other), other);
  return made;
}

const CalibratedModel::Slot& CalibratedModel::slot(Device& device, const Kernel& kernel,
                                                   const AcceleratorConfig& accelerator) const {
  Slot& slot = device.slots[static_cast<std::size_t>(kernel.kind) * kPrecisions +
                            static_cast<std::size_t>(kernel.precision)];
  if (!slot.ready) fill(slot, kernel, accelerator);
  return slot;
}

CalibratedModel::Prediction CalibratedModel::predict(const Slot& slot, const Kernel& kernel,
                                                     const AcceleratorConfig& accelerator) {
  Prediction prediction;
  KernelTime& time = prediction.time =
      slot.of.family->time(kernel, accelerator, slot.values.data());
  prediction.fitted = slot.entry.has_value();
  if (prediction.fitted) {
    prediction.extrapolated =
        slot.other_rates || slot.shapes == nullptr || !inside(*slot.shapes, kernel) ||
        (!slot.shaken.empty() &&
         slot.of.family->time(kernel, accelerator, slot.shaken.data()).total_us != time.total_us);
    const auto point =
        slot.residuals.empty() ? std::nullopt : slot.of.family->residual_point(kernel, accelerator);
    if (point) {
      const ResidualEstimate estimate = slot.residuals.estimate(*point);
      time.total_us *= std::exp(estimate.log_ratio);
      prediction.extrapolated = prediction.extrapolated || estimate.variance > kUnknown;
    }
  }
  // Neither parameters nor measured ratios beat the nameplates.
  time.total_us = std::max({time.total_us,
                            through_cache_us(time, slot.fitted_cache, cache_bandwidth(accelerator)),
                            least_time(kernel, accelerator).base() * kMicro});
  time.launch_us = std::min(time.launch_us, time.total_us);
  return prediction;
}

double CalibratedModel::longest_smaller_us(const Slot& slot, const Kernel& kernel,
                                           const AcceleratorConfig& accelerator) {
  // Measured ratios within one part of a table are closer to each other than that.
  constexpr double kRatios = 2;
  double longest = 0;
  for (const Kernel& smaller : smaller_kernels(kernel)) {
    const KernelTime time = slot.of.family->time(smaller, accelerator, slot.values.data());
    if (kRatios * time.total_us < longest) continue;
    longest = std::max(longest, predict(slot, smaller, accelerator).time.total_us);
  }
  return longest;
}

CalibratedModel::Prediction CalibratedModel::fastest(Device& on, const Kernel& kernel,
                                                     const AcceleratorConfig& accelerator) const {
  const Slot& from = slot(on, kernel, accelerator);
  Prediction all = predict(from, kernel, accelerator);
  if (all.fitted && kernel.reuse.base() > 0)
    all.time.total_us = std::max(all.time.total_us, longest_smaller_us(from, kernel, accelerator));
  if (!on.other) return all;
  Prediction other = fastest(*on.other, kernel, on.other_units);
  if (!on.fewer) {
    all.time.total_us = std::max(all.time.total_us, other.time.total_us);
    return all;
  }
  // More units ask the same L2 for the same bytes.
  if (from.fitted_cache > 0 && cache_bandwidth(accelerator) > 0) {
    const double busy = std::min(all.time.loaded_bytes / from.fitted_cache,
                                 other.time.total_us - other.time.launch_us);
    all.time.total_us =
        std::max(all.time.total_us,
                 all.time.launch_us + busy * from.fitted_cache / cache_bandwidth(accelerator));
  }
  if (other.time.total_us >= all.time.total_us) return all;
  other.extrapolated = all.extrapolated;
  return other;
}

KernelCost CalibratedModel::cost(const Kernel& kernel, const AcceleratorConfig& accelerator) const {
  Device& on = device(accelerator);
  Device::Kept& kept = on.memo[memo_place(kernel)];
  if (kept.used && kept.kernel == kernel) return kept.cost;
  const Prediction prediction = fastest(on, kernel, accelerator);
  const KernelTime& time = prediction.time;
  KernelCost cost;
  cost.launch = to_picoseconds(Seconds(time.launch_us / kMicro));
  cost.duration =
      checked_add(cost.launch, to_picoseconds(Seconds((time.total_us - time.launch_us) / kMicro)));
  // Launch and body are rounded, each to the nearest picosecond.
  cost.duration = std::max(cost.duration, picoseconds_after(least_time(kernel, accelerator)));
  cost.clock = time.clock;
  cost.cache = Bytes(time.cache_bytes);
  if (time.memory_bytes) cost.memory = Bytes(*time.memory_bytes);
  cost.bound = limit_of(kernel, cost, accelerator).bound;
  if (prediction.fitted) {
    cost.provenance = prediction.extrapolated ? Provenance::kExtrapolated : Provenance::kCalibrated;
  }
  kept.kernel = kernel;
  kept.cost = cost;
  kept.used = true;
  return cost;
}

KernelStructure CalibratedModel::structure(const Kernel& kernel,
                                           const AcceleratorConfig& accelerator) const {
  const Slot& from = slot(device(accelerator), kernel, accelerator);
  return {from.of.family->time(kernel, accelerator, from.values.data()),
          from.of.family->blocks(kernel, accelerator, from.values.data())};
}

std::vector<std::vector<double>> CalibratedModel::drawn_values(const Slot& slot,
                                                               std::int64_t seed) const {
  std::vector<std::vector<double>> drawn(kDraws, slot.values);
  const KernelFit& fit = *slot.entry->fit;
  const auto triangle = cholesky(fit.covariance);
  std::vector<std::vector<double>> normals;
  for (const std::string& name : fit.fitted) {
    normals.push_back(normal_draws(
        seed, calibration_->id + "/" + fit.table + "/" + to_string(fit.precision) + "/" + name));
  }
  for (const auto& [index, value] : slot.entry->values) {
    const std::string name = slot.of.group + "." + slot.of.family->parameters()[index].name;
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
  const Slot& from = slot(device(accelerator), kernel, accelerator);
  std::vector<double> factors =
      normal_draws(seed, accelerator.id + "/" + shape_key(kernel) + "/residual");
  if (!from.entry) {
    for (double& factor : factors) factor = std::exp(accelerator.kernel.uncertainty.value * factor);
    return factors;
  }
  const Prediction prediction = predict(from, kernel, accelerator);
  const ResidualClass& residuals = residuals_at(*from.entry->fit, prediction.time.total_us);
  // A class that is off by its median on shapes it has not seen is that much less certain; moving
  // the prediction instead would fit it to what was held out.
  const double widening = prediction.extrapolated ? kExtrapolatedWidening : 1;
  const double sigma = widening * std::hypot(residuals.sigma, residuals.median);
  const double time = from.of.family->time(kernel, accelerator, from.values.data()).total_us;
  const auto drawn = drawn_values(from, seed);
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    factors[draw] = from.of.family->time(kernel, accelerator, drawn[draw].data()).total_us / time *
                    std::exp(sigma * factors[draw]);
  }
  return factors;
}

}  // namespace orrery
