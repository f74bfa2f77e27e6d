// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/container/static_vector.hpp>
#include <memory>
#include <string>

#include "models/registry.h"
#include "sim/graph/topology.h"

namespace orrery {

struct SystemConfig;

/// The bundles a message crosses, in order. The longest: two hops to the rail's owner, NIC, leaf,
/// spine, leaf, NIC.
using Route = boost::container::static_vector<BundleId, 8>;

/// Where a rank is. See Network for the numbering.
struct RankLayout {
  int dies = 1;              ///< ranks of a package
  int ranks_per_node = 1;    ///< behind one host board
  int ranks_per_system = 1;  ///< of one scale-up domain
  int systems = 1;

  int ranks() const { return systems * ranks_per_system; }
  int system(int rank) const { return rank / ranks_per_system; }
  int node(int rank) const { return rank / ranks_per_node; }
  int package(int rank) const { return rank / dies; }
  /// Number of the package behind its host board, which is that of its NIC and rail.
  int rail(int rank) const { return rank % ranks_per_node / dies; }
  int nodes() const { return ranks() / ranks_per_node; }
};

/// @throws config::ConfigError when counts are not positive or host boards do not divide a system.
RankLayout rank_layout(const SystemConfig& system, int systems);

/// "system0/node1/accelerator3", with "/die1" where a package has several.
std::string rank_name(const RankLayout& layout, int rank);

/// Links that have been added to a topology, and the way through them.
class Fabric {
 public:
  Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  virtual ~Fabric() = default;

  /// Appends the way between two different ranks that this fabric joins.
  virtual void append_route(int source, int destination, Route& route) const = 0;
};

/// Adds the links inside each system to a topology whose ranks exist.
using ScaleUpBuilder = std::unique_ptr<Fabric> (*)(const SystemConfig&, const RankLayout&,
                                                   Topology&);
/// Adds the links between systems; the fabric returned joins all ranks, using `scale_up` inside
/// systems.
using ScaleOutBuilder = std::unique_ptr<Fabric> (*)(const SystemConfig&, const RankLayout&,
                                                    std::unique_ptr<Fabric> scale_up, Topology&);

using ScaleUpRegistry = Registry<ScaleUpBuilder>;
using ScaleOutRegistry = Registry<ScaleOutBuilder>;

/// Adds all ranks and links of the machine to an empty topology.
/// @throws config::ConfigError for an unknown kind or sizes that do not fit together.
std::unique_ptr<Fabric> build_fabric(const SystemConfig& system, const RankLayout& layout,
                                     Topology& topology);

}  // namespace orrery
