// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/graph/kernel.h"
#include "sim/graph/operator_graph.h"
#include "sim/graph/tensors.h"
#include "sim/graph/transfer.h"
#include "sim/units/time.h"

namespace orrery {

/// What a rank has in memory all the time: "weights", "optimizer".
struct HeldMemory {
  std::string what;
  Bytes bytes;
};

/// Runs of kernels and of transfers on a rank, by ascending id; a receive is none.
struct Runs {
  std::vector<std::pair<KernelId, std::uint64_t>> kernels;
  std::vector<std::pair<TransferId, std::uint64_t>> transfers;
};

/// A representative rank: the blocks it runs in order, and the real ranks it stands for (identical
/// ranks are folded; all of them do the same at the same time).
struct Role {
  std::string name;            ///< "pp 3"
  std::vector<BlockId> calls;  ///< blocks in program order; a block may be called many times
  std::vector<int> ranks;
  std::vector<HeldMemory> held = {};  ///< memory that is there from the start to the end
  Runs runs = {};  ///< besides those of its calls: of a rank that replays an imported graph
};

/// A whole run as SPMD templates: what is replayed. Streams of a role execute their operators in
/// call order and, within a block, in topological order (ties by operator id), as CUDA streams do;
/// streams run concurrently.
struct Program {
  std::vector<Kernel> kernels;
  std::vector<Transfer> transfers;
  std::vector<OperatorGraph> blocks;
  std::vector<std::string> block_names;
  std::vector<Role> roles;
  std::vector<std::string> streams;  ///< names by StreamId; stream 0 is compute
  int ranks = 0;                     ///< real ranks in total
  /// Tensors that operators make, use and free, and when, by block in the order of its operators;
  /// both empty where nobody asked for them (they say what memory holds, never how long work
  /// takes).
  std::vector<Tensor> tensors = {};
  std::vector<std::vector<TensorEvent>> tensor_events = {};
};

}  // namespace orrery
