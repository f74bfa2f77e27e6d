// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "models/topologies/tree_shape.h"

namespace orrery {

/// Bundles between ranks and leaves, one way, by rank.
struct PortLinks {
  std::vector<BundleId> slots;  ///< links between packages and NICs that they share; else empty
  std::vector<BundleId> ports;  ///< links of NICs to leaves: equal for the ranks that share one
};

struct BundlePair {
  BundleId up = 0, down = 0;
};
/// Adds one physical link each way.
inline void draw_pair(Topology::VertexId below, Topology::VertexId above, BytesPerSecond capacity,
                      BundlePair bundles, Topology& topology) {
  topology.add_link(below, above, capacity, bundles.up);
  topology.add_link(above, below, capacity, bundles.down);
}

/// The NICs of all ranks. Where packages share them (`packages_per_nic`), each reaches its NIC
/// through a PCIe slot of its own.
class TreeNics {
 public:
  /// Adds the bundles to a topology, whose leaves are named already but not there yet.
  TreeNics(const SystemConfig& system, const RankLayout& layout, const TreeShape& shape,
           const TreeNames& names, Topology& topology);

  const PortLinks& up() const { return up_; }
  const PortLinks& down() const { return down_; }
  /// Links that a message crosses between packages and NICs, both ends together.
  int slot_hops() const { return shared() ? 2 : 0; }
  void append_up(int rank, Route& route) const;
  void append_down(int rank, Route& route) const;
  /// Adds the bytes that a rank sends, or receives, to the loads of bundles.
  void add_up(int rank, double bytes, std::vector<double>& loads) const;
  void add_down(int rank, double bytes, std::vector<double>& loads) const;

  /// Adds the physical links.
  void draw(Topology::VertexId first_leaf, Topology& topology) const;

 private:
  bool shared() const { return shape_.packages_per_nic > 1; }
  int ranks_per_nic() const { return shape_.packages_per_nic * layout_.dies; }
  void add_own(const TreeNames& names, Topology& topology);
  /// @param link to the host, as wide as the slots
  void add_shared(BytesPerSecond link, const TreeNames& names, Topology& topology);

  RankLayout layout_;
  TreeShape shape_;
  Topology::VertexId first_nic_ = 0;
  PortLinks up_, down_;
};

}  // namespace orrery
