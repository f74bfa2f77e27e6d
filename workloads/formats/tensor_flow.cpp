// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/tensor_flow.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace orrery {
namespace {

bool is_in(const std::vector<std::uint32_t>& list, std::uint32_t one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

}  // namespace

TensorFlow::TensorFlow(const ImportedGraph& graph, const std::vector<NodeTensors>& nodes)
    : uses_(graph.size()), position_(graph.size()) {
  std::vector<std::uint32_t> order(nodes.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return graph.ids[nodes[a].node] < graph.ids[nodes[b].node];
  });
  std::map<std::int64_t, std::uint32_t> current;  // lives by memory
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    const NodeTensors& one = nodes[order[i]];
    Uses& uses = uses_[one.node];
    position_[one.node] = i;
    uses.told = one.told;
    if (!one.told) untold_.push_back(i);
    for (const StorageUse& read : one.reads) {
      const auto [life, is_new] =
          current.try_emplace(read.storage, static_cast<std::uint32_t>(lives_.size()));
      if (is_new) lives_.push_back({read.bytes, kNever, false, {}});
      lives_[life->second].readers.push_back(one.node);
      uses.reads.push_back(life->second);
    }
    for (const StorageUse& written : one.writes) {
      const auto [life, is_new] = current.try_emplace(written.storage, kNever);
      write(life->second, one.node, written.bytes, one.shared);
    }
  }
}

void TensorFlow::write(std::uint32_t& current, NodeId node, Bytes bytes, bool shared) {
  if (current != kNever) {
    Life& before = lives_[current];
    before.end = position_[node];
    before.shared = before.shared || bytes < before.bytes;
    shared = shared || bytes < before.bytes;
  }
  current = static_cast<std::uint32_t>(lives_.size());
  lives_.push_back({bytes, kNever, shared, {}});
  uses_[node].writes.push_back(current);
}

std::optional<NodeId> TensorFlow::only_reader(NodeId writer) const {
  const Uses& uses = uses_[writer];
  if (!uses.told || uses.writes.size() != 1) return std::nullopt;
  const Life& life = lives_[uses.writes.front()];
  if (life.shared || life.readers.size() != 1 || life.readers.front() == writer)
    return std::nullopt;
  const auto unknown = std::upper_bound(untold_.begin(), untold_.end(), position_[writer]);
  if (unknown != untold_.end() && *unknown < life.end) return std::nullopt;
  return life.readers.front();
}

bool TensorFlow::is_there(const std::vector<NodeId>& chain) const {
  const std::uint32_t begin = position_[chain.back()];
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    if (position_[chain[i]] > begin) return false;
    for (const std::uint32_t life : uses_[chain[i]].reads) {
      const bool own = i > 0 && is_in(uses_[chain[i - 1]].writes, life);
      if (!own && lives_[life].end <= begin) return false;
    }
  }
  return true;
}

void TensorFlow::join(const std::vector<NodeId>& chain) {
  Uses all = uses_[chain.back()];
  all.reads.clear();
  for (std::size_t i = 0; i < chain.size(); ++i) {
    for (const std::uint32_t life : uses_[chain[i]].reads) {
      const bool own = i > 0 && is_in(uses_[chain[i - 1]].writes, life);
      if (own || is_in(all.reads, life)) continue;
      all.reads.push_back(life);
    }
  }
  for (const std::uint32_t life : all.reads) {
    std::vector<NodeId>& readers = lives_[life].readers;
    std::erase_if(readers, [&](NodeId reader) {
      return std::find(chain.begin(), chain.end(), reader) != chain.end();
    });
    readers.push_back(chain.back());
  }
  for (const NodeId node : chain) uses_[node] = Uses();
  uses_[chain.back()] = std::move(all);
}

}  // namespace orrery
