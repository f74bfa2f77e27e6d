// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/graph/costs.h"
#include "sim/graph/frozen_block.h"
#include "sim/graph/program.h"

namespace orrery {

/// A program with what everything in it costs, to be written for other programs.
struct PricedSteps {
  const Program& program;
  const Costs& costs;
  std::vector<Picoseconds> alone;  ///< time of each transfer that has the machine for itself
  /// Times of all runs of a kernel in their order, by role and kernel, where transfers beside them
  /// make them differ; empty: each takes its cost.
  std::vector<std::vector<std::vector<Picoseconds>>> runs = {};
};

/// Writes a program as Chakra execution traces, a file a rank: each run of an operator is a node
/// that waits for the one before it on its stream and for those of its block that it waits for.
///
/// Times of kernels, which transfers beside them may have made longer, stand in `duration_micros`,
/// and to the picosecond in an attribute of our own (orrery.duration_ps); collectives and messages
/// have their bytes and group, and take the time that the reader's network gives them. What Chakra
/// has no type for (dispatch and combine of experts, copies to hosts, all-to-alls of unequal parts)
/// has the time that it takes alone. Kernels have their shapes (orrery.kernel); those of steps with
/// a backward pass are marked as needed by others than what follows them (orrery.kept).
class ChakraWriter {
 public:
  /// @param steps has to outlive it
  explicit ChakraWriter(const PricedSteps& steps);

  /// Writes the file of a rank. @returns its nodes
  /// @throws std::out_of_range for a rank that the program does not have
  std::uint64_t write(int rank, std::ostream& out) const;
  /// Writes the communicators of all ranks as ASTRA-sim reads them: {"1": [ranks], ...}.
  void write_groups(std::ostream& out) const;

 private:
  class RankFile;
  /// Nodes of an operator, ready but for identifiers and dependencies: one, or two where a rank
  /// sends and receives at once.
  struct Piece {
    std::vector<std::string> messages;
    Picoseconds issue = 0;  ///< what the host takes to issue it
    bool host_waits = false;
    std::optional<KernelId> kernel =
        std::nullopt;  ///< the kernel that it runs: its time is missing
  };

  std::vector<Piece> pieces_of(BlockId block, int rank) const;
  Piece kernel_piece(const Operator& op) const;
  Piece transfer_piece(const Operator& op, int rank) const;
  std::string groups_of(const Role& role, int rank) const;
  /// ASTRA-sim takes names of groups for numbers, of which 0 is all ranks.
  std::string name_of(const std::vector<int>& group) const;

  const PricedSteps& steps_;
  std::vector<FrozenBlock> blocks_;
  std::vector<const Role*> role_of_rank_;
  /// There is a backward pass, which needs results that the order of kernels does not tell.
  bool keeps_results_ = false;
  std::map<std::vector<int>, std::size_t> groups_;  ///< communicators by their members: numbers
};

}  // namespace orrery
