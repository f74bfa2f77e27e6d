// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/row_rules.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/graph/kernel.h"
#include "sim/machine/kernel_model.h"
#include "validation/calibration/operator_kernels.h"

namespace orrery {
namespace {

constexpr double kMicro = 1e6;
/// Measurements of one kernel differ by 1 to 3 %, draws of a routing by some 10 %.
constexpr double kMostExcess = 1.3;

/// Copies over which tables of products rotate weights.
constexpr double kWeightCopies = 5;

/// A model of the table under one distribution of tokens.
std::string model_of(const OperatorRow& row) {
  return fmt::format("{}/{}/{}/{}/{}/{}/{}/{}", row.system, row.engine, row.precision,
                     row.distribution, row.hidden, row.expert_ffn, row.top_k, row.experts);
}

std::string tokens_of(const OperatorRow& row) {
  return fmt::format("{} {}", model_of(row), row.tokens);
}

std::string curve_of(const OperatorRow& row) {
  return fmt::format("{} {}/{}", model_of(row), row.moe_tp, row.moe_ep);
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

/// Times of each model of experts by rank and tokens.
class ExpertRanks {
 public:
  explicit ExpertRanks(const OperatorTable& table) {
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

  bool fell_back(const OperatorRow& row) const {
    return excess(row) > kMostExcess || medians_.at(curve_of(row)) > kMostExcess;
  }

 private:
  struct Rank {
    std::int64_t tp = 0, ep = 0;
    double latency_us = 0;
  };

  /// Time over the least of ranks of the same tokens that have more to do; 0 where there is none.
  double excess(const OperatorRow& row) const {
    double least = std::numeric_limits<double>::infinity();
    for (const Rank& rank : ranks_.at(tokens_of(row))) {
      const bool itself = rank.tp == row.moe_tp && rank.ep == row.moe_ep;
      if (!itself && rank.tp <= row.moe_tp && rank.ep <= row.moe_ep)
        least = std::min(least, rank.latency_us);
    }
    return row.latency_us / least;
  }

  std::map<std::string, std::vector<Rank>> ranks_;  ///< ranks by model, distribution and tokens
  std::map<std::string, double> medians_;           ///< medians of excess(), by curve
};

/// The kernels of a table that stand or fall together: a device, an engine, a precision, and of
/// decodes grouped heads or not, of recurrent kernels convolutions or not.
using TableKernels = std::tuple<std::uint32_t, std::uint32_t, Precision, bool>;

/// Rows that exceed the L2, and those that break physics.
struct Evidence {
  std::int64_t beyond_cache = 0, broken = 0;

  bool at_fault() const {
    constexpr double kMostBroken = 0.05;
    return static_cast<double>(broken) > kMostBroken * static_cast<double>(beyond_cache);
  }
};

/// Whether the weights of a product came from the L2 although their copies exceed it.
bool stayed_in_cache(const OperatorRow& row, Precision precision,
                     const AcceleratorConfig& accelerator) {
  if (!accelerator.cache) return false;
  const double weights = static_cast<double>(row.n * row.k) * element_bytes(precision);
  const double least = weights / accelerator.memory.bandwidth.value.base() * kMicro;
  const double cache = accelerator.cache->capacity.value.base();
  return kWeightCopies * weights > 2 * cache && row.latency_us < least;
}

bool is_update(const OperatorRow& row) { return row.kernel.ends_with("update"); }

/// Whether the states of an update came from the L2, and that shows in its time.
bool states_in_cache(const Kernel& update, const OperatorRow& row,
                     const AcceleratorConfig& accelerator) {
  constexpr double kShows = 0.2;  // of the time
  if (!accelerator.cache || !is_update(row)) return false;
  const double bytes = (update.read + update.written).base();
  const double least = bytes / accelerator.memory.bandwidth.value.base() * kMicro;
  return bytes < accelerator.cache->capacity.value.base() && least > kShows * row.latency_us;
}

RowRule physics(const Peaks& peaks, double latency_us) {
  if (peaks.memory > latency_us) return RowRule::kMemory;
  return peaks.matrix > latency_us ? RowRule::kPeak : RowRule::kKept;
}

/// Whether a row measures the kernel itself: streams of few thread blocks measure what a block can
/// have in flight.
bool is_kernel(const OperatorTable& table, const OperatorRow& row, std::int64_t most_ctas) {
  if (table.kind == OperatorTableKind::kLaunch) return false;
  return table.kind != OperatorTableKind::kHbmStream || row.ctas == most_ctas;
}

}  // namespace

const char* to_string(RowRule rule) {
  constexpr std::array kNames = {"kept",
                                 "faster than the memory",
                                 "faster than the matrix peak",
                                 "a tactic fell back",
                                 "weights stayed in the L2",
                                 "of kernels that break physics elsewhere in the table",
                                 "states stayed in the L2"};
  return kNames.at(static_cast<std::size_t>(rule));
}

std::vector<RowRule> row_rules(const OperatorTable& table, const DeviceOfSystem& device) {
  std::vector<RowRule> rules(table.rows.size(), RowRule::kKept);
  std::vector<bool> resident(table.rows.size());
  std::vector<std::optional<TableKernels>> parts(table.rows.size());
  std::map<TableKernels, Evidence> evidence;
  std::vector<const AcceleratorConfig*> devices;
  for (const std::string& system : table.systems) devices.push_back(device(system));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const OperatorRow& row = table.rows[i];
    const AcceleratorConfig* accelerator = devices.at(row.system);
    const auto precision = row_precision(table.kind, row);
    if (accelerator == nullptr || !precision ||
        !find_precision(accelerator->compute.matrix, *precision))
      continue;
    const bool recurrent = table.kind == OperatorTableKind::kRecurrent;
    const bool other_kernel =
        recurrent ? row.kernel.starts_with("causal")
                  : table.kind == OperatorTableKind::kAttentionDecode && row.heads != row.kv_heads;
    parts[i] = TableKernels(row.system, row.engine, *precision, other_kernel);
    const std::vector<Kernel> kernels = operator_kernels(table.kind, row, *precision);
    const Peaks peaks = peaks_of(kernels, *accelerator);
    rules[i] = physics(peaks, row.latency_us);
    if (peaks.memory > 0) ++evidence[*parts[i]].beyond_cache;
    if (rules[i] != RowRule::kKept) ++evidence[*parts[i]].broken;
    resident[i] =
        table.kind == OperatorTableKind::kGemm && stayed_in_cache(row, *precision, *accelerator);
    if (recurrent && rules[i] == RowRule::kKept &&
        states_in_cache(kernels.front(), row, *accelerator))
      rules[i] = RowRule::kStates;
  }
  std::optional<ExpertRanks> ranks;
  if (table.kind == OperatorTableKind::kMoe) ranks.emplace(table);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    if (rules[i] != RowRule::kKept || !parts[i]) continue;
    if (resident[i]) rules[i] = RowRule::kResident;
    if (evidence[*parts[i]].at_fault()) rules[i] = RowRule::kTable;
    if (ranks && ranks->fell_back(table.rows[i])) rules[i] = RowRule::kFellBack;
  }
  return rules;
}

std::string table_name(OperatorTableKind kind, const TablePart& part) {
  return part.weight_bits > 0 ? fmt::format("{}_w{}", to_string(kind), part.weight_bits)
                              : to_string(kind);
}

std::map<TablePart, FittedRows> fitted_rows(const AcceleratorConfig& accelerator,
                                            const OperatorTable& table) {
  std::map<TablePart, FittedRows> parts;
  std::int64_t most_ctas = 0;
  for (const OperatorRow& row : table.rows) most_ctas = std::max(most_ctas, row.ctas);
  const std::vector<RowRule> rules = row_rules(table, [&](const std::string& system) {
    return system == accelerator.id ? &accelerator : nullptr;
  });
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const OperatorRow& row = table.rows[i];
    if (table.systems[row.system] != accelerator.id || !is_kernel(table, row, most_ctas)) continue;
    const auto precision = row_precision(table.kind, row);
    if (!precision || !find_precision(accelerator.compute.matrix, *precision)) continue;
    FitRow fit{operator_kernels(table.kind, row, *precision), row.latency_us,
               shape_group(table.kind, row)};
    FittedRows& rows = parts[{*precision, row_weights(row).bits}];
    if (rules[i] == RowRule::kKept) {
      (is_held_out(fit.group) ? rows.held_out : rows.fitted).push_back(std::move(fit));
      continue;
    }
    ++rows.left_out[rules[i]];
    if (rules[i] == RowRule::kTable) rows.at_fault.push_back(std::move(fit));
  }
  return parts;
}

}  // namespace orrery
