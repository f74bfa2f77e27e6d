// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/config/declared.h"
#include "sim/config/diagnostics.h"
#include "sim/config/file_path.h"
#include "sim/graph/kernel.h"
#include "sim/graph/transfer.h"
#include "sim/machine/system_config.h"

namespace orrery {

struct CollectiveConfig {
  TransferKind kind = TransferKind::kAllReduce;
  Bytes bytes;             ///< bytes as nccl-tests counts them: see Transfer
  std::int64_t ranks = 0;  ///< the first `ranks` of the machine; 0: all
  std::string algorithm = "auto";
  std::string protocol = "auto";
  Precision precision = Precision::kBf16;  ///< precision of the elements; int8: sums of bytes
  /// all_to_all with parts of different sizes: from rank i to rank j at [i][j]; here or in a CSV
  /// file without a header, in bytes.
  std::vector<std::vector<Bytes>> matrix;
  FilePath matrix_file;
  /// send_receive: a rank (0 and 1 where neither is given), "host" or "storage"; "all" ranks at
  /// once with one of those.
  std::string from, to;
  // Dispatch and combine have tokens instead of bytes; see ExpertRouting.
  std::int64_t tokens = 0;  ///< tokens of each rank
  std::int64_t hidden = 0;
  int experts = 0;
  int top_k = 0;
  int expert_groups = 0;
  int top_groups = 0;
  ExpertRouting::Router router = ExpertRouting::Router::kUniform;
  ExpertRouting::Mode mode = ExpertRouting::Mode::kNormal;
  double skew = 1;  ///< heaviest rank over the mean; an all_to_all has it too
  static const config::Schema<CollectiveConfig>& schema();

  bool exchanges_tokens() const {
    return kind == TransferKind::kDispatch || kind == TransferKind::kCombine;
  }
  Transfer transfer(std::vector<int> group) const;

  bool has_matrix() const { return !matrix.empty() || !matrix_file.empty(); }
};

/// Reports what keys of parts and ends do not fit: the kind, the machine, each other.
void check_parts(const CollectiveConfig& collective, const SystemConfig& system, int ranks,
                 const config::Node& node, config::Diagnostics& diagnostics);

/// The transfer of a checked collective on a machine of that many ranks, groups and parts included.
/// @throws config::ConfigError for a file with a matrix that cannot be read.
Transfer collective_transfer(const CollectiveConfig& collective, int ranks);

}  // namespace orrery
