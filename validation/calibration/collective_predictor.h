// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "models/transfers/flow_model.h"
#include "sim/machine/system_config.h"
#include "validation/importers/operator_table.h"

namespace orrery {

/// Predicts the rows of collective tables on a system: NCCL's collectives as NCCL chooses them;
/// TensorRT-LLM's all-reduce by its one-shot kernel where that serves and is faster.
class CollectivePredictor {
 public:
  explicit CollectivePredictor(const SystemConfig& system);

  /// Ways to carry out a row, of which the fastest is taken: one, or for TensorRT-LLM two.
  /// @throws config::ConfigError for a collective that there is not, std::out_of_range for more
  /// ranks than the system has
  std::vector<PricedTransfer> priced(CollectiveTableKind kind, const CollectiveRow& row) const;
  /// The same for a fit, which prices them itself. Empty where the system has no protocols.
  std::vector<Carried> carried(CollectiveTableKind kind, const CollectiveRow& row) const;

  /// The transfer of a row. @throws as priced()
  Transfer transfer(const CollectiveRow& row) const;

 private:
  bool one_shot(CollectiveTableKind kind, const CollectiveRow& row) const;

  Bytes one_shot_limit_;
  int ranks_;
  FlowModel library_, one_shot_;
};

/// The system of the library whose first ranks a table means by the name of an accelerator: the one
/// that a network calibration of the library is of; else the first by name that takes a sibling's
/// (`scale_up.calibration`; configs/network_calibrations/README.md says which). Empty: there is
/// none.
std::string measured_system(const std::string& accelerator);

/// Whether fits leave the row out: one in four, by the hash of collective, ranks and bytes, so the
/// same rows on every system and of every precision.
bool is_held_out(const CollectiveRow& row);

/// "<1MiB", "1-8MiB", ">8MiB", by the size of the row.
const char* byte_class(std::int64_t bytes);

}  // namespace orrery
