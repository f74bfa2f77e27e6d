// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "sim/config/declared.h"
#include "sim/graph/transfer.h"

namespace orrery::config {

template <>
struct EnumNames<TransferKind> {
  static constexpr std::pair<TransferKind, const char*> values[] = {
      {TransferKind::kAllReduce, "all_reduce"},
      {TransferKind::kAllGather, "all_gather"},
      {TransferKind::kReduceScatter, "reduce_scatter"},
      {TransferKind::kAllToAll, "all_to_all"},
      {TransferKind::kBroadcast, "broadcast"},
      {TransferKind::kReduce, "reduce"},
      {TransferKind::kGather, "gather"},
      {TransferKind::kScatter, "scatter"},
      {TransferKind::kBarrier, "barrier"},
      {TransferKind::kSendReceive, "send_receive"},
      {TransferKind::kDispatch, "dispatch"},
      {TransferKind::kCombine, "combine"}};
};

}  // namespace orrery::config
