// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/imported_transfers.h"

#include <algorithm>
#include <numeric>

namespace orrery {

ImportedTransfers::ImportedTransfers(const ImportedRun& run) : run_(run) {
  for (const ImportedGraph& graph : run.graphs) find_uses(graph);
  for (int rank = 0; rank < run.ranks(); ++rank) {
    const std::uint32_t graph = run.graph_of_rank[static_cast<std::size_t>(rank)];
    if (graph == ImportedRun::kAbsent) continue;
    for (const Use& use : uses_[graph])
      add(rank, run.graphs[graph].messages[use.message], use.kind);
  }
}

void ImportedTransfers::find_uses(const ImportedGraph& graph) {
  std::vector<Use>& uses = uses_.emplace_back();
  constexpr std::size_t kKinds = 3;  // collectives, sends, receives
  std::vector<std::uint64_t> nodes(graph.messages.size() * kKinds);
  const auto kind_of = [](std::size_t place) {
    return static_cast<NodeKind>(static_cast<std::size_t>(NodeKind::kCollective) + place % kKinds);
  };
  for (NodeId id = 0; id < graph.size(); ++id) {
    const ImportedNode& node = graph.nodes[id];
    if (node.kind < NodeKind::kCollective) continue;
    ++nodes[node.work * kKinds + static_cast<std::size_t>(node.kind) -
            static_cast<std::size_t>(NodeKind::kCollective)];
  }
  for (std::size_t place = 0; place < nodes.size(); ++place)
    if (nodes[place] > 0)
      uses.push_back({kind_of(place), static_cast<std::uint32_t>(place / kKinds), nodes[place]});
}

ImportedTransfers::Key ImportedTransfers::key_of(const ImportedMessage& collective) {
  return {collective.kind, collective.bytes.base(), collective.group,
          static_cast<std::uint32_t>(collective.root)};
}

ImportedTransfers::Key ImportedTransfers::key_of(Bytes bytes, int source, int destination) {
  return {TransferKind::kSendReceive, bytes.base(), static_cast<std::uint32_t>(source),
          static_cast<std::uint32_t>(destination)};
}

/// Groups and ranks that are not there are for the replay to refuse, which knows the node.
void ImportedTransfers::add(int rank, const ImportedMessage& message, NodeKind kind) {
  if (!is_sized(message)) return;
  if (kind != NodeKind::kCollective) {
    if (!is_rank(message.peer) || message.peer == rank) return;
    const int source = kind == NodeKind::kSend ? rank : message.peer;
    const int destination = kind == NodeKind::kSend ? message.peer : rank;
    add(key_of(message.bytes, source, destination), {source, destination});
    return;
  }
  const Key key = key_of(message);
  if (numbers_.count(key) > 0) return;
  std::vector<int> ranks(static_cast<std::size_t>(run_.ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (message.group != ImportedMessage::kWorld) ranks = run_.groups[message.group];
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  const bool twice = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  if (sorted.size() < 2 || twice || !is_rank(sorted.front()) || !is_rank(sorted.back())) return;
  // The first rank of a group is its root.
  if (message.root > 0 && static_cast<std::size_t>(message.root) < ranks.size())
    std::rotate(ranks.begin(), ranks.begin() + message.root, ranks.end());
  add(key, std::move(ranks));
}

void ImportedTransfers::add(const Key& key, std::vector<int> ranks) {
  if (!numbers_.try_emplace(key, static_cast<std::uint32_t>(transfers_.size())).second) return;
  Transfer& transfer = transfers_.emplace_back();
  transfer.name = to_string(key.kind);
  transfer.kind = key.kind;
  transfer.bytes = Bytes(key.bytes);
  transfer.participants = static_cast<int>(ranks.size());
  transfer.groups = {std::move(ranks)};
}

std::uint32_t ImportedTransfers::of(const Key& key) const {
  const auto known = numbers_.find(key);
  return known == numbers_.end() ? kNone : known->second;
}

std::uint32_t ImportedTransfers::of_collective(const ImportedMessage& message) const {
  return of(key_of(message));
}

std::uint32_t ImportedTransfers::of_message(Bytes bytes, int source, int destination) const {
  return of(key_of(bytes, source, destination));
}

std::uint32_t ImportedTransfers::of_use(int rank, const Use& use) const {
  const std::uint32_t graph = run_.graph_of_rank[static_cast<std::size_t>(rank)];
  const ImportedMessage& message = run_.graphs[graph].messages[use.message];
  return use.kind == NodeKind::kCollective ? of_collective(message)
                                           : of_message(message.bytes, rank, message.peer);
}

std::vector<std::pair<TransferId, std::uint64_t>> ImportedTransfers::runs_of(int rank) const {
  const std::uint32_t graph = run_.graph_of_rank[static_cast<std::size_t>(rank)];
  std::map<TransferId, std::uint64_t> runs;
  if (graph == ImportedRun::kAbsent) return {};
  for (const Use& use : uses_[graph]) {
    if (use.kind == NodeKind::kReceive) continue;
    const std::uint32_t transfer = of_use(rank, use);
    if (transfer != kNone) runs[transfer] += use.nodes;
  }
  return {runs.begin(), runs.end()};
}

}  // namespace orrery
