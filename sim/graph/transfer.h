// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/graph/expert_routing.h"
#include "sim/units/units.h"

namespace orrery {

/// Chakra's collective names, and the point-to-point message.
enum class TransferKind : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kBarrier,
  kSendReceive,
  kDispatch,  ///< tokens to the ranks of their experts
  kCombine,   ///< results of the experts back to the ranks of their tokens
};
const char* to_string(TransferKind kind);

/// Where a message of a rank can go besides another one: to its host board, or the storage behind;
/// or what passes through the memory of its host board while the CPUs there work for the rank.
enum class HostEnd : std::uint8_t { kHost, kStorage, kMemory };
struct HostCopy {
  HostEnd end = HostEnd::kHost;
  bool outward = true;  ///< true: from the rank; false: to it
  bool operator==(const HostCopy&) const = default;
};

/// One communication that ranks of the program meet for: a collective or a message.
///
/// `bytes` is the size as nccl-tests prints it: all_reduce: the buffer of each rank; all_gather and
/// reduce_scatter: the whole (gathered, unscattered) buffer; all_to_all: what each rank sends in
/// total, its own share included; broadcast, reduce and send_receive: the message; gather and
/// scatter: the whole buffer at the root; barrier: nothing, 0 bytes; dispatch and combine: one copy
/// of the tokens of each rank per expert that they take. The first rank of a group is
/// its root.
///
/// Folding: a role stands for several ranks that run in lockstep, so a transfer stands for one
/// group per folded image, all of which start together. `groups` lists them in real ranks (for
/// send_receive: {source, destination}); the network adds up the load of all images, which makes
/// folding exact.
struct Transfer {
  std::string name;
  TransferKind kind = TransferKind::kAllReduce;
  Bytes bytes;
  std::vector<std::vector<int>> groups;
  /// How many roles of the program meet here (1 where a whole group is folded into one role, 2 for
  /// a message).
  int participants = 1;
  std::string purpose;  ///< "tp", "dp", "pp", "ep", ...: class in breakdowns
  /// Sums of single bytes (int8), which switches do not reduce and kernels add more slowly.
  bool byte_sums = false;
  std::optional<ExpertRouting> routing = std::nullopt;  ///< routing of a dispatch or combine
  /// all_to_all with parts of different sizes: what member i of n sends to member j, at i n + j, in
  /// every group. Then `bytes` is the most that a member sends or receives, own share included.
  /// Empty: bytes / n each.
  std::vector<Bytes> pair_bytes = {};
  /// send_receive with the host boards: every group is one rank, and all of them copy at once.
  std::optional<HostCopy> host = std::nullopt;
  bool operator==(const Transfer&) const = default;
};

}  // namespace orrery
