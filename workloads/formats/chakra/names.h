// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/graph/kernel.h"
#include "sim/graph/transfer.h"

namespace orrery {

/// The class that the name of an operator or kernel in a Chakra trace tells, if it tells one.
std::optional<KernelClass> class_of_name(std::string_view name);

/// The collective that a name has in it, whatever its case and marks: "nccl:broadcast",
/// "c10d::reduce_scatter_tensor", "ncclDevKernel_AllGather_RING_LL".
std::optional<TransferKind> collective_of_name(std::string_view name);

/// A communicator as PyTorch's traces describe it.
struct ProcessGroup {
  std::string name;
  std::vector<int> ranks;  ///< members in their order; none: all ranks
};

/// The groups with a name of a text such as [{"pg_name": "0", "ranks": [0, 1], "group_size": 2}],
/// with either kind of quotes, as JSON and Python print it.
std::vector<ProcessGroup> process_groups(std::string_view text);

}  // namespace orrery
