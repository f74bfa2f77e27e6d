// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/transfer.h"

namespace orrery {

const char* to_string(TransferKind kind) {
  switch (kind) {
    case TransferKind::kAllReduce:
      return "all_reduce";
    case TransferKind::kAllGather:
      return "all_gather";
    case TransferKind::kReduceScatter:
      return "reduce_scatter";
    case TransferKind::kAllToAll:
      return "all_to_all";
    case TransferKind::kBroadcast:
      return "broadcast";
    case TransferKind::kReduce:
      return "reduce";
    case TransferKind::kGather:
      return "gather";
    case TransferKind::kScatter:
      return "scatter";
    case TransferKind::kBarrier:
      return "barrier";
    case TransferKind::kSendReceive:
      return "send_receive";
    case TransferKind::kDispatch:
      return "dispatch";
    case TransferKind::kCombine:
      return "combine";
  }
  return "?";
}

}  // namespace orrery
