// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "sim/graph/kernel.h"
#include "sim/graph/transfer.h"

namespace orrery {

/// The class that the name of an operator or kernel in a Chakra trace tells, if it tells one.
std::optional<KernelClass> class_of_name(std::string_view name);

/// The collective that a name has in it, whatever its case and marks: "nccl:broadcast",
/// "c10d::reduce_scatter_tensor", "ncclDevKernel_AllGather_RING_LL".
std::optional<TransferKind> collective_of_name(std::string_view name);

}  // namespace orrery
