// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "validation/importers/topology_file.h"

namespace orrery {

/// A node of cards whose PCI tree is as regular as the topology `pcie` describes: on each processor
/// as many cards as on the others, on each switch as many as on the others, in order.
struct PcieBox {
  int generation = 0;  ///< 3 to 6
  int lanes = 0;       ///< lanes of a card
  int per_switch = 0;  ///< cards of a switch; 0: there are none
  int uplink_lanes = 0;
  int sockets = 1;
  int bridge = 0;  ///< neighbours that NVLink joins; 0: none
  std::optional<BytesPerSecond> socket_link;

  /// The block `scale_up` of a system that extends one of kind `pcie`.
  std::string yaml() const;
};

/// Nothing where cards have links to switches of their own, or the tree is not regular.
std::optional<PcieBox> pcie_box(const TopologyFile& file);

/// Whether a system of the library, or a file, is one of kind `pcie`.
bool is_pcie_system(const std::string& system);

}  // namespace orrery
