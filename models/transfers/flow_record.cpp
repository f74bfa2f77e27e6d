// SPDX-License-Identifier: Apache-2.0
#include "models/transfers/flow_record.h"

namespace orrery {

void FlowRecord::repeat(int behind) {
  for (int& rank : ranks_) rank += behind - behind_;
  behind_ = behind;
  std::span<const int> rest = ranks_;
  for (const Flow& flow : flows_) {
    const std::span<const int> ranks = rest.first(flow.ranks);
    rest = rest.subspan(flow.ranks);
    switch (flow.kind) {
      case Kind::kAdd:
        sink_.add(ranks[0], ranks[1], flow.bytes);
        break;
      case Kind::kExchange:
        sink_.exchange(ranks, flow.bytes);
        break;
      case Kind::kReduce:
        sink_.reduce(ranks, flow.bytes);
        break;
      case Kind::kMulticast:
        sink_.multicast(ranks, flow.bytes);
        break;
    }
  }
}

}  // namespace orrery
