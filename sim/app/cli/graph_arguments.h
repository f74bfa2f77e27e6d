// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/app/questions/base/options.h"
#include "sim/replay/graph_replay.h"
#include "workloads/formats/graph_files.h"

namespace orrery {

/// What names the graphs of a run on a command line.
struct GraphArguments {
  std::string path, groups;
  std::vector<std::string> dimensions;
  bool repair = false, json = false;

  void take_graph(Options& options);
  /// Reads the graphs; notes go to standard error.
  /// @param fuse_kernels see graph_fusion.h
  ImportedFiles read(bool fuse_kernels = false) const;
};

/// Why the ranks of a run do not go together; empty: they do.
std::string fault_of_replay(const ImportedRun& run, const GraphCosts& costs);

}  // namespace orrery
