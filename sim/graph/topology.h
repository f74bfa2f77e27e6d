// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/graph/name_pool.h"
#include "sim/units/units.h"

namespace orrery {

/// What a link is made of: decides its efficiency and its energy per byte.
enum class LinkKind : std::uint8_t { kOnPackage, kScaleUp, kScaleOut, kHost };
const char* to_string(LinkKind kind);

/// What a link is called with its like: "accelerator->leaf" of
/// "system0/node1/accelerator3->group0/leaf3". Ends without the place and number that they have.
std::string link_class(std::string_view name);
/// What one end adds to that: "leaf" of "group0/leaf3".
std::string_view end_class(std::string_view end);

using BundleId = std::uint32_t;

/// Parallel links that ideal spraying always loads in proportion to their capacity, such as the 18
/// links from one GPU of an NVL72 to the 18 switch chips. A bundle is one link of `Costs`: exact,
/// and 18 to 112 times fewer.
struct Bundle {
  LinkKind kind = LinkKind::kScaleUp;
  BytesPerSecond capacity;  ///< capacity of all its links, one way, at the published line rate
  int links = 0;            ///< physical links, one way
  int source = -1;          ///< the rank that its links start at; -1: a switch, or several ranks
  /// Halves of the route between two packages that it is, for which energies of messages are given
  /// (EnergyConfig): 1 to a switch or from it, 2 where a link joins packages, 0 between switches
  /// that the energy has in it already.
  int half_routes = 1;
};

/// Ranks, switches and the bundles of links between them; and, where a fabric has drawn them, the
/// physical links, which a machine of 100,000 ranks has millions of and no price needs. Ranks are
/// numbered in the order they are added. Who walks along the links includes topology_boost.h.
class Topology {
 public:
  struct Vertex {
    NameId name = 0;
    int rank = -1;  ///< -1: a switch
  };
  /// One physical link, one way.
  struct Link {
    BytesPerSecond capacity;
    BundleId bundle = 0;
  };
  struct Graph;  ///< graph of Boost, which few need and all would wait for
  using VertexId = std::size_t;

  Topology();
  Topology(const Topology& other);
  Topology(Topology&& other) noexcept;
  Topology& operator=(const Topology& other);
  Topology& operator=(Topology&& other) noexcept;
  ~Topology();

  /// @param name hierarchical: "system0/node1/accelerator3"
  VertexId add_rank(std::string_view name);
  VertexId add_switch(std::string_view name);
  /// Its name is "system0/node1/accelerator3->nvswitches" of `from` and `to`.
  BundleId add_bundle(std::string_view from, std::string_view to, const Bundle& bundle) {
    const NameId first = name(from);
    return add_bundle(first, name(to), bundle);
  }
  /// Adds a bundle between names that are known: an end of several bundles is looked for once.
  BundleId add_bundle(NameId from, NameId to, const Bundle& bundle);
  /// The number of a name, which may be new.
  NameId name(std::string_view text) { return names_.add(text); }
  /// Leaves a bundle that share of its capacity; 0: it is down. Its links are still counted.
  void scale(BundleId bundle, double share) { bundles_.at(bundle).capacity *= share; }
  /// Draws one physical link of a bundle, whose capacity and count have it already.
  /// @throws std::out_of_range for a bundle that does not exist.
  void add_link(VertexId from, VertexId to, BytesPerSecond capacity, BundleId bundle);

  /// Gives back what only building takes.
  void trim() { names_.trim(); }

  const Graph& graph() const { return *graph_; }
  std::size_t vertices() const;
  const std::vector<Bundle>& bundles() const { return bundles_; }
  std::string bundle_name(BundleId bundle) const;
  /// Names of ranks, switches and ends of bundles.
  const NamePool& names() const { return names_; }
  struct Ends {
    NameId from = 0, to = 0;
  };
  const Ends& bundle_ends(BundleId bundle) const { return ends_.at(bundle); }
  int ranks() const { return static_cast<int>(rank_vertices_.size()); }
  VertexId rank_vertex(int rank) const { return rank_vertices_.at(static_cast<std::size_t>(rank)); }
  std::string vertex_name(VertexId vertex) const;
  std::string rank_name(int rank) const { return vertex_name(rank_vertex(rank)); }
  NameId rank_name_id(int rank) const;
  /// Physical links of a kind, one way each, drawn or not.
  std::size_t link_count(LinkKind kind) const;

 private:
  std::unique_ptr<Graph> graph_;
  NamePool names_;
  std::vector<Bundle> bundles_;
  std::vector<Ends> ends_;  ///< ends of the links, by bundle
  std::vector<VertexId> rank_vertices_;
};

}  // namespace orrery
