// SPDX-License-Identifier: Apache-2.0
// Several dimensions, each across all others: a rank is on one line of each, and lines are rings,
// full meshes or stars about a switch, with links and latencies of their own. So are the networks
// of ASTRA-sim (Won et al., "ASTRA-sim2.0", ISPASS 2023, figure 3: Ring, FullyConnected, Switch)
// and many of its kind: a full mesh on a board, boards in a ring, rings behind switches.
//
// Messages take one dimension after the other, the first one first. On a ring they go the shorter
// way round, half each way where both are equal. A ring of two is one link.
#include "models/topologies/dimensions.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "sim/machine/system_config.h"
#include "sim/units/text.h"

namespace orrery {

DimensionGrid::DimensionGrid(NetworkDimensionsConfig network, int ranks_per_system)
    : network_(std::move(network)), ranks_(ranks_per_system) {
  int stride = 1;
  strides_.reserve(count());
  for (const DimensionConfig& dimension : dimensions()) {
    strides_.push_back(stride);
    stride *= dimension.size;
  }
}

std::vector<int> DimensionGrid::filled_by(std::span<const int> group) const {
  const int first = group.front();
  std::vector<int> filled;
  std::size_t members = 1;
  for (std::size_t d = 0; d < count(); ++d) {
    const bool differ = std::any_of(group.begin(), group.end(), [&](int rank) {
      return coordinate(rank, d) != coordinate(first, d);
    });
    if (!differ) continue;
    filled.push_back(static_cast<int>(d));
    members *= static_cast<std::size_t>(dimensions()[d].size);
  }
  // As many as there are, and each above the one before: all of them.
  if (members != group.size() || !std::is_sorted(group.begin(), group.end()) ||
      std::any_of(group.begin(), group.end(),
                  [&](int rank) { return rank / ranks_ != first / ranks_; }))
    return {};
  return filled;
}

Seconds DimensionGrid::link_latency(std::span<const int> group) const {
  Seconds latency;
  for (std::size_t d = 0; d < count(); ++d) {
    const DimensionConfig& line = dimensions()[d];
    std::vector<int> places(group.size());
    std::transform(group.begin(), group.end(), places.begin(),
                   [&](int rank) { return coordinate(rank, d); });
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    int most = places.size() > 1 ? line.links_of_step() : 0;
    for (const int from : places) {
      for (const int to : places) {
        const int up = (to - from + line.size) % line.size;
        if (line.shape == DimensionShape::kRing)
          most = std::max(most, std::min(up, line.size - up));
      }
    }
    latency += line.latency.value * most;
  }
  return latency;
}

int DimensionGrid::dimension_of(BundleId bundle) const {
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), bundle);
  return end == ends_.end() ? -1 : static_cast<int>(end - ends_.begin());
}

namespace {

/// The bundles of a rank in a dimension, by number: to the neighbour above and below it, to each
/// other place of its line in order, or to its switch and from it.
class DimensionFabric final : public Fabric {
 public:
  DimensionFabric(const NetworkDimensionsConfig& network, const RankLayout& layout,
                  Topology& topology)
      : layout_(layout), grid_(network, layout.ranks_per_system) {
    for (std::size_t d = 0; d < grid_.count(); ++d) add_dimension(d, topology);
  }

  void append_route(int source, int destination, Route& route) const override {
    int at = source;
    for (std::size_t d = 0; d < grid_.count(); ++d) {
      const int from = grid_.coordinate(at, d), to = grid_.coordinate(destination, d);
      if (from == to) continue;
      const int next = at + (to - from) * grid_.stride(d);
      append_line(at, next, d, route);
      at = next;
    }
  }

  const DimensionGrid* dimensions() const override { return &grid_; }

  void draw(Topology& topology) const override {
    for (std::size_t d = 0; d < grid_.count(); ++d) {
      each_bundle(d, [&](int rank, int number) {
        Topology::VertexId from = topology.rank_vertex(rank);
        Topology::VertexId to = is_star(d) ? first_switch_[d] + index(line(rank, d))
                                           : topology.rank_vertex(peer(rank, d, number));
        if (is_down(d, number)) std::swap(from, to);
        topology.add_link(from, to, grid_.dimensions()[d].bandwidth.value, bundle(rank, d, number));
      });
    }
  }

 private:
  bool is_star(std::size_t d) const {
    return grid_.dimensions()[d].shape == DimensionShape::kSwitch;
  }
  bool is_down(std::size_t d, int number) const { return is_star(d) && number == 1; }
  int bundles_of_rank(std::size_t d) const {
    const DimensionConfig& dimension = grid_.dimensions()[d];
    if (dimension.size == 1) return 0;
    return is_star(d) ? 2 : dimension.links_of_rank();
  }
  BundleId bundle(int rank, std::size_t d, int number) const {
    return grid_.first_bundle(d) + static_cast<BundleId>(rank * bundles_of_rank(d) + number);
  }
  template <class Visit>
  void each_bundle(std::size_t d, Visit visit) const {
    for (int rank = 0; rank < layout_.ranks(); ++rank)
      for (int number = 0; number < bundles_of_rank(d); ++number) visit(rank, number);
  }
  /// The rank at the end of such a bundle.
  int peer(int rank, std::size_t d, int number) const {
    const int here = grid_.coordinate(rank, d), size = grid_.dimensions()[d].size;
    int there = number < here ? number : number + 1;
    if (grid_.dimensions()[d].shape == DimensionShape::kRing)
      there = (here + (number == 0 ? 1 : size - 1)) % size;
    return rank + (there - here) * grid_.stride(d);
  }
  /// The number of a rank's line among those of its dimension.
  int line(int rank, std::size_t d) const {
    const int below = grid_.stride(d), size = grid_.dimensions()[d].size;
    return rank / (below * size) * below + rank % below;
  }

  void append_line(int from, int to, std::size_t d, Route& route) const {
    const DimensionConfig& dimension = grid_.dimensions()[d];
    const int here = grid_.coordinate(from, d), there = grid_.coordinate(to, d);
    switch (dimension.shape) {
      case DimensionShape::kSwitch:
        route.push_back({bundle(from, d, 0)});
        route.push_back({bundle(to, d, 1)});
        return;
      case DimensionShape::kMesh:
        route.push_back({bundle(from, d, there < here ? there : there - 1)});
        return;
      case DimensionShape::kRing:
        break;
    }
    const int up = (there - here + dimension.size) % dimension.size, down = dimension.size - up;
    const double both = up == down && dimension.size > 2 ? 0.5 : 1;
    if (up <= down) walk_ring(from, d, 0, up, both, route);
    if (down < up || both < 1) walk_ring(from, d, 1, down, both, route);
  }
  void walk_ring(int rank, std::size_t d, int way, int count, double share, Route& route) const {
    for (int i = 0; i < count; ++i, rank = peer(rank, d, way))
      route.push_back({bundle(rank, d, way), share});
  }

  void add_dimension(std::size_t d, Topology& topology) {
    const DimensionConfig& dimension = grid_.dimensions()[d];
    first_switch_.push_back(topology.vertices());
    const auto switch_name = [&](int number) {
      return fmt::format("dimension{}/switch{}", d, number);
    };
    const bool star = is_star(d) && dimension.size > 1;
    for (int i = 0; star && i < layout_.ranks() / dimension.size; ++i)
      topology.add_switch(switch_name(i));
    each_bundle(d, [&](int rank, int number) {
      std::string from = topology.rank_name(rank);
      std::string to =
          star ? switch_name(line(rank, d)) : topology.rank_name(peer(rank, d, number));
      const bool down = is_down(d, number);
      if (down) std::swap(from, to);
      topology.add_bundle(
          from, to,
          {LinkKind::kScaleUp, dimension.bandwidth.value, 1, down ? -1 : rank, star ? 1 : 2});
    });
    grid_.end_dimension(topology.bundles().size());
  }

  RankLayout layout_;
  DimensionGrid grid_;
  std::vector<Topology::VertexId> first_switch_;  ///< number of the first switch, by dimension
};

const RegisterScaleUp<DimensionsTopology> registered_dimensions(
    "dimensions", "rings, full meshes and switches, each dimension across all others");

}  // namespace

const config::Schema<DimensionsTopology>& DimensionsTopology::schema() {
  static const auto schema = config::Schema<DimensionsTopology>("dimensions", "several dimensions")
                                 .required("dimensions", &DimensionsTopology::dimensions,
                                           "rings, meshes and switches, each across all others");
  return schema;
}

config::Fault DimensionsTopology::fault(const SystemConfig& system) const {
  std::vector<int> sizes;
  BytesPerSecond needed;
  for (const DimensionConfig& axis : dimensions.axes) {
    sizes.push_back(axis.size);
    needed += axis.bandwidth.value * static_cast<double>(axis.links_of_rank());
  }
  config::Fault count = package_fault("the dimensions have", sizes, system, "dimensions.axes");
  const PortConfig& port = system.accelerator.scale_up;
  constexpr double kRounding = 1e-6;
  if (!count.text.empty() || !port.present() || needed <= port.bandwidth.value * (1 + kRounding))
    return count;
  return {fmt::format("the links of a package in all dimensions have {} one way, its ports have {}",
                      print(needed), print(port.bandwidth.value)),
          {"scale_up.dimensions.axes", "accelerator.scale_up.bandwidth", "scale_up.kind"}};
}

std::unique_ptr<Fabric> DimensionsTopology::build(const SystemConfig& /*system*/,
                                                  const RankLayout& layout,
                                                  Topology& topology) const {
  require_one_die("dimensions", layout);
  return std::make_unique<DimensionFabric>(dimensions, layout, topology);
}

}  // namespace orrery
