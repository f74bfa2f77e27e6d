// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sim/machine/accelerator_config.h"
#include "validation/calibration/fit.h"
#include "validation/importers/operator_table.h"

namespace orrery {

/// What leaves a measured row out of fits and of errors: a defect of the measurement that the table
/// itself and the data sheet show, whatever a model says.
enum class RowRule : std::uint8_t {
  kKept,
  kMemory,    ///< shorter than its bytes take at the peak of the memory, less what the L2 can hold
  kPeak,      ///< shorter than its FLOPs take at the peak of its precision
  kFellBack,  ///< experts: the library ran a tactic that its profile did not choose
  kResident,  ///< products: weights that rotate over copies were read from the L2
  kTable,     ///< row of kernels that break physics elsewhere in the table
  kStates,    ///< updates: states were read from the L2
};
/// "faster than the memory", ...
const char* to_string(RowRule rule);

/// What is known of a system of a table; null: nothing.
using DeviceOfSystem = std::function<const AcceleratorConfig*(const std::string& system)>;

/// The rule for each row of a table; rows of unknown devices, or of a precision that the device has
/// no rate for, are kept.
///
/// Physics: bytes and FLOPs of the kernels that a row is about, the FLOPs at the boost clock where
/// a device has one. As much as the L2 holds may be there before the kernel starts. Where more than
/// one in twenty rows that exceed the L2 breaks it, the other rows of these kernels on this device
/// tell nothing either. Decode of grouped heads and of a head each run kernels of their own, and so
/// do convolutions beside other kernels of recurrent layers.
///
/// Products: tables rotate weights over five copies, so that they come from memory as in a step.
/// Where the copies exceed the L2 twice and the weights still come faster than the memory delivers,
/// one copy was used: such rows tell nothing of steps, and the others stand.
///
/// Updates of states: a table repeats one layer's, so that states which fit into the L2 stay there.
/// In a step other layers' displace them. Where reading them from memory would show, a fifth of the
/// row's time or more, such rows tell nothing of steps.
///
/// Experts: TensorRT-LLM profiles its bf16 and fp8 tactics before the measurement, and runs the
/// first one where a shape is not in the profile, several times slower. A rank with fewer or
/// narrower experts of the same model has less to do; where it takes more than 1.3 times as long
/// for the same tokens, a tactic fell back: the row is left out, and with it the whole curve over
/// tokens where its median row does. Of 44,500 rows of block-scaled experts, whose tile follows a
/// rule without a profile, two are beyond that.
std::vector<RowRule> row_rules(const OperatorTable& table, const DeviceOfSystem& device);

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
