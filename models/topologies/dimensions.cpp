// SPDX-License-Identifier: Apache-2.0
// Several dimensions, each across all others: a rank is on one line of each, and lines are rings,
// full meshes or stars about a switch, with links and latencies of their own. So are the networks
// of ASTRA-sim (Won et al., "ASTRA-sim2.0", ISPASS 2023, figure 3: Ring, FullyConnected, Switch)
// and many of its kind: a full mesh on a board, boards in a ring, rings behind switches.
//
// Messages take one dimension after the other, the first one first. On a ring they go the shorter
// way round, half each way where both are equal. A ring of two is one link.
#include "models/topologies/dimensions.h"

#include <algorithm>
#include <string>

#include "sim/config/diagnostics.h"
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

int DimensionGrid::line_links(std::size_t dimension, int from, int to) const {
  const int apart = std::abs(from - to);
  if (apart == 0) return 0;
  const DimensionConfig& line = dimensions()[dimension];
  return line.shape == DimensionShape::kRing ? std::min(apart, line.size - apart)
                                             : line.links_of_step();
}

Seconds DimensionGrid::link_latency(int source, int destination) const {
  Seconds latency;
  for (std::size_t d = 0; d < count(); ++d)
    latency += dimensions()[d].latency.value *
               line_links(d, coordinate(source, d), coordinate(destination, d));
  return latency;
}

Seconds DimensionGrid::link_latency(std::span<const int> group) const {
  Seconds latency;
  for (std::size_t d = 0; d < count(); ++d) {
    std::vector<int> places;
    places.reserve(group.size());
    for (const int rank : group) places.push_back(coordinate(rank, d));
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    int most = 0;
    for (const int from : places)
      for (const int to : places) most = std::max(most, line_links(d, from, to));
    latency += dimensions()[d].latency.value * most;
  }
  return latency;
}

void DimensionGrid::set_dimension(BundleId bundle, int dimension) {
  if (by_bundle_.size() <= bundle) by_bundle_.resize(bundle + 1, -1);
  by_bundle_[bundle] = dimension;
}

namespace {

class DimensionFabric final : public Fabric {
 public:
  DimensionFabric(const NetworkDimensionsConfig& network, const RankLayout& layout,
                  Topology& topology)
      : layout_(layout), grid_(network, layout.ranks_per_system) {
    links_.resize(grid_.count());
    first_switch_.resize(grid_.count());
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

  int hops(int source, int destination) const override {
    int links = 0;
    for (std::size_t d = 0; d < grid_.count(); ++d)
      links += grid_.line_links(d, grid_.coordinate(source, d), grid_.coordinate(destination, d));
    return links;
  }

  const DimensionGrid* dimensions() const override { return &grid_; }

  void draw(Topology& topology) const override {
    for (std::size_t d = 0; d < grid_.count(); ++d) {
      for (int rank = 0; rank < layout_.ranks(); ++rank) {
        const DimensionConfig& dimension = grid_.dimensions()[d];
        for (int link = 0; link < links_of(d); ++link) {
          const BundleId bundle = links_[d][slot(rank, d, link)];
          const Topology::VertexId other = dimension.shape == DimensionShape::kSwitch
                                               ? first_switch_[d] + index(line(rank, d))
                                               : topology.rank_vertex(peer(rank, d, link));
          const Topology::VertexId here = topology.rank_vertex(rank);
          const bool down = dimension.shape == DimensionShape::kSwitch && link == 1;
          topology.add_link(down ? other : here, down ? here : other, dimension.bandwidth.value,
                            bundle);
        }
      }
    }
  }

 private:
  /// Bundles of a rank in a dimension: to the neighbour above and below it, to each other place of
  /// its line in order, or to its switch and from it.
  int links_of(std::size_t d) const {
    const DimensionConfig& dimension = grid_.dimensions()[d];
    if (dimension.size == 1) return 0;
    return dimension.shape == DimensionShape::kSwitch ? 2 : dimension.links_of_rank();
  }
  std::size_t slot(int rank, std::size_t d, int link) const {
    return index(rank) * index(links_of(d)) + index(link);
  }
  /// The rank at the end of such a bundle.
  int peer(int rank, std::size_t d, int link) const {
    const int here = grid_.coordinate(rank, d), size = grid_.dimensions()[d].size;
    int there = link < here ? link : link + 1;
    if (grid_.dimensions()[d].shape == DimensionShape::kRing)
      there = (here + (link == 0 ? 1 : size - 1)) % size;
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
        route.push_back({links_[d][slot(from, d, 0)]});
        route.push_back({links_[d][slot(to, d, 1)]});
        return;
      case DimensionShape::kMesh:
        route.push_back({links_[d][slot(from, d, there < here ? there : there - 1)]});
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
      route.push_back({links_[d][slot(rank, d, way)], share});
  }

  void add_dimension(std::size_t d, Topology& topology) {
    const DimensionConfig& dimension = grid_.dimensions()[d];
    links_[d].resize(index(layout_.ranks()) * index(links_of(d)));
    first_switch_[d] = topology.vertices();
    const bool star = dimension.shape == DimensionShape::kSwitch;
    const auto switch_name = [&](int number) {
      return "dimension" + std::to_string(d) + "/switch" + std::to_string(number);
    };
    for (int i = 0; star && links_of(d) > 0 && i < layout_.ranks() / dimension.size; ++i)
      topology.add_switch(switch_name(i));
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      for (int link = 0; link < links_of(d); ++link) {
        std::string from = topology.rank_name(rank);
        std::string to =
            star ? switch_name(line(rank, d)) : topology.rank_name(peer(rank, d, link));
        if (star && link == 1) std::swap(from, to);
        const BundleId bundle =
            topology.add_bundle(from, to,
                                {LinkKind::kScaleUp, dimension.bandwidth.value, 1,
                                 star && link == 1 ? -1 : rank, star ? 1 : 2});
        links_[d][slot(rank, d, link)] = bundle;
        grid_.set_dimension(bundle, static_cast<int>(d));
      }
    }
  }

  RankLayout layout_;
  DimensionGrid grid_;
  std::vector<std::vector<BundleId>> links_;  ///< bundles by dimension and slot
  std::vector<Topology::VertexId> first_switch_;
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
  return {"the links of a package in all dimensions have " + print(needed) +
              " one way, its ports have " + print(port.bandwidth.value),
          {"scale_up.dimensions.axes", "accelerator.scale_up.bandwidth", "scale_up.kind"}};
}

std::unique_ptr<Fabric> DimensionsTopology::build(const SystemConfig& /*system*/,
                                                  const RankLayout& layout,
                                                  Topology& topology) const {
  if (layout.dies != 1) {
    throw config::KeyError(
        std::vector<std::string>{"system.scale_up.kind", "system.accelerator.dies"},
        "topology dimensions connects packages; dies must be 1");
  }
  return std::make_unique<DimensionFabric>(dimensions, layout, topology);
}

}  // namespace orrery
