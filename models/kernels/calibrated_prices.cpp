// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/calibrated_prices.h"

#include <algorithm>
#include <cmath>

#include "models/kernels/device/cache_parts.h"
#include "models/kernels/same_machine.h"
#include "sim/machine/clock.h"
#include "sim/machine/draws.h"
#include "sim/machine/limits.h"
#include "sim/units/hash.h"

namespace orrery {
namespace {

/// A shape outside what was measured: its error is taken to be twice as wide. An assumption; the
/// largest ratio of spreads between neighbouring sizes of the fitted tables is about that.
constexpr double kExtrapolatedWidening = 2;
/// Variance of a ResidualEstimate above which measured shapes tell little about a kernel. Of the
/// held-out rows of H200's GEMMs and prefill, fewer than 1 % are that far from the fitted ones.
constexpr double kUnknown = 0.75;
/// Standard deviation of log(measured / predicted), common to the kernels of a class, where a
/// device is predicted by the calibration of another: of the medians by class and precision (GEMMs,
/// attention, experts) of rows of A100, B200, B300, L40S and RTX PRO 6000 by the parameters of H100
/// and of A100 (validation/README.md, "Devices that nobody measured").
constexpr double kOtherDevice = 0.2;
/// Share of a device's uncertainty of priors that kernels have which only stream, here 0.22 of 0.4:
/// spread and median of log(measured / predicted) of kernels in public benchmarks, sizes beyond the
/// L2: casts to MXFP8 on B200 (ROCm TransformerEngine pull request 598, 2026: six, 0.02 to 0.16),
/// norms there (PyTorch 159682, 2025: eight, -0.07 to 0.16), gated units on GB200 (Transformer
/// Engine 3315, 2026: two, 0.01 and 0.04), layer norms on A100 (apex 1037, 2021: before and after,
/// forward 0.33 and -0.01, backward 0.78 and 0.07) and backward on GB300 (KernelAgent 133, 2026:
/// 1.04 and 0.60), Adam on H100 (PyTorch 119842, 2024: 0.14 and -0.09).
constexpr double kStreams = 0.55;

/// Lower triangle L of the covariance C = L L^T; a pivot that rounding made negative is 0.
std::vector<std::vector<double>> cholesky(const std::vector<std::vector<double>>& c) {
  std::vector<std::vector<double>> l(c.size(), std::vector<double>(c.size()));
  for (std::size_t i = 0; i < c.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double rest = c[i][j];
      for (std::size_t k = 0; k < j; ++k) rest -= l[i][k] * l[j][k];
      if (i == j) {
        l[i][j] = std::sqrt(std::max(0.0, rest));
      } else {
        l[i][j] = l[j][j] > 0 ? rest / l[j][j] : 0;
      }
    }
  }
  return l;
}

const ResidualClass& residuals_at(const KernelFit& fit, double time_us) {
  for (const ResidualClass& residuals : fit.residuals)
    if (residuals.below_us == 0 || time_us < residuals.below_us) return residuals;
  return fit.residuals.back();
}

/// Where the cost of a kernel is kept.
std::size_t memo_place(const Kernel& kernel) {
  std::uint64_t state = static_cast<std::uint64_t>(kernel.kind) * kPricedPrecisions +
                        static_cast<std::uint64_t>(kernel.precision);
  for (const std::int64_t dimension :
       {kernel.batch, kernel.m, kernel.n, kernel.k, kernel.attention.kv_heads})
    state = (state ^ static_cast<std::uint64_t>(dimension)) * 0x9e3779b97f4a7c15;
  return next_random(state) % kMemoPlaces;
}

/// What an error belongs to: two kernels of one shape on one device err alike.
std::string shape_key(const Kernel& kernel) {
  std::string key = std::string(to_string(kernel.kind)) + "/" + to_string(kernel.precision);
  for (const std::int64_t dimension : {kernel.batch, kernel.m, kernel.n, kernel.k})
    key += "/" + std::to_string(dimension);
  return key;
}

/// What tiles load passes the L2, and fits have its bandwidth as it was in them: with less of it,
/// what it was busy for takes longer.
double through_cache_us(const KernelTime& time, double fitted, double here) {
  if (!(here > 0) || here >= fitted) return 0;
  const double busy = std::min(time.loaded_bytes / fitted, time.total_us - time.launch_us);
  return time.launch_us + busy * fitted / here;
}

/// Whether a fit tells of a kernel: rows that only stream tell nothing of products, whose matrix
/// units are as they were estimated.
bool tells(const ShapeRange* measured, const Kernel& kernel) {
  return measured == nullptr || measured->k.empty() || measured->k.back() > 0 ||
         kernel.matrix_flops.base() == 0;
}

/// The device with all that one domain clocks at `share` of its clock.
AcceleratorConfig at_share_of_clock(AcceleratorConfig device, double share) {
  ComputeConfig& compute = device.compute;
  compute.clock.value *= share;
  if (compute.boost_clock) compute.boost_clock->value *= share;
  for (auto& [precision, rate] : compute.matrix) rate.value *= share;
  for (auto& [precision, rate] : compute.matrix_inference) rate.value *= share;
  compute.vector.value *= share;
  if (compute.special) compute.special->value *= share;
  if (device.core) device.core->shared_bandwidth.value *= share;
  if (device.cache) device.cache->bandwidth.value *= share;
  if (device.memory.exchange) device.memory.exchange->value *= share;
  return device;
}

}  // namespace

/// Clock at which the kernel needs as many clocks as at the clock as sold: what a higher clock does
/// not shorten, or a cap takes back, keeps its time at a lower one.
double CalibratedModel::Prices::clock_of_work(const Kernel& kernel, const KernelCost& cost) {
  const double faster =
      accelerator_.sold ? boost_clock(accelerator_) / boost_clock(*accelerator_.sold) : 1;
  constexpr double kSame = 1e-9;  // rounding
  if (faster <= 1 + kSame || cost.duration == cost.launch) return cost.clock;
  if (!slower_) {
    slower_ = at_share_of_clock(accelerator_, 1 / faster);
    at_clock_as_sold_ = model_.bound(*slower_);
  }
  const KernelCost before = at_clock_as_sold_->cost(kernel);
  const auto body = [](const KernelCost& c) { return static_cast<double>(c.duration - c.launch); };
  return std::min(cost.clock, before.clock * body(before) / (body(cost) * faster));
}

KernelCost CalibratedModel::Prices::cost(const Kernel& kernel) {
  Device::Kept& kept = device_->memo[memo_place(kernel)];
  if (kept.used && kept.kernel == kernel) return kept.cost;
  kept.cost = model_.priced(*device_, kernel, accelerator_);
  kept.cost.clock = clock_of_work(kernel, kept.cost);
  kept.kernel = kernel;
  kept.used = true;
  return kept.cost;
}

KernelStructure CalibratedModel::Prices::structure(const Kernel& kernel) {
  const Slot& from = model_.slot(*device_, kernel, accelerator_);
  return {from.of.family->time(kernel, accelerator_, from.values.data()),
          from.of.family->blocks(kernel, accelerator_, from.values.data())};
}

CalibratedModel::Prediction CalibratedModel::predict(const Slot& slot, const Kernel& kernel,
                                                     const AcceleratorConfig& accelerator) {
  Prediction prediction;
  KernelTime& time = prediction.time =
      slot.of.family->time(kernel, accelerator, slot.values.data());
  prediction.by_parameters_us = time.total_us;
  prediction.fitted = slot.entry.has_value() && tells(slot.shapes, kernel);
  if (prediction.fitted) {
    prediction.extrapolated =
        slot.other_rates || slot.shapes == nullptr || !inside(*slot.shapes, kernel, slot.narrow) ||
        (!slot.shaken.empty() &&
         slot.of.family->time(kernel, accelerator, slot.shaken.data()).total_us != time.total_us);
    const auto point = slot.residuals.empty() ? std::nullopt
                                              : slot.of.family->residual_point(kernel, accelerator,
                                                                               slot.values.data());
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
  // Measured ratios within one part of a table are closer to each other than that; those of narrow
  // weights, whose tactics change with the rows of an expert, less close.
  const double ratios = slot.narrow ? 4 : 2;
  double longest = 0;
  for (const Kernel& smaller : smaller_kernels(kernel)) {
    const KernelTime time = slot.of.family->time(smaller, accelerator, slot.values.data());
    if (ratios * time.total_us < longest) continue;
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

KernelCost CalibratedModel::priced(Device& on, const Kernel& kernel,
                                   const AcceleratorConfig& accelerator) const {
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
  cost.computed = time.computed;
  if (time.memory_bytes) cost.memory = Bytes(*time.memory_bytes);
  cost.bound = limit_of(kernel, cost, accelerator).bound;
  // Arrays that most of their rows leave idle are taken all the same.
  const double body = time.total_us - time.launch_us;
  if (cost.bound == Bound::kLatency && body >= time.launch_us && 2 * time.arrays_us > body)
    cost.bound = Bound::kTensor;
  if (prediction.fitted) {
    cost.provenance = prediction.extrapolated ? Provenance::kExtrapolated : Provenance::kCalibrated;
  }
  return cost;
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

std::vector<double> CalibratedModel::Prices::draws(const Kernel& kernel, std::int64_t seed) {
  std::vector<double> factors = unbounded_draws(kernel, seed);
  const Seconds time = to_seconds(cost(kernel).duration);
  if (!(time > Seconds(0))) return factors;
  const double least = std::min(1.0, least_time(kernel, accelerator_) / time);
  for (double& factor : factors) factor = std::max(factor, least);
  return factors;
}

std::vector<double> CalibratedModel::Prices::unbounded_draws(const Kernel& kernel,
                                                             std::int64_t seed) const {
  const AcceleratorConfig& accelerator = accelerator_;
  const Slot& from = model_.slot(*device_, kernel, accelerator);
  std::vector<double> factors =
      normal_draws(seed, accelerator.id + "/" + shape_key(kernel) + "/residual");
  if (!from.entry || !tells(from.shapes, kernel)) {
    // A prior that is wrong, such as about how mature a device's libraries are, is wrong for all
    // kernels: they share one draw, which does not average out over a step.
    const bool streams = from.of.group == "stream" || kernel.kind == KernelClass::kQuantize;
    const double sigma = accelerator.kernel.uncertainty.value * (streams ? kStreams : 1);
    factors = normal_draws(seed, accelerator.id + "/priors");
    for (double& factor : factors) factor = std::exp(sigma * factor);
    return factors;
  }
  const Prediction prediction = predict(from, kernel, accelerator);
  const ResidualClass& residuals = residuals_at(*from.entry->fit, prediction.time.total_us);
  // A class that is off by its median on shapes it has not seen is that much less certain; moving
  // the prediction instead would fit it to what was held out.
  const double widening = prediction.extrapolated ? kExtrapolatedWidening : 1;
  const double sigma = widening * std::hypot(residuals.sigma, residuals.median);
  const double time = prediction.by_parameters_us;
  if (from.seed != seed) {
    from.drawn = model_.drawn_values(from, seed);
    from.seed = seed;
  }
  const bool others = another_machine(model_.calibration_->rates, accelerator);
  const std::vector<double> device = others
                                         ? normal_draws(seed, accelerator.id + "/" + from.of.group)
                                         : std::vector<double>(kDraws);
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    factors[draw] = from.of.family->time(kernel, accelerator, from.drawn[draw].data()).total_us /
                    time * std::exp(sigma * factors[draw] + kOtherDevice * device[draw]);
  }
  return factors;
}

}  // namespace orrery
