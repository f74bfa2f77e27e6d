// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "models/topologies/fabric.h"
#include "sim/graph/transfer.h"
#include "sim/machine/network.h"

namespace orrery {

/// What copies between ranks and their host boards cross.
struct HostPath {
  const Fabric& fabric;
  const std::vector<BytesPerSecond>& capacities;  ///< payload, by bundle
  Seconds start;                                  ///< time once per copy
};

/// The price of a transfer with `host`: start + largest of bytes / rate over the links, which ranks
/// behind the same PCIe switch share. Algorithm "copy".
/// @throws config::ConfigError where nothing leads to storage; std::logic_error where the fabric
///         has no host links.
PricedTransfer host_copy(const Transfer& transfer, const HostPath& path);

}  // namespace orrery
