// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/graph/imported_graph.h"

namespace orrery {

/// Writes graphs that were read, or parts of them, as Chakra execution traces, a file a rank, so
/// that they are the same graphs when they are read again: identifiers, names, dependencies, times
/// to the picosecond (orrery.duration_ps), streams (orrery.stream), shapes of kernels
/// (orrery.kernel). Other readers pass over the attributes that are ours.
class ChakraGraphWriter {
 public:
  /// @param run has to outlive it
  explicit ChakraGraphWriter(const ImportedRun& run);

  /// Writes the file of a rank that has a graph. @returns its nodes
  std::uint64_t write(int rank, std::ostream& out) const;
  /// Writes the communicators as ASTRA-sim reads them: {"1": [ranks], ...}.
  void write_groups(std::ostream& out) const;

 private:
  class RankFile;
  const std::vector<int>& members(std::uint32_t group) const;
  std::string name_of(std::uint32_t group) const;
  /// The communicators of a graph.
  std::vector<std::pair<std::string, std::vector<int>>> groups_of(const ImportedGraph& graph) const;

  const ImportedRun& run_;
  std::vector<int> world_;  ///< all ranks, those without a graph too
  bool partial_ = false;    ///< some ranks have no graph
};

}  // namespace orrery
