// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/topologies/fabric.h"

namespace orrery {

/// Adds the accelerators' links to their host boards, and those of the boards to storage, to a
/// machine whose other links `fabric` has; the fabric returned has both. Dies share the link of
/// their package equally.
///
/// Behind a PCIe switch packages share its link to the board (DGX A100: 4 switches with 2 GPUs
/// each). NICs behind the same switch reach GPUs without that link; what they take of the GPU's own
/// is left out.
/// @throws config::ConfigError where the accelerator has no host_link, or packages_per_switch does
///         not divide accelerators_per_node.
std::unique_ptr<Fabric> add_host_links(const SystemConfig& system, const RankLayout& layout,
                                       std::unique_ptr<Fabric> fabric, Topology& topology);

}  // namespace orrery
