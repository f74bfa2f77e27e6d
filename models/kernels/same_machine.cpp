// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/same_machine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "models/kernels/device/cache_parts.h"
#include "models/kernels/device/unit_clock.h"
#include "sim/machine/kernel_model.h"

namespace orrery {

bool differs(double a, double b) { return std::abs(a - b) > 1e-3 * std::max(a, b); }

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

bool inside(const ShapeRange& range, const Kernel& kernel, bool narrow) {
  const auto within = [](const std::vector<std::int64_t>& ends, std::int64_t value) {
    return ends[0] <= value && value <= ends[1];
  };
  const WeightFormat& weights = kernel.weights;
  const bool stored =
      narrow ? weights.bits > 0 && !weights.sparse && !weights.marlin : weights == WeightFormat{};
  // Tiles of scans say whose kernel it is, and tables have both kinds.
  const bool asked =
      kernel.kind != KernelClass::kScan && kernel.tile != std::array<std::int64_t, 2>{};
  return stored && !asked && kernel.cluster == 0 && !kernel.attention.backward &&
         kernel.attention.lengths.empty() && within(range.batch, kernel.batch) &&
         within(range.m, kernel.m) && within(range.n, kernel.n) && within(range.k, kernel.k);
}

double units_of_rank(const AcceleratorConfig& accelerator) {
  return static_cast<double>(accelerator.compute.units.value) / accelerator.dies;
}

double cache_bandwidth(const AcceleratorConfig& a) {
  return a.cache ? a.cache->bandwidth.value.base() / a.dies / 1e6 : 0;
}

bool other_structure(const AcceleratorConfig& measured, const AcceleratorConfig& accelerator) {
  const auto async = [](const AcceleratorConfig& a) { return !a.core || a.core->async_copy.value; };
  return cache_bandwidth(measured) != cache_bandwidth(accelerator) ||
         exponentials_over(accelerator, measured) != 1 ||
         far_wait_us(measured) != far_wait_us(accelerator) ||
         cache_copies(measured) != cache_copies(accelerator) ||
         crossing_rate(measured) != crossing_rate(accelerator) ||
         matrix_issue(measured) != matrix_issue(accelerator) ||
         async(measured) != async(accelerator);
}

std::vector<double> shaken(const FamilyOf& of, const KernelFit& fit, std::vector<double> values) {
  if (fit.sibling.empty()) return {};
  const std::vector<ParameterInfo>& infos = of.family->parameters();
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const auto found = fit.parameters.find(of.group + "." + infos[i].name);
    if (found != fit.parameters.end() && found->second.provenance == ParameterProvenance::kSibling)
      values[i] = 1.1 * values[i] + 1e-3;
  }
  return values;
}

}  // namespace orrery
