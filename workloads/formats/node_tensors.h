// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/graph/imported_graph.h"
#include "sim/units/units.h"

namespace orrery {

/// A tensor that an operator reads or writes.
struct StorageUse {
  std::int64_t storage = 0;  ///< memory that it, and views of it, lie in
  Bytes bytes;
};

/// The tensors of a node that runs on the device, as its file tells them.
struct NodeTensors {
  NodeId node = 0;
  bool told = false;    ///< the file tells them
  bool shared = false;  ///< several nodes carry out one operator, and have the same
  std::vector<StorageUse> reads, writes;
};

}  // namespace orrery
