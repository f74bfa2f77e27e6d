// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/graph/imported_graph.h"

namespace orrery {

/// When each node of a run begins, by rank and node.
using NodeTimes = std::vector<std::vector<Picoseconds>>;

/// Which nodes of a run are wanted: those that all conditions hold for.
struct GraphSelection {
  /// First and last, both included.
  using Range = std::pair<std::uint64_t, std::uint64_t>;

  std::vector<Range> ranks;          ///< empty: all
  std::vector<Range> ids;            ///< identifiers in the files; empty: all
  std::vector<std::string> names;    ///< parts of names, of which one has to be there; empty: all
  std::optional<Picoseconds> from;   ///< nodes begin then or later
  std::optional<Picoseconds> until;  ///< nodes begin before
  /// An identifier or a name: such nodes and all that they wait for, directly or not.
  std::string upstream_of;
  /// An identifier or a name: such nodes and all that wait for them.
  std::string downstream_of;

  bool timed() const { return from || until; }
};

/// A part of a run, and what was cut for it.
struct GraphSlice {
  ImportedRun run;              ///< ranks have their numbers; those without a node have no graph
  std::uint64_t nodes = 0;      ///< nodes of all ranks in the part
  std::uint64_t left_out = 0;   ///< nodes of all ranks that are not
  std::uint64_t waits_cut = 0;  ///< dependencies of nodes of the part on nodes that are not
  std::uint64_t next_cut = 0;   ///< dependencies of nodes that are not in the part on nodes of it
};

/// Cuts a part out of a run. Dependencies that lead out of it are dropped, and what stood between
/// two nodes of it no longer keeps them apart, unless they share a stream.
/// @param begins when nodes begin, where the selection asks for it; else it may be empty
/// @throws config::ConfigError for ranks and nodes that are not there, and where no node is left
GraphSlice slice(const ImportedRun& run, const GraphSelection& selection, const NodeTimes& begins);

}  // namespace orrery
