// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/graph/imported_graph.h"

namespace orrery {

/// Where the operator graphs of a run lie, and what their readers are told.
struct GraphFiles {
  /// A file; a folder with a file for each rank; or a prefix that stands for PREFIX.<rank>.et and
  /// the like.
  std::string path;
  std::string groups;  ///< JSON file of communicators, {"name": [ranks], ...}; empty: none
  /// Dependencies that cannot be kept are dropped (GraphBuilder::finish()), and collectives without
  /// a type take that of their name.
  bool repair = false;
  std::map<std::string, std::int64_t> dimensions = {};  ///< sizes of symbolic dimensions
  std::optional<Precision> precision = {};              ///< see GraphReadOptions
  bool fuse = true;                                     ///< see GraphReadOptions
  bool fuse_kernels = false;                            ///< see graph_fusion.h

  auto operator<=>(const GraphFiles&) const = default;
};

/// The file of one rank.
struct RankFile {
  int rank = 0;
  std::string path;
  bool told = false;  ///< the file says itself whose it is
  bool part = false;  ///< and that other ranks of the run may be without a file
};

/// The files of all ranks, by rank: as they say themselves (traces of the PyTorch profiler,
/// `distributedInfo`), if all do. Else in a folder, and behind a prefix, the rank is the last
/// number of the name ("trace.3.et", "rank-3.json.gz"), and ranks count from 0 without a gap. A
/// file alone is that of rank 0, unless its name ends like `.3.et` or has `rank3`, `rank_3` or
/// `rank-3`.
/// @throws config::ConfigError where there are none, where two have one rank, where one is missing
/// though the files do not say that they are a part of their run
std::vector<RankFile> find_rank_files(const std::string& path);

/// A file that has been read, with the hash of its bytes.
struct HashedFile {
  std::string role;  ///< "groups", or "rank 3": that of the graph
  std::string path;
  std::string sha256;
};

/// The graphs of a run, and the files that they were read from.
struct ImportedFiles {
  ImportedRun run;
  std::vector<HashedFile> files;
};

/// Reads the graphs of all ranks, each by the format that recognises it; ranks with identical files
/// share one. A file alone may be that of one of several ranks, which then are without a graph.
/// @throws config::ConfigError with the file, and the offset, of what cannot be read
ImportedFiles read_graph_files(const GraphFiles& files);

}  // namespace orrery
