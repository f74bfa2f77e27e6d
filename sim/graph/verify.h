// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/graph/program.h"

namespace orrery {

/// What is wrong with a program, one sentence per entry, naming role, block and operator; empty for
/// a sound one.
///  - Ids (kernel, transfer, block, stream, rank) are in range, and no rank belongs to two roles.
///  - Every block is acyclic; the shortest cycle is named.
///  - As many roles use a transfer as it has participants, equally often, each on one stream.
///  - A message is sent by one role and received by another; other transfers are collectives for
///  all.
///  - Roles that share a communicator (equal groups, on the same streams) call its transfers in one
///  order.
/// The later checks run only on a program that passed the earlier ones.
/// Works on counts and fingerprints of blocks: time is linear in the calls and in the operators of
/// the blocks, not in their product.
std::vector<std::string> verify(const Program& program);

}  // namespace orrery
