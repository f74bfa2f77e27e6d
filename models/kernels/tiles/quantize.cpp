// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "models/kernels/device/cache_parts.h"
#include "models/kernels/device/family.h"
#include "models/kernels/tiles/matrix_product.h"

namespace orrery {
namespace {

enum Parameter : std::size_t {
  kLaunch,            ///< us of the launch
  kMemoryEfficiency,  ///< share of the memory bandwidth
  kRow,               ///< us for 1000 elements of a row
  kShortRow,          ///< elements that a row counts as at least
  kSharpness,         ///< p of the p-norm
};

/// Activations to a narrower format, as serving engines do before a narrow product: [m, n] of 16
/// bits are read, the elements and their scales written. Time is the p-norm of three parts:
///  - a fixed one, launches and what one row takes at least (formats with a scale for the whole
///    tensor find its maximum first, in a kernel of its own),
///  - the length of a row, that one thread block walks through,
///  - all rows over the memory, short rows counting as `short_row` elements.
/// p below 1 means that they do more than follow each other. Fitted on rows of the GEMM tables of
/// H100, H200 and B200, each of which is a quantisation and a product.
class QuantizeFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override {
    static const std::vector<ParameterInfo> table = {
        {"launch", "us", 0.05, 1000}, {"memory_efficiency", "1", 0.05, 1}, {"row", "us", 1e-3, 5},
        {"short_row", "1", 1, 8192},  {"sharpness", "1", 0.5, 8},
    };
    return table;
  }

  std::vector<double> priors(const AcceleratorConfig& accelerator, Precision) const override {
    // Two kernels, and two passes over the memory, of which the second finds part in the L2.
    const double launch = accelerator.kernel.launch.value.base() * 1e6;
    return {2 * launch, 0.4, 0.1, 256, 1.2};
  }

  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* v) const override {
    const double memory = memory_rate(accelerator);
    const double columns = static_cast<double>(std::max<std::int64_t>(1, kernel.n));
    const double bytes =
        (kernel.read + kernel.written).base() * std::max(columns, v[kShortRow]) / columns;
    const double stream = bytes / (memory * v[kMemoryEfficiency]);
    const double row = v[kRow] * columns / 1000;
    const double p = v[kSharpness];
    KernelTime time;
    time.launch_us = v[kLaunch];
    time.total_us =
        std::pow(std::pow(v[kLaunch], p) + std::pow(row, p) + std::pow(stream, p), 1 / p);
    return time;
  }

  /// The fixed part grows with the units that have to agree on a maximum; rows follow the L2, where
  /// most of two passes stays: H100 and H200 quantise at one rate, a B200 at twice that.
  std::vector<double> transferred(const std::vector<double>& values, const AcceleratorConfig& from,
                                  const AcceleratorConfig& to, Precision) const override {
    // A small part of a device still launches its kernels: no less than half, no more than twice.
    const double units = static_cast<double>(to.compute.units.value) / to.dies /
                         (static_cast<double>(from.compute.units.value) / from.dies);
    std::vector<double> moved = values;
    moved[kLaunch] *= std::clamp(units, 0.5, 2.0);
    const auto cached = [](const AcceleratorConfig& a) {
      return cache_rate(a) / (a.memory.bandwidth.value.base() / a.dies);
    };
    moved[kMemoryEfficiency] = std::min(1.0, moved[kMemoryEfficiency] * cached(to) / cached(from));
    return moved;
  }
};

const RegisterTileFamily<QuantizeFamily> registered_quantize_tiles(
    KernelClass::kQuantize, "quantisation of rows by blocks");

}  // namespace
}  // namespace orrery
