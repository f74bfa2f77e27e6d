// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/power_trace.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace orrery {
namespace {

constexpr Picoseconds kBinsOfWindow = 200;
/// Most bins of a role; a longer run has wider bins. Imported graphs have a role for each rank, so
/// that all roles together have 1 GiB, or 4,096 bins each where they are very many.
Picoseconds most_bins(std::size_t roles) {
  constexpr std::size_t kOfRole = std::size_t{1} << 20, kOfAll = std::size_t{1} << 27;
  return static_cast<Picoseconds>(
      std::clamp(kOfAll / std::max<std::size_t>(1, roles), std::size_t{1} << 12, kOfRole));
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace

PowerTrace::PowerTrace(std::vector<Joules> kernels, std::vector<Joules> transfers,
                       std::size_t roles, Seconds window)
    : kernels_(std::move(kernels)),
      transfers_(std::move(transfers)),
      bins_(roles),
      window_(to_picoseconds(window)),
      most_bins_(most_bins(roles)),
      width_(std::max<Picoseconds>(1, window_ / kBinsOfWindow)),
      per_width_(1 / static_cast<double>(width_)) {}

void PowerTrace::kernel_ran(std::uint32_t role, KernelId kernel, Picoseconds begin,
                            Picoseconds end) {
  add(role, kernels_[kernel], begin, end);
}

void PowerTrace::transfer_ran(std::uint32_t role, TransferId transfer, Picoseconds begin,
                              Picoseconds end) {
  add(role, transfers_[transfer], begin, end);
}

/// Twice as wide bins for all roles.
void PowerTrace::widen() {
  width_ *= 2;
  per_width_ = 1 / static_cast<double>(width_);
  for (std::vector<double>& bins : bins_) {
    for (std::size_t i = 0; 2 * i < bins.size(); ++i)
      bins[i] = bins[2 * i] + (2 * i + 1 < bins.size() ? bins[2 * i + 1] : 0);
    bins.resize((bins.size() + 1) / 2);
  }
}

/// time / width_, which a product with 1 / width_ misses by one at most.
std::size_t PowerTrace::bin_at(Picoseconds time) const {
  auto bin = static_cast<Picoseconds>(static_cast<double>(time) * per_width_);
  if (bin * width_ > time) --bin;
  if ((bin + 1) * width_ <= time) ++bin;
  return static_cast<std::size_t>(bin);
}

void PowerTrace::add(std::uint32_t role, Joules energy, Picoseconds begin, Picoseconds end) {
  if (!(energy > Joules(0))) return;
  while (end >= most_bins_ * width_) widen();
  std::vector<double>& bins = bins_[role];
  const std::size_t first = bin_at(begin), last = bin_at(end);
  if (bins.size() <= last) bins.resize(last + 1);
  if (first == last) {
    bins[last] += energy.base();
    return;
  }
  const double per_time = energy.base() / static_cast<double>(end - begin);
  Picoseconds at = begin;
  for (std::size_t bin = first; at < end; ++bin) {
    const Picoseconds next = std::min(end, static_cast<Picoseconds>(bin + 1) * width_);
    bins[bin] += per_time * static_cast<double>(next - at);
    at = next;
  }
}

/// The most energy [J] that a window shorter than the run touches.
double PowerTrace::most_in(const std::vector<double>& bins, Picoseconds end,
                           Picoseconds window) const {
  if (window == 0) return 0;
  const auto count = static_cast<std::size_t>((end + width_ - 1) / width_);
  // From anywhere in a bin; over the end of the run, where a bin is cut, one more.
  const auto touched = static_cast<std::size_t>((window + width_ - 1) / width_) + 1;
  if (touched + 1 >= count) return sum(bins);
  const auto bin = [&](std::size_t i) {  // the run starts anew behind its end
    const std::size_t at = i < count ? i : i - count;
    return at < bins.size() ? bins[at] : 0;
  };
  double inside = 0;
  for (std::size_t i = 0; i < touched; ++i) inside += bin(i);
  double most = 0;
  for (std::size_t first = 0; first < count; ++first) {
    const bool over_end = first + touched > count;
    most = std::max(most, over_end ? inside + bin(first + touched) : inside);
    inside += bin(first + touched) - bin(first);
  }
  return most;
}

Watts PowerTrace::highest(Picoseconds end) const {
  if (end <= 0) return {};
  const Picoseconds repeats = window_ / end;  // whole ones
  double most = 0;
  for (const std::vector<double>& bins : bins_) {
    if (bins.empty()) continue;
    most = std::max(most,
                    static_cast<double>(repeats) * sum(bins) + most_in(bins, end, window_ % end));
  }
  return Joules(most) / Seconds(static_cast<double>(window_) * 1e-12);
}

double even_window_energy(double energy, double busy, double period, double window) {
  const double bin = window / static_cast<double>(kBinsOfWindow);
  const double repeats = std::floor(window / period);
  const double rest = window - repeats * period;
  if (!(rest > 0)) return repeats * energy;
  // Bins that a window touches are counted whole; over the end of the run one of them is cut.
  const double count = std::ceil(period / bin);
  const double touched = std::ceil(rest / bin) + 1;
  if (touched + 1 >= count) return (repeats + 1) * energy;
  const double cut = busy < period ? 0 : period / bin - (count - 1);
  return energy * (repeats + std::min(1.0, (touched + cut) * bin / busy));
}

}  // namespace orrery
