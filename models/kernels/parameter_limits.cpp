// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/parameter_limits.h"

#include <algorithm>

#include "sim/machine/kernel_model.h"
#include "sim/machine/precision_names.h"

namespace orrery {

const KernelFamily* family_named(const std::string& model, const std::string& group) {
  for (const auto& [kind, name] : config::EnumNames<KernelClass>::values) {
    const FamilyOf of = family_of(model, kind);
    if (of.group == wide_group(group)) return of.family;
  }
  return nullptr;
}

double lowest_fitted(const ParameterInfo& info) { return std::max(info.lower, 1e-3); }

bool at_limit(const ParameterInfo& info, double value) {
  constexpr double kRounding = 1.001;  // of what a solver leaves between
  return value < lowest_fitted(info) * kRounding || value > info.upper / kRounding;
}

std::vector<ParameterAtLimit> parameters_at_limits(const Calibration& calibration) {
  std::vector<ParameterAtLimit> found;
  for (const KernelFit& fit : calibration.fits) {
    for (const auto& [name, parameter] : fit.parameters) {
      if (parameter.provenance != ParameterProvenance::kFitted) continue;
      const std::size_t dot = std::min(name.find('.'), name.size() - 1);
      const KernelFamily* family = family_named(calibration.model, name.substr(0, dot));
      if (family == nullptr) continue;
      const std::size_t index = parameter_index(*family, name.substr(dot + 1));
      if (index < family->parameters().size() &&
          at_limit(family->parameters()[index], parameter.value))
        found.push_back({&fit, name, parameter.value});
    }
  }
  return found;
}

}  // namespace orrery
