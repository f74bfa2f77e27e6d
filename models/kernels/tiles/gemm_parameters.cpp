// SPDX-License-Identifier: Apache-2.0
// The parameters of matrix products: limits, priors, and what they become on another device.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "models/kernels/device/cache_parts.h"
#include "models/kernels/device/dram.h"
#include "models/kernels/tiles/block_scaled_gemm.h"
#include "models/kernels/tiles/gemm.h"
#include "models/kernels/tiles/matrix_product.h"
#include "sim/machine/clock.h"
#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

using enum GemmParameter;

/// What a data sheet says of one unit.
struct UnitRates {
  double clock = 0;   ///< clocks in a us
  double flops = 0;   ///< a clock
  double memory = 0;  ///< bytes/us of the memory
  MatrixIssue issue = kUnknownIssue;
};

UnitRates unit_rates(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  const TileDevice d = tile_device(accelerator, kernel);
  const double clock = accelerator.compute.clock.value.base() / 1e6;
  return {clock, d.rate / d.units / clock, d.memory / d.units, d.issue};
}

}  // namespace

const std::vector<ParameterInfo>& GemmFamily::parameters() const {
  static const std::vector<ParameterInfo> table = {
      {"launch", "us", 0.1, 1000},
      {"memory_efficiency", "1", 0.3, 1},
      {"cache_share", "1", 0.01, 5},
      {"memory_latency", "us", 0.01, 6},
      {"matrix_efficiency", "1", 0.2, 1.1},
      {"throttle", "1", 5e-4, 1.5},
      {"throttle_time", "us", 10, 10000},
      {"step_latency", "ns", 0.02, 8},
      {"fill", "us", 0.02, 5},
      {"epilogue", "us", 0.01, 6},
      {"overlap_loss", "1", 1e-3, 1},
      {"waves", "1", 1e-3, 1},
      {"split", "us", 0.02, 9},
      {"split_traffic", "1", 1e-3, 6},
      {"write_efficiency", "1", 0.1, 1},
      {"swapped_step", "1", 0.5, 3},
      {"padding", "us", 1e-3, 1},
      {"padding_free", "1", 0.05, 20},
  };
  return table;
}

std::vector<double> GemmFamily::priors(const AcceleratorConfig& accelerator,
                                       Precision precision) const {
  // Regularities of the devices that have been fitted: the latency of a step follows the width of
  // the elements, the epilogue drains at a unit's share of the memory bandwidth.
  const double units = static_cast<double>(accelerator.compute.units.value) / accelerator.dies;
  const double memory = accelerator.memory.bandwidth.value.base() / accelerator.dies / 1e6;
  // Short products issue at the boost clock, long ones at what the power cap allows: 1.16 against
  // 1.15 fitted on the H100, 1.17 and 1.24 on the H200, 1.00 and 1.03 on the A100; on the B200,
  // 1.17 and 1.2 to 1.5, the cap explains half. Changes of a device come on top in time().
  const AcceleratorConfig& sold = accelerator.sold ? *accelerator.sold : accelerator;
  const Activity product = long_product(sold, precision);
  const double issued = product.matrix / (matrix_peak(sold, precision) * sold.dies);
  const double throttle = product_slowdown(sold, precision) - 1;
  const auto dram = dram_efficiency(accelerator.memory);
  // Two copies of what all units read are what fitted devices keep.
  return {1.6,
          dram ? 0.9 * dram->read : 0.84,
          std::min(0.6, 1.2 / cache_copies(accelerator)),
          1.3,
          std::clamp(issued, 0.2, 1.1),
          std::clamp(throttle, 5e-4, 1.5),
          1000,
          0.65 * std::max(0.5, element_bytes(precision)),
          1.0 + far_wait_us(accelerator),
          std::clamp(1.3 * 32768 * units / memory, 0.1, 5.0),
          0.6,
          0.4,
          2.5,
          0.4,
          0.4,
          1.2,
          0.05,
          1.0};
}

std::vector<double> GemmFamily::transferred(const std::vector<double>& values,
                                            const AcceleratorConfig& from,
                                            const AcceleratorConfig& to,
                                            Precision precision) const {
  Kernel of;
  of.precision = precision;
  const UnitRates a = unit_rates(of, from), b = unit_rates(of, to);
  std::vector<double> moved = values;
  const auto at = [&moved](GemmParameter p) -> double& {
    return moved[static_cast<std::size_t>(p)];
  };
  at(kStepLatency) *= a.clock / b.clock * (a.flops / b.flops);
  at(kThrottle) = throttle_moved(from, to, precision, at(kThrottle));
  if (runs_block_scaled(of, from) && runs_block_scaled(of, to)) {
    // Results leave by way of the L2: H100 and H200 write at one rate.
    at(kWriteEfficiency) = std::min(
        1.0, at(kWriteEfficiency) * cache_rate(to) / cache_rate(from) * a.memory / b.memory);
  } else {
    at(kEpilogue) *= a.memory / b.memory;
  }
  // Fits have the parts of the L2 that they were made on in them.
  at(kFill) = std::max(0.02, at(kFill) + far_wait_us(to) - far_wait_us(from));
  at(kCacheShare) *= cache_copies(from) / cache_copies(to);
  if (a.issue != b.issue) at(kWaves) = product_overlap(b.issue).last_wave;
  return moved;
}

std::optional<ResidualPoint> GemmFamily::residual_point(const Kernel& kernel,
                                                        const AcceleratorConfig& /*on*/) const {
  // Scales by which errors stay alike: cross-validated on fitted rows of H200, others by a factor
  // of 1.5 change the error by some 0.1 % at most. Rows of odd length are not aligned: libraries
  // take other kernels for them once they have more than one tile's worth.
  const auto doublings = [](std::int64_t size) {
    return std::log2(static_cast<double>(std::max<std::int64_t>(1, size)));
  };
  if (kernel.weights != WeightFormat{} || kernel.tile != std::array<std::int64_t, 2>{} ||
      kernel.cluster > 0)
    return std::nullopt;  // tables have dense products of one format, by the library's tiles
  const bool odd = kernel.m > 17 && kernel.m % 2 == 1;
  return ResidualPoint{0,
                       {0.5 * doublings(kernel.m), 0.5 * doublings(kernel.n),
                        0.3 * doublings(kernel.k), odd ? 0.15 : 0, 0.5 * doublings(kernel.batch)}};
}

}  // namespace orrery
