// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/fitted_rows.h"

#include <algorithm>
#include <utility>

#include "validation/calibration/operator_kernels.h"
#include "validation/calibration/shape_group.h"

namespace orrery {
namespace {

/// Whether a row measures the kernel itself: streams of few thread blocks measure what a block can
/// have in flight.
bool is_kernel(const OperatorTable& table, const OperatorRow& row, std::int64_t most_ctas) {
  if (table.kind == OperatorTableKind::kLaunch) return false;
  return table.kind != OperatorTableKind::kHbmStream || row.ctas == most_ctas;
}

}  // namespace

std::string table_name(OperatorTableKind kind, const TablePart& part) {
  std::string name = to_string(kind);
  if (part.weight_bits > 0) name += "_w" + std::to_string(part.weight_bits);
  return name;
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
