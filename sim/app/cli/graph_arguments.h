// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/app/questions/base/options.h"
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

}  // namespace orrery
