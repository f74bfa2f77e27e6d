// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/device/array_time.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "sim/machine/accelerator_config.h"
#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

/// What the arrays are to do: tiles of weights, each with as many inputs.
struct TiledProduct {
  double tiles = 0, inputs = 0;
};

TiledProduct tiled(const Kernel& kernel, const ArraysConfig& arrays) {
  const auto m = static_cast<double>(kernel.m), n = static_cast<double>(kernel.n);
  const auto k = static_cast<double>(kernel.k), groups = static_cast<double>(kernel.batch);
  const double rows = arrays.rows.value, columns = arrays.columns.value;
  const double on_diagonal = std::floor(std::min(rows / k, columns / n));
  if (on_diagonal < 2) return {groups * std::ceil(k / rows) * std::ceil(n / columns), m};
  // Other groups first, then other inputs of the same.
  const double beside = std::min(groups, on_diagonal);
  const double copies = std::floor(on_diagonal / beside);
  return {std::ceil(groups / beside), std::ceil(m / copies)};
}

double arrays_of(const ComputeConfig& compute, int dies) {
  const double all = static_cast<double>(compute.units.value) * compute.arrays->per_unit.value;
  return std::max(1.0, all / dies);
}

/// FLOPs of the multiply-adds of all arrays: the rate of the precision that they are made for,
/// rounded as the other rates of the data sheet are. Where that rate is another one, by a what-if,
/// products of other precisions run as before.
FlopsPerSecond array_rate(const AcceleratorConfig& accelerator, double count) {
  const ComputeConfig& compute = accelerator.compute;
  const ArraysConfig& arrays = *compute.arrays;
  const double flops = 2.0 * arrays.rows.value * arrays.columns.value;
  const FlopsPerSecond made_for(flops * count * compute.clock.value.base());
  for (const auto& [precision, per_clock] : compute.matrix_per_clock) {
    if (std::abs(per_clock.value / (flops * arrays.per_unit.value) - 1) > kSheetRounding) continue;
    const FlopsPerSecond peak = matrix_peak(accelerator, precision);
    return std::abs(peak / made_for - 1) <= kSheetRounding ? peak : made_for;
  }
  return made_for;
}

/// How many arrays each product has, and the clocks of the slowest on them.
struct Dealt {
  std::vector<double> arrays;
  double slowest = 0;
};

/// One array each, and every further one to the product that is slowest then.
Dealt deal(std::span<Kernel* const> products, const ArraysConfig& arrays, double count) {
  Dealt dealt{std::vector<double>(products.size(), 1), 0};
  std::vector<double> clocks;
  clocks.reserve(products.size());
  for (const Kernel* product : products) clocks.push_back(array_clocks(*product, arrays, 1));
  for (auto left = static_cast<std::int64_t>(count) - std::ssize(products); left > 0; --left) {
    const auto slowest = std::max_element(clocks.begin(), clocks.end()) - clocks.begin();
    const auto at = static_cast<std::size_t>(slowest);
    clocks[at] = array_clocks(*products[at], arrays, ++dealt.arrays[at]);
  }
  dealt.slowest = *std::max_element(clocks.begin(), clocks.end());
  return dealt;
}

/// Gives products that are there at the same time their rates.
void map_context(std::span<Kernel* const> products, const ArraysConfig& arrays, double count) {
  const Dealt dealt = deal(products, arrays, count);
  for (std::size_t i = 0; i < products.size(); ++i) {
    const double array_time = dealt.slowest * dealt.arrays[i] / count;
    products[i]->rate *= array_clocks(*products[i], arrays, count) / array_time;
  }
}

}  // namespace

double array_clocks(const Kernel& kernel, const ArraysConfig& arrays, double count) {
  const TiledProduct product = tiled(kernel, arrays);
  double clocks = std::numeric_limits<double>::infinity();
  for (double parts = 1; parts <= std::min(count, product.inputs); parts *= 2) {
    const double rounds = std::ceil(product.tiles * parts / count);
    const double streamed = std::ceil(product.inputs / parts);
    clocks = std::min(clocks, rounds * std::max<double>(streamed, arrays.load.value));
  }
  return clocks + arrays.fill.value;
}

Seconds array_time(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  const ComputeConfig& compute = accelerator.compute;
  const double count = arrays_of(compute, accelerator.dies);
  const double clocks = array_clocks(kernel, *compute.arrays, count);
  const FlopsPerSecond rate = matrix_peak(accelerator, kernel);
  return Seconds(clocks / compute.clock.value.base()) * (array_rate(accelerator, count) / rate);
}

bool is_product(const Kernel& kernel) {
  const KernelClass kind = kernel.kind;
  const bool product = kind == KernelClass::kGemm || kind == KernelClass::kGroupedGemm ||
                       kind == KernelClass::kConvolution || kind == KernelClass::kLora;
  return product && kernel.m > 0 && kernel.n > 0 && kernel.k > 0;
}

Flops multiply_add_flops(const Kernel& kernel) {
  return Flops(2 * static_cast<double>(kernel.batch) * static_cast<double>(kernel.m) *
               static_cast<double>(kernel.n) * static_cast<double>(kernel.k));
}

void map_in_space(const ComputeConfig& compute, std::vector<Kernel>& kernels) {
  std::vector<Kernel*> products;
  for (Kernel& kernel : kernels)
    if (is_product(kernel)) products.push_back(&kernel);
  const double count = arrays_of(compute, 1);
  const auto most = static_cast<std::size_t>(count);
  const std::size_t contexts = (products.size() + most - 1) / most;
  for (std::size_t context = 0, first = 0; context < contexts; ++context) {
    const std::size_t end = products.size() * (context + 1) / contexts;
    map_context({products.data() + first, end - first}, *compute.arrays, count);
    first = end;
  }
}

}  // namespace orrery
