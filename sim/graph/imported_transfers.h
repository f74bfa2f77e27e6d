// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/graph/imported_graph.h"
#include "sim/graph/operator_graph.h"
#include "sim/graph/transfer.h"

namespace orrery {

/// The collectives and messages of an imported run as transfers that a network prices: each once,
/// however often it happens.
class ImportedTransfers {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  explicit ImportedTransfers(const ImportedRun& run);

  const std::vector<Transfer>& list() const { return transfers_; }
  /// The transfer that members of a group meet for. kNone: nothing is carried, since its size is
  /// not known or nobody else takes part.
  std::uint32_t of_collective(const ImportedMessage& message) const;
  /// The transfer from a rank to another; kNone as above.
  std::uint32_t of_message(Bytes bytes, int source, int destination) const;
  /// How often a rank comes to each transfer, as sender of a message, by ascending transfer.
  std::vector<std::pair<TransferId, std::uint64_t>> runs_of(int rank) const;

 private:
  /// What tells transfers apart: group and root, or source and destination.
  struct Key {
    TransferKind kind;
    double bytes;
    std::uint32_t first, second;
    auto operator<=>(const Key&) const = default;
  };
  /// Nodes of a graph that communicate alike.
  struct Use {
    NodeKind kind;
    std::uint32_t message;
    std::uint64_t nodes;
  };

  static Key key_of(const ImportedMessage& collective);
  static Key key_of(Bytes bytes, int source, int destination);
  void find_uses(const ImportedGraph& graph);
  void add(int rank, const ImportedMessage& message, NodeKind kind);
  void add(const Key& key, std::vector<int> ranks);
  std::uint32_t of(const Key& key) const;
  std::uint32_t of_use(int rank, const Use& use) const;
  bool is_rank(int rank) const { return rank >= 0 && rank < run_.ranks(); }

  const ImportedRun& run_;
  std::vector<std::vector<Use>> uses_;  ///< uses by graph
  std::vector<Transfer> transfers_;
  std::map<Key, std::uint32_t> numbers_;
};

/// Whether a collective or message has something to carry, or is a barrier.
inline bool is_sized(const ImportedMessage& message) {
  return message.bytes.base() > 0 || message.kind == TransferKind::kBarrier;
}

}  // namespace orrery
