// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "workloads/schedules/schedule.h"

namespace orrery {

/// What is wrong with a pass.
struct PassFault {
  int rank = 0;
  std::size_t pass = 0;  ///< index in the passes of the rank; their number: what is missing there
  std::string message;
};

/// Whether the passes of all ranks are each there once, in an order that comes to its end: a pass
/// after what it needs, and messages between two ranks received in the order in which they are
/// sent.
/// @param passes by rank
std::optional<PassFault> first_fault(const Placement& placement, const PipelineShape& shape,
                                     const std::vector<std::vector<Pass>>& passes);

/// "F3.1": how a pass is written; B and W are halves of backward passes too.
std::string to_string(const Pass& pass);

}  // namespace orrery
