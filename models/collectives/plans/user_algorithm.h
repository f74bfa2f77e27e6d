// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/collectives/schedule.h"
#include "sim/config/declared.h"

namespace orrery {

/// A message of a user-written algorithm. Ranks are those of the group, from 0 on.
struct UserMessage {
  int from = 0;
  int to = 0;
  int chunk = 0;  ///< the first
  int count = 1;  ///< chunks from there on
  ChunkOp op = ChunkOp::kCopy;
  static const config::Schema<UserMessage>& schema();
};

/// A collective algorithm written as YAML: see configs/collectives/README.md.
struct UserAlgorithm {
  TransferKind collective = TransferKind::kAllReduce;
  std::string remarks;
  int ranks = 0;
  int chunks = 1;
  std::vector<std::vector<UserMessage>> steps;
  static const config::Schema<UserAlgorithm>& schema();
};

/// A registered algorithm, or the one of a file, which serves groups of its size: a UserAlgorithm
/// or an execution plan of MSCCL++ (plans/execution_plan.h). Files are read and proved right
/// (verify_semantics) once.
/// @throws config::ConfigError for an unknown name and for a file that is wrong or computes
/// something else, at the message.
std::shared_ptr<const CollectiveAlgorithm> find_algorithm(const std::string& name_or_path);

}  // namespace orrery
