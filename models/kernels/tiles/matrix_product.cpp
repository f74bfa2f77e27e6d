// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/matrix_product.h"

#include <cstdint>
#include <string>

#include "sim/config/diagnostics.h"
#include "sim/machine/clock.h"
#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

/// Weights rotate over at most five copies where tables are measured; activations do not.
constexpr double kWeightCopies = 5;
/// Vector instructions that widen one weight: a mask and a multiply-add for each pair (Frantar et
/// al., MARLIN, arXiv 2408.11743).
constexpr double kWidening = 1;
constexpr double kFlopsOfInstruction = 2;  ///< peaks count multiply-adds

/// Share of `bytes` that an L2 of that size does not hold from one launch to the next. Sharp: a
/// least-recently-used cache keeps nothing of a set that is a little too large.
double missing(double bytes, double cache) {
  if (!(cache > 0)) return 1;
  const double ratio = cache / bytes, r2 = ratio * ratio, r4 = r2 * r2;
  return 1 / (1 + r4 * r4 * r2);
}

/// A scale of 8 bits for every 16 elements of nvfp4.
double scale_bytes(Precision precision) { return precision == Precision::kNvfp4 ? 1.0 / 16 : 0; }

int instruction_rows(const AcceleratorConfig& a) {
  return a.core && a.core->matrix_tile ? a.core->matrix_tile->rows : 64;
}

}  // namespace

double cache_rate(const AcceleratorConfig& a) {
  return (instruction_rows(a) >= 128 ? 10240 : 5120) * a.compute.clock.value.base() / 1e6;
}

TileDevice tile_device(const AcceleratorConfig& a, const Kernel& kernel) {
  TileDevice d;
  d.units = static_cast<double>(a.compute.units.value) / a.dies;
  d.rate = matrix_peak(a, kernel).base() / 1e6;
  d.vector_rate = a.compute.vector.value.base() / a.dies / d.units / 1e6;
  d.memory = a.memory.bandwidth.value.base() / a.dies / 1e6;
  d.cache = a.cache ? a.cache->capacity.value.base() / a.dies : 0;
  d.instruction_rows = instruction_rows(a);
  d.cache_rate = cache_rate(a);
  d.unit_load = 400 * a.compute.clock.value.base() / 1e6;
  return d;
}

MatrixProduct matrix_product(const Kernel& kernel, const TileDevice& device) {
  MatrixProduct p;
  p.precision = kernel.precision;
  p.batch = static_cast<double>(std::max<std::int64_t>(1, kernel.batch));
  p.m = static_cast<double>(kernel.m);
  p.n = static_cast<double>(kernel.n);
  p.k = static_cast<double>(kernel.k);
  const double element = element_bytes(kernel.precision);
  if (static_cast<double>(kernel.weights.bits) > 8 * element) {
    throw config::ConfigError("operator: weights of " + std::to_string(kernel.weights.bits) +
                              " bits are wider than the " + to_string(kernel.precision) +
                              " operands that they are multiplied with");
  }
  p.bytes.input = element + scale_bytes(kernel.precision);
  p.bytes.weight = weight_bytes(kernel.precision, kernel.weights) + scale_bytes(kernel.precision);
  if (is_widened(kernel)) p.widening_us = kWidening * kFlopsOfInstruction / device.vector_rate;
  return p;
}

Streaming streaming(const MatrixProduct& p, const Kernel& kernel, const TileDevice& d, GemmValues v,
                    double write_efficiency) {
  using enum GemmParameter;
  const double weights = p.batch * p.n * p.k * p.bytes.weight;
  const double inputs = p.batch * p.m * p.k * p.bytes.input;
  const double outputs = p.batch * p.m * p.n * 2;
  const double cache = v[kCacheShare] * d.cache;
  const double from_memory = missing(kWeightCopies * weights + inputs + outputs, cache);
  const double activations = missing(inputs + outputs, cache);
  // What a kernel reads or writes beyond its operands, such as gradients that are added up.
  const double more =
      std::max(0.0, (kernel.read + kernel.written).base() - weights - inputs - outputs);
  const double read = weights * from_memory + inputs * activations + more;
  const double wait = v[kMemoryLatency] * from_memory;
  return {read / (d.memory * v[kMemoryEfficiency]) +
              outputs * activations / (d.memory * write_efficiency) + wait,
          wait, read + outputs * activations};
}

double unit_rate(const MatrixProduct& p, const TileDevice& d, const AcceleratorConfig& accelerator,
                 GemmValues v) {
  using enum GemmParameter;
  const double ideal = 2 * p.batch * p.m * p.n * p.k / d.rate;
  const double reached =
      throttle_reached(accelerator.power, ideal, 1 - std::exp(-ideal / v[kThrottleTime]));
  const double throttle = throttle_here(accelerator, p.precision, v[kThrottle]);
  return d.rate / d.units * v[kEfficiency] / (1 + throttle * reached);
}

KernelTime product_time(double body_us, double memory_us, GemmValues v) {
  KernelTime time;
  time.launch_us = v[GemmParameter::kLaunch];
  time.total_us = time.launch_us + body_us;
  time.bound = time.launch_us > body_us    ? Bound::kLatency
               : memory_us > 0.7 * body_us ? Bound::kMemory
                                           : Bound::kTensor;
  return time;
}

}  // namespace orrery
