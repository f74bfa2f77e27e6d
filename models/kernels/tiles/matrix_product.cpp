// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/matrix_product.h"

#include <cstdint>
#include <string>

#include "models/kernels/device/cache_parts.h"
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

/// Share of the units that clusters which are asked for can fill.
double filled_units(const AcceleratorConfig& a, std::int64_t cluster) {
  if (cluster <= 1) return 1;
  const int most = a.core ? a.core->max_cluster.value : 1;
  if (cluster > most) {
    throw config::KeyError("operator.cluster", a.name + " has clusters of up to " +
                                                   std::to_string(most) + " blocks, not " +
                                                   std::to_string(cluster));
  }
  return a.core->groups ? a.core->groups->filled(cluster) : 1;
}

}  // namespace

/// Steps: 4, 3, 2 from Ampere to Blackwell, as instructions, loads and latencies overlap less and
/// less in time that gets shorter. Last waves: as what their tiles fill where schedules are
/// persistent (Hopper), as full ones where clusters of two units start together (Blackwell). All
/// read off fits of A100, H100, H200 and B200.
ProductOverlap product_overlap(MatrixIssue issue) {
  constexpr ProductOverlap kAmpere{4, 3, 0.8, 3, 4, 5120};
  constexpr ProductOverlap kHopper{3, 4, 1e-3, 4, 3, 5120};
  constexpr ProductOverlap kBlackwell{2, 3, 1, 3, 2, 10240};
  switch (issue) {
    case MatrixIssue::kQuadPair:
    case MatrixIssue::kWarp:
    case MatrixIssue::kWavefront:
    case MatrixIssue::kQueue:
      return kAmpere;
    case MatrixIssue::kWarpgroup:
      return kHopper;
    case MatrixIssue::kThread:
    case MatrixIssue::kArray:
      return kBlackwell;
  }
  return kHopper;
}

double cache_rate(const AcceleratorConfig& a) {
  const double clock = a.compute.clock.value.base() / 1e6;
  return cache_hit_rate(
      a, product_overlap(matrix_issue(a).value_or(kUnknownIssue)).cache_bytes * clock);
}

double multicast_of(std::int64_t cluster) {
  std::int64_t rows = 1;
  for (std::int64_t r = 2; r * r <= cluster; ++r)
    if (cluster % r == 0) rows = r;
  return 2 /
         (1 / static_cast<double>(rows) + static_cast<double>(rows) / static_cast<double>(cluster));
}

TileDevice tile_device(const AcceleratorConfig& a, const Kernel& kernel) {
  TileDevice d;
  const double all = static_cast<double>(a.compute.units.value) / a.dies;
  d.units = std::max(1.0, std::round(all * filled_units(a, kernel.cluster)));
  d.rate = matrix_peak(a, kernel).base() / 1e6 * (d.units / all);
  d.vector_rate = a.compute.vector.value.base() / a.dies / all / 1e6;
  d.memory = memory_rate(a);
  d.cache = a.cache ? a.cache->capacity.value.base() / a.dies : 0;
  d.issue = matrix_issue(a).value_or(kUnknownIssue);
  d.overlap = product_overlap(d.issue);
  d.cache_rate = cache_rate(a);
  d.unit_load = 400 * a.compute.clock.value.base() / 1e6;
  d.multicast = kernel.cluster > 0 ? multicast_of(kernel.cluster) : kMulticast;
  d.hiding = load_hiding(a);
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
    throw config::KeyError({"operator.weights", "precision"},
                           "weights of " + std::to_string(kernel.weights.bits) +
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
  const double between =
      kernel.reuse.base() > 0 ? kernel.reuse.base() : kWeightCopies * weights + inputs + outputs;
  const double from_memory = missing(between, cache);
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

double clock_loss(const MatrixProduct& p, const TileDevice& d, const AcceleratorConfig& accelerator,
                  GemmValues v) {
  using enum GemmParameter;
  const double ideal = 2 * p.batch * p.m * p.n * p.k / d.rate;
  const double reached = 1 - std::exp(-ideal / v[kThrottleTime]);
  const double throttle = throttle_here(accelerator, p.precision, v[kThrottle]);
  return 1 + throttle * reached;
}

double unit_rate(const MatrixProduct& p, const TileDevice& d, const AcceleratorConfig& accelerator,
                 GemmValues v) {
  return d.rate / d.units * v[GemmParameter::kEfficiency] / clock_loss(p, d, accelerator, v);
}

}  // namespace orrery
