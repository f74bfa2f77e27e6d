// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/sibling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "models/kernels/device/family.h"
#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

const KernelFit* fit_of(const Calibration& calibration, const std::string& table,
                        Precision precision) {
  for (const KernelFit& fit : calibration.fits)
    if (fit.table == table && fit.precision == precision && fit.sibling.empty()) return &fit;
  return nullptr;
}

/// How far the rates of two devices are apart.
double distance(const AcceleratorConfig& a, const AcceleratorConfig& b, Precision precision) {
  const double memory = a.memory.bandwidth.value / b.memory.bandwidth.value;
  const double matrix = matrix_peak(a, precision) / matrix_peak(b, precision);
  return std::abs(std::log(memory)) + std::abs(std::log(matrix));
}

/// The parameters of one class of kernels as they are on another device.
void carry_over(const FamilyOf& of, const AcceleratorConfig& from, const AcceleratorConfig& to,
                KernelFit& fit) {
  const std::vector<double> values =
      of.family->transferred(values_of(fit, of, from), from, to, fit.precision);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto found = fit.parameters.find(of.group + "." + of.family->parameters()[i].name);
    if (found == fit.parameters.end()) continue;
    // The covariance is of logarithms, and stays.
    CalibratedParameter& parameter = found->second;
    const double ratio = parameter.value > 0 ? values[i] / parameter.value : 1;
    parameter.value = values[i];
    parameter.standard_error *= ratio;
    parameter.provenance = ParameterProvenance::kSibling;
  }
}

}  // namespace

std::optional<KernelFit> sibling_fit(const std::vector<CalibratedDevice>& devices,
                                     const std::string& model, const AcceleratorConfig& accelerator,
                                     const std::string& table, Precision precision) {
  const CalibratedDevice* nearest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const CalibratedDevice& device : devices) {
    if (device.calibration.model != model || device.accelerator.id == accelerator.id ||
        fit_of(device.calibration, table, precision) == nullptr)
      continue;
    const double apart = distance(device.accelerator, accelerator, precision);
    if (apart >= least) continue;
    least = apart;
    nearest = &device;
  }
  if (nearest == nullptr) return std::nullopt;
  KernelFit fit = *fit_of(nearest->calibration, table, precision);
  std::map<std::string, FamilyOf> families;
  for (const auto& [kind, shapes] : fit.shapes) {
    const FamilyOf of = family_of(model, kind);
    families.emplace(of.group, of);
  }
  for (const auto& [group, of] : families) carry_over(of, nearest->accelerator, accelerator, fit);
  fit.sibling = nearest->accelerator.id;
  fit.ratios = {};
  fit.fit_error = fit.held_out_error = fit.structure_error = fit.whole_model_error = {};
  return fit;
}

void borrow(const std::string& model, const AcceleratorConfig& accelerator,
            const std::vector<FitRow>& at_fault, const std::vector<FitRow>& kept,
            const KernelFit& sibling, KernelFit& fit) {
  constexpr std::size_t kEnough = 200;
  const std::vector<FitRow> broken = thinned(at_fault, kEnough), whole = thinned(kept, kEnough);
  for (const auto& [kind, shapes] : sibling.shapes) {
    const FamilyOf of = family_of(model, kind);
    const std::vector<ParameterInfo>& infos = of.family->parameters();
    for (std::size_t i = 0; i < infos.size(); ++i) {
      const auto found = sibling.parameters.find(of.group + "." + infos[i].name);
      if (found == sibling.parameters.end() || moves(*of.family, i, kind, whole, accelerator) ||
          !moves(*of.family, i, kind, broken, accelerator))
        continue;
      fit.parameters[found->first] = found->second;
    }
  }
  fit.sibling = sibling.sibling;
  fit.residuals = sibling.residuals;
}

}  // namespace orrery
