// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/row_rules.h"

#include <algorithm>
#include <limits>

#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

constexpr double kMicro = 1e6;
/// Measurements of one kernel differ by 1 to 3 %, draws of a routing by some 10 %.
constexpr double kMostExcess = 1.3;

/// A model of the table under one distribution of tokens.
std::string model_of(const OperatorRow& row) {
  std::string key = std::to_string(row.system) + "/" + row.precision + "/" + row.distribution;
  for (const std::int64_t number : {row.hidden, row.expert_ffn, row.top_k, row.experts})
    key += "/" + std::to_string(number);
  return key;
}

std::string tokens_of(const OperatorRow& row) {
  return model_of(row) + " " + std::to_string(row.tokens);
}

std::string curve_of(const OperatorRow& row) {
  return model_of(row) + " " + std::to_string(row.moe_tp) + "/" + std::to_string(row.moe_ep);
}

/// us that the kernels a row is about take at the peaks of memory and matrix cores.
struct Peaks {
  double memory = 0, matrix = 0;
};

Peaks peaks_of(const std::vector<Kernel>& kernels, const AcceleratorConfig& accelerator) {
  const bool products = std::any_of(kernels.begin(), kernels.end(), [](const Kernel& kernel) {
    return kernel.matrix_flops.base() > 0;
  });
  const double cache = accelerator.cache ? accelerator.cache->capacity.value.base() : 0;
  const ComputeConfig& compute = accelerator.compute;
  const double boost =
      compute.boost_clock ? std::max(1.0, compute.boost_clock->value / compute.clock.value) : 1;
  Peaks peaks;
  for (const Kernel& kernel : kernels) {
    // Beside products, what others read and write may be passed on in the L2.
    if (products && kernel.matrix_flops.base() == 0) continue;
    const double bytes = (kernel.read + kernel.written).base() - cache / accelerator.dies;
    peaks.memory += std::max(0.0, bytes) * accelerator.dies /
                    accelerator.memory.bandwidth.value.base() * kMicro;
    if (products)
      peaks.matrix +=
          (kernel.matrix_flops / matrix_peak(accelerator, kernel)).base() / boost * kMicro;
  }
  return peaks;
}

}  // namespace

const char* to_string(RowRule rule) {
  switch (rule) {
    case RowRule::kMemory:
      return "faster than the memory";
    case RowRule::kPeak:
      return "faster than the matrix peak";
    case RowRule::kFellBack:
      return "a tactic fell back";
    default:
      return "kept";
  }
}

RowRules::RowRules(const OperatorTable& table) : experts_(table.kind == OperatorTableKind::kMoe) {
  if (!experts_) return;
  for (const OperatorRow& row : table.rows)
    ranks_[tokens_of(row)].push_back({row.moe_tp, row.moe_ep, row.latency_us});
  std::map<std::string, std::vector<double>> curves;
  for (const OperatorRow& row : table.rows) curves[curve_of(row)].push_back(excess(row));
  for (auto& [curve, excesses] : curves) {
    const auto middle = excesses.begin() + static_cast<std::ptrdiff_t>(excesses.size() / 2);
    std::nth_element(excesses.begin(), middle, excesses.end());
    medians_[curve] = *middle;
  }
}

/// Time over the least of ranks of the same tokens that have more to do; 0 where there is none.
double RowRules::excess(const OperatorRow& row) const {
  double least = std::numeric_limits<double>::infinity();
  for (const Rank& rank : ranks_.at(tokens_of(row))) {
    const bool itself = rank.tp == row.moe_tp && rank.ep == row.moe_ep;
    if (!itself && rank.tp <= row.moe_tp && rank.ep <= row.moe_ep)
      least = std::min(least, rank.latency_us);
  }
  return row.latency_us / least;
}

bool RowRules::fell_back(const OperatorRow& row) const {
  return excess(row) > kMostExcess || medians_.at(curve_of(row)) > kMostExcess;
}

RowRule RowRules::rule(const OperatorRow& row, const std::vector<Kernel>& kernels,
                       const AcceleratorConfig& accelerator) const {
  const Peaks peaks = peaks_of(kernels, accelerator);
  if (peaks.memory > row.latency_us) return RowRule::kMemory;
  if (peaks.matrix > row.latency_us) return RowRule::kPeak;
  return experts_ && fell_back(row) ? RowRule::kFellBack : RowRule::kKept;
}

bool exceeds_cache(const std::vector<Kernel>& kernels, const AcceleratorConfig& accelerator) {
  return peaks_of(kernels, accelerator).memory > 0;
}

}  // namespace orrery
