// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sim/machine/accelerator_config.h"
#include "validation/calibration/fit.h"
#include "validation/calibration/row_rules.h"
#include "validation/importers/operator_table.h"

namespace orrery {

/// What of a table a fit is of.
struct TablePart {
  Precision precision = Precision::kBf16;
  std::int64_t weight_bits = 0;  ///< bits of a weight, where these are fewer than those of operands

  bool operator<(const TablePart& other) const {
    return std::tie(weight_bits, precision) < std::tie(other.weight_bits, other.precision);
  }
};

/// "moe"; of weights with four bits "moe_w4".
std::string table_name(OperatorTableKind kind, const TablePart& part);

/// The rows of one part of a table of one accelerator.
struct FittedRows {
  std::vector<FitRow> fitted, held_out;
  std::vector<FitRow> at_fault;  ///< rows of kernels that break physics
  std::map<RowRule, std::int64_t> left_out;
};

/// All parts of a table that the accelerator has rates for.
std::map<TablePart, FittedRows> fitted_rows(const AcceleratorConfig& accelerator,
                                            const OperatorTable& table);

}  // namespace orrery
