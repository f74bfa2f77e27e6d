// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/container/small_vector.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/topologies/rings.h"
#include "sim/config/registry.h"
#include "sim/graph/topology.h"
#include "sim/graph/transfer.h"
#include "sim/machine/scale_up_config.h"

namespace orrery {

struct SystemConfig;
class DimensionGrid;

/// A bundle on the way of a message, and the share of its bytes that cross there: 1 unless paths
/// part.
struct Hop {
  BundleId bundle = 0;
  double share = 1;
};
/// What a message crosses. Where all paths go through the same bundles, in order; the longest of
/// those: two hops to the rail's owner, NIC, leaf, spine, leaf, NIC.
using Route = boost::container::small_vector<Hop, 8>;

/// The number of a rank, node or port as the place in an array.
inline std::size_t index(int number) { return static_cast<std::size_t>(number); }

/// Where a rank is. See Network for the numbering.
struct RankLayout {
  int dies = 1;              ///< ranks of a package
  int ranks_per_node = 1;    ///< behind one host board
  int ranks_per_system = 1;  ///< ranks of one scale-up domain
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

/// A name such as "system0/node1".
std::string node_name(const RankLayout& layout, int node);
/// "system0/node1/accelerator3", with "/die1" where a package has several.
std::string rank_name(const RankLayout& layout, int rank);

/// A bundle that has lost links or speed.
struct LinkFault {
  BundleId bundle = 0;
  double share = 0;  ///< share of the bundle's capacity that is left; 0: it is down
};

/// Bundles of links that have been added to a topology, and the route through them.
/// Links that a message crosses one after the other.
struct RouteLinks {
  int inside = 0;   ///< links inside systems
  int between = 0;  ///< links between them
};

class Fabric {
 public:
  Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  virtual ~Fabric() = default;

  /// Appends the route between two different ranks that this fabric joins.
  virtual void append_route(int source, int destination, Route& route) const = 0;

  /// Appends the route between a rank and its host board, or the storage behind it: outward or to
  /// the rank.
  /// @throws std::logic_error where host links are not part of the network (`host.links`);
  ///         config::ConfigError where nothing leads to storage.
  virtual void append_host_route(int rank, HostEnd end, bool outward, Route& route) const;

  /// Links that a message crosses one after the other, those on a package not counted. By default
  /// what append_route() says, for fabrics whose paths are equally long.
  virtual int hops(int source, int destination) const;
  /// The same, those inside systems and those between them.
  virtual RouteLinks route(int source, int destination) const {
    return {hops(source, destination), 0};
  }

  /// Leaves a bundle of this fabric a share of its capacity. Messages go around one that is down
  /// where the fabric has another way; where it has none (by default) they keep theirs, and stand
  /// still on it.
  virtual void degrade(BundleId bundle, double share, Topology& topology) {
    topology.scale(bundle, share);
  }

  /// Adds every physical link to the topology of the constructor, or a copy of it.
  virtual void draw(Topology& topology) const = 0;

  /// Adds to `loads` (bytes by bundle) what every bundle carries when each rank of the group sends
  /// `bytes` to each other one. Walks all pairs; a fabric that can count does better.
  virtual void add_exchange(std::span<const int> group, double bytes,
                            std::vector<double>& loads) const;

  /// Whether switches reduce and multicast among this group (NVLS, SHARP).
  virtual bool reduces(std::span<const int> group) const;
  /// The links of the tree on which the switches reduce: every rank of the group sends up, and each
  /// switch sends one result on towards the root, where it stays. Only where reduces().
  virtual void append_reduction(std::span<const int> group, Route& route) const;
  /// The same tree downwards: the root switch sends one copy, which multiplies on its way to every
  /// rank of the group. Only where reduces().
  virtual void append_multicast(std::span<const int> group, Route& route) const;

  /// Sizes of the axes of the torus that this group fills in its order, the first axis fastest;
  /// empty where it is none.
  virtual std::vector<int> torus(std::span<const int> group) const;
  /// The dimensions of a scale-up fabric that has several, with latencies of their own; nullptr
  /// where it has none.
  virtual const DimensionGrid* dimensions() const { return nullptr; }
  /// Rings over direct links through a group of one system, which is in rank order; empty where
  /// rank order does: behind switches every order is as good.
  virtual RingOrders rings(std::span<const int> group) const;
};

/// A topology inside systems, as configured.
struct ScaleUpTopology : ScaleUpKeys {
  /// Adds switches and bundles inside each system to a topology whose ranks exist. fault() has said
  /// that the keys fit.
  virtual std::unique_ptr<Fabric> build(const SystemConfig& system, const RankLayout& layout,
                                        Topology& topology) const = 0;
};

/// @throws config::KeyError where packages are several ranks, which a topology does not join
void require_one_die(const char* topology, const RankLayout& layout);
/// @throws config::KeyError where packages are several ranks and their dies have no links
void require_die_links(const SystemConfig& system);

/// A fault if the keys of a topology count other packages than its system has.
/// @param what "the torus has"
/// @param key of the fabric, that counts them
config::Fault package_fault(const std::string& what, std::span<const int> sizes,
                            const SystemConfig& system, const std::string& key);

/// Adds switches and bundles between systems; the fabric returned joins all ranks, using `scale_up`
/// inside systems.
using ScaleOutBuilder = std::unique_ptr<Fabric> (*)(const SystemConfig&, const RankLayout&,
                                                    std::unique_ptr<Fabric> scale_up, Topology&);

using ScaleOutRegistry = Registry<ScaleOutBuilder>;

/// Adds all ranks, switches and bundles of the machine to an empty topology.
/// @throws config::ConfigError for an unknown kind, and sizes that do not fit together.
std::unique_ptr<Fabric> build_fabric(const SystemConfig& system, const RankLayout& layout,
                                     Topology& topology);

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
