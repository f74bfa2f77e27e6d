// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/graph/program.h"

namespace orrery {

/// "block 'forward', operator 'qkv'": the way findings name a place.
std::string place_name(const Program& program, BlockId block, OperatorId op);
std::string role_name(const Program& program, std::size_t role);

/// How one role uses a transfer.
struct TransferUse {
  std::uint32_t role = 0;
  std::uint64_t count = 0;  ///< uses over all calls of the role's blocks
  OperatorKind kind = OperatorKind::kCollective;
  StreamId stream = 0;
  BlockId block = 0;  ///< one place where it does
  OperatorId op = 0;
};

/// Uses by transfer, ascending by role.
using TransferUses = std::vector<std::vector<TransferUse>>;

/// All members of a communicator call its transfers in the same order. For a program with sound
/// counts.
void check_order(const Program& program, const TransferUses& uses,
                 std::vector<std::string>& findings);

}  // namespace orrery
