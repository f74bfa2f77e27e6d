// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/graph_chain.h"

#include <stdexcept>

namespace orrery {

void GraphChain::place(std::size_t rank, std::size_t nodes) {
  if (nodes >= kMet) throw std::length_error("a graph that is replayed has at most 2 G nodes");
  if (causes_.size() <= rank) causes_.resize(rank + 1);
  causes_[rank].assign(nodes, kNone);
}

void GraphChain::met(const std::vector<int>& ranks, const std::vector<NodeId>& nodes,
                     Picoseconds time) {
  const auto last = static_cast<std::uint32_t>(ranks.back());
  const auto number = static_cast<std::uint32_t>(met_.size());
  met_.push_back({last, causes_[last][nodes.back()], time});
  for (std::size_t i = 0; i < ranks.size(); ++i)
    causes_[static_cast<std::size_t>(ranks[i])][nodes[i]] = kMet | number;
}

void GraphChain::walk(std::uint32_t rank, NodeId last,
                      const std::function<Picoseconds(std::uint32_t, NodeId)>& duration,
                      const Visit& visit) const {
  for (std::uint32_t node = last; node != kNone;) {
    const std::uint32_t cause = causes_[rank][node];
    if (cause == kNone || (cause & kMet) == 0) {
      visit(rank, node, duration(rank, node));
      node = cause;
      continue;
    }
    const Meeting& meeting = met_[cause & ~kMet];
    visit(rank, node, meeting.time);
    rank = meeting.rank;
    node = meeting.cause;
  }
}

}  // namespace orrery
