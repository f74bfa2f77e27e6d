// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/calibrated_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "models/kernels/calibrated_prices.h"
#include "models/kernels/parameter_limits.h"
#include "models/kernels/same_machine.h"
#include "models/kernels/tile_model.h"
#include "sim/config/diagnostics.h"

namespace orrery {
namespace {

/// Accelerators whose numbers are kept: one as it is, with what transfers leave of it, and as it is
/// in a what-if.
constexpr std::size_t kDevices = 8;
/// The table of a class of kernels as they are on an accelerator.
/// @param values of the family there
ResidualTable residual_table(const KernelFit& fit, const KernelFamily& family, KernelClass kind,
                             const AcceleratorConfig& accelerator,
                             const std::vector<double>& values) {
  std::vector<MeasuredResidual> points;
  points.reserve(fit.ratios.size());
  for (const MeasuredRatio& measured : fit.ratios) {
    if (measured.shape.kind != kind) continue;
    if (const auto point = family.residual_point(measured.shape, accelerator, values.data()))
      points.push_back({*point, std::log(measured.ratio)});
  }
  return ResidualTable(std::move(points));
}

/// Formats whose kernels a library makes alike, for tables that lack one of them: of the same width
/// and rate, or operands of fewer bits and finer scales in the same loops.
std::optional<Precision> like(Precision precision) {
  switch (precision) {
    case Precision::kFp16:
      return Precision::kBf16;
    case Precision::kInt8:
    case Precision::kFp8Block:
    case Precision::kNvfp4:
      return Precision::kFp8;
    default:
      return std::nullopt;
  }
}

/// Weights of four bits, which a table may have alone: Blackwell's experts were timed with no
/// others.
constexpr const char* kFourBits = "_w4";

}  // namespace

/// The last accelerators that kernels were priced on, the last one first.
class CalibratedModel::Devices {
 public:
  /// The one with these numbers; null: it is none of the last ones.
  std::shared_ptr<Device> find(const DeviceNumbers& numbers) {
    const auto known = std::find_if(devices_.begin(), devices_.end(), [&](const auto& device) {
      // Bit by bit, which is faster: two zeros that differ only start anew.
      // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
      return std::memcmp(&device->numbers, &numbers, sizeof numbers) == 0;
    });
    if (known == devices_.end()) return nullptr;
    std::rotate(devices_.begin(), known, known + 1);
    return devices_.front();
  }
  void add(std::shared_ptr<Device> device) {
    if (devices_.size() == kDevices) devices_.pop_back();
    devices_.insert(devices_.begin(), std::move(device));
  }

 private:
  std::vector<std::shared_ptr<Device>> devices_;
};

CalibratedModel::CalibratedModel() : devices_(std::make_unique<Devices>()) {}
CalibratedModel::~CalibratedModel() = default;

CalibratedModel::CalibratedModel(const Calibration& calibration)
    : CalibratedModel(std::make_shared<const Calibration>(calibration)) {}

CalibratedModel::CalibratedModel(std::shared_ptr<const Calibration> calibration)
    : calibration_(std::move(calibration)), devices_(std::make_unique<Devices>()) {
  const KernelFits& fits = calibration_->fits;
  for (std::size_t i = 0; i < fits.size(); ++i) {
    const FitSubject subject = fits.subject(i);
    for (const std::string& group : subject.groups) {
      fits_[{group, subject.precision}] = i;
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

std::optional<CalibratedModel::Entry> CalibratedModel::find(FamilyOf& of,
                                                            Precision precision) const {
  const std::string wide = wide_group(of.group);
  for (const std::string& group : {of.group, wide, wide + kFourBits}) {
    auto fit = fits_.find({group, precision});
    if (const auto other = like(precision); fit == fits_.end() && other)
      fit = fits_.find({group, *other});
    if (fit == fits_.end()) continue;
    of.group = group;
    return entry(calibration_->fits.at(fit->second), group);
  }
  return std::nullopt;
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
  const auto rate = rates.matrix.find(precision);
  const auto* peak = find_precision(accelerator.compute.matrix, precision);
  return rate != rates.matrix.end() && peak && differs(rate->second.base(), peak->value.base());
}

void CalibratedModel::fill(Slot& slot, const Kernel& kernel,
                           const AcceleratorConfig& accelerator) const {
  slot.of = family_of(model(), kernel);
  slot.entry = find(slot.of, kernel.precision);
  slot.values = values(slot.of, slot.entry, kernel.precision, accelerator);
  if (slot.entry) {
    const KernelFit& fit = *slot.entry->fit;
    const auto shapes = fit.shapes.find(kernel.kind);
    slot.shapes = shapes == fit.shapes.end() ? nullptr : &shapes->second;
    const bool same = fit.precision == kernel.precision || kernel.precision == Precision::kFp16;
    slot.narrow = slot.of.group != wide_group(slot.of.group);
    slot.other_rates = !same || other_rates(kernel.precision, accelerator);
    slot.shaken = shaken(slot.of, fit, slot.values);
    slot.residuals = residual_table(fit, *slot.of.family, kernel.kind, accelerator, slot.values);
  }
  if (calibration_ && calibration_->device)
    slot.fitted_cache = cache_bandwidth(*calibration_->device);
  slot.ready = true;
}

std::unique_ptr<CalibratedPrices> CalibratedModel::bound(
    const AcceleratorConfig& accelerator) const {
  const DeviceNumbers numbers = device_numbers(accelerator);
  std::shared_ptr<Device> device = devices_->find(numbers);
  if (!device) {
    device = make_device(numbers, accelerator);
    devices_->add(device);
  }
  return std::make_unique<Prices>(*this, accelerator, std::move(device));
}

std::unique_ptr<KernelPrices> CalibratedModel::on(const AcceleratorConfig& accelerator) const {
  return bound(accelerator);
}

KernelStructure CalibratedModel::structure(const Kernel& kernel,
                                           const AcceleratorConfig& accelerator) const {
  return bound(accelerator)->structure(kernel);
}

std::shared_ptr<CalibratedModel::Device> CalibratedModel::make_device(
    const DeviceNumbers& numbers, const AcceleratorConfig& accelerator) const {
  auto made = std::make_shared<Device>();
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
      made->fewer ? std::make_shared<Device>() : make_device(device_numbers(other), other);
  return made;
}

const CalibratedModel::Slot& CalibratedModel::slot(Device& device, const Kernel& kernel,
                                                   const AcceleratorConfig& accelerator) const {
  const bool wide = kernel.weights.bits == 0 || kernel.weights.marlin;
  const std::size_t weights = wide ? 0 : kernel.weights.bits < 8 ? 1 : 2;
  Slot& slot =
      device.slots[(static_cast<std::size_t>(kernel.kind) * 3 + weights) * kPricedPrecisions +
                   static_cast<std::size_t>(kernel.precision)];
  if (!slot.ready) fill(slot, kernel, accelerator);
  return slot;
}

}  // namespace orrery
