// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/graph/kernel.h"
#include "sim/machine/accelerator_config.h"
#include "validation/importers/operator_table.h"

namespace orrery {

/// What leaves a measured row out of fits and of errors: a defect of the measurement that the table
/// itself and the data sheet show, whatever a model says.
enum class RowRule : std::uint8_t {
  kKept,
  kMemory,    ///< shorter than its bytes take at the peak of the memory, less what the L2 can hold
  kPeak,      ///< shorter than its FLOPs take at the peak of its precision
  kFellBack,  ///< experts: the library ran a tactic that its profile did not choose
};
/// "faster than the memory", ...
const char* to_string(RowRule rule);

/// The rules for the rows of a table.
///
/// Physics: bytes and FLOPs of the kernels that a row is about, the FLOPs at the boost clock where
/// a device has one. As much as the L2 holds may be there before the kernel starts.
///
/// Experts: TensorRT-LLM profiles its bf16 and fp8 tactics before the measurement, and runs the
/// first one where a shape is not in the profile, several times slower. A rank with fewer or
/// narrower experts of the same model has less to do; where it takes more than 1.3 times as long
/// for the same tokens, a tactic fell back: the row is left out, and with it the whole curve over
/// tokens where its median row does. Of 44,500 rows of block-scaled experts, whose tile follows a
/// rule without a profile, two are beyond that.
class RowRules {
 public:
  /// @param table whose rows are asked for; not kept
  explicit RowRules(const OperatorTable& table);

  /// @param kernels of the row, as operator_kernels() gives them
  RowRule rule(const OperatorRow& row, const std::vector<Kernel>& kernels,
               const AcceleratorConfig& accelerator) const;

 private:
  struct Rank {
    std::int64_t tp = 0, ep = 0;
    double latency_us = 0;
  };

  double excess(const OperatorRow& row) const;
  bool fell_back(const OperatorRow& row) const;

  bool experts_ = false;
  std::map<std::string, std::vector<Rank>> ranks_;  ///< by model, distribution and tokens
  std::map<std::string, double> medians_;           ///< of excess(), by curve
};

/// Whether more is read and written than the L2 holds, so that a row can show whether it breaks the
/// peak of the memory.
bool exceeds_cache(const std::vector<Kernel>& kernels, const AcceleratorConfig& accelerator);

}  // namespace orrery
