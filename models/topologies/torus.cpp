// SPDX-License-Identifier: Apache-2.0
// A torus of any number of axes: TPU v5e and v6e 16 x 16; v4 16 x 16 x 16, v5p 16 x 20 x 28 (Jouppi
// et al., "TPU v4", ISCA 2023). Packages are counted along the first axis first.
//
// Routes take one axis after the other, the shorter way round; where both are equally short, half
// goes each way. An exchange then needs no walk over pairs: what a line of an axis carries depends
// only on how many members share its other coordinates.
//
// TPU cubes of 4 x 4 x 4 are joined, and axes closed, by optical circuit switches. They are
// mirrors: a link through one is one link.
#include "models/topologies/torus.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "models/topologies/fabric.h"
#include "sim/config/diagnostics.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

struct TorusTopology final : ScaleUpTopology {
  std::vector<int> sizes;      // packages by axis; rank 1 is next on the first
  std::vector<int> open_axes;  // axes without wrap-around
  int cube = 0;                // edge of the cubes that optical switches join

  static const config::Schema<TorusTopology>& schema();

  config::Fault fault(const SystemConfig& system) const override {
    return package_fault("the torus has", sizes, system, "torus");
  }

  std::unique_ptr<Fabric> build(const SystemConfig& system, const RankLayout& layout,
                                Topology& topology) const override;
};

class TorusFabric final : public Fabric {
 public:
  TorusFabric(const TorusTopology& torus, const SystemConfig& system, const RankLayout& layout,
              Topology& topology)
      : layout_(layout), sizes_(torus.sizes), wraps_(sizes_.size(), 1) {
    for (const int axis : torus.open_axes) wraps_[index(axis)] = 0;
    for (std::size_t axis = 0, stride = 1; axis < sizes_.size(); ++axis) {
      strides_.push_back(static_cast<int>(stride));
      stride *= index(sizes_[axis]);
    }
    const PortConfig& port = system.accelerator.scale_up;
    per_neighbour_ = port.links.value / (2 * static_cast<int>(sizes_.size()));
    link_ = port.bandwidth.value / port.links.value;
    add_bundles(topology);
  }

  void append_route(int source, int destination, Route& route) const override {
    int at = source;
    for (std::size_t axis = 0; axis < sizes_.size(); ++axis) {
      const int from = coordinate(source, axis), to = coordinate(destination, axis);
      walk(at, axis, from, to, 1, [&](BundleId bundle, double share) {
        route.push_back({bundle, share});
      });
      at += (to - from) * strides_[axis];
    }
  }

  int hops(int source, int destination) const override {
    if (!down_.empty()) return Fabric::hops(source, destination);
    int links = 0;
    for (std::size_t axis = 0; axis < sizes_.size(); ++axis) {
      const int apart = std::abs(coordinate(source, axis) - coordinate(destination, axis));
      links += wraps_[axis] != 0 ? std::min(apart, sizes_[axis] - apart) : apart;
    }
    return links;
  }

  // While messages go along an axis, their earlier coordinates are the destination's and the later
  // ones the source's. So from x to x' on the line with `before` and `after` go those of all
  // members with (x, after) to all with (before, x').
  void add_exchange(std::span<const int> group, double bytes,
                    std::vector<double>& loads) const override {
    if (group.empty()) return;
    const int first = layout_.system(group.front()) * layout_.ranks_per_system;
    for (std::size_t axis = 0; axis < sizes_.size(); ++axis) {
      const int below = strides_[axis], size = sizes_[axis];
      const int above = layout_.ranks_per_system / below / size;
      std::vector<double> sources(index(size * above)), destinations(index(below * size));
      for (const int rank : group) {
        sources[index((rank - first) / below)] += 1;
        destinations[index((rank - first) % (below * size))] += 1;
      }
      for (int after = 0; after < above; ++after) {
        for (int before = 0; before < below; ++before) {
          const int line = first + before + after * below * size;
          add_line(line, axis, &sources[index(after * size)], &destinations[index(before)], bytes,
                   loads);
        }
      }
    }
  }

  // The other way round, where the axis is closed.
  void degrade(BundleId bundle, double share, Topology& topology) override {
    Fabric::degrade(bundle, share, topology);
    if (share <= 0) down_.insert(bundle);
  }

  // Whole systems whose axes are all rings.
  std::vector<int> torus(std::span<const int> group) const override {
    const auto ranks = index(layout_.ranks_per_system);
    if (group.size() != ranks || group.front() % layout_.ranks_per_system != 0 ||
        std::count(wraps_.begin(), wraps_.end(), 0) != 0) {
      return {};
    }
    for (std::size_t i = 1; i < ranks; ++i) {
      if (group[i] != group[i - 1] + 1) return {};
    }
    return sizes_;
  }

  void draw(Topology& topology) const override {
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      for (std::size_t axis = 0; axis < sizes_.size(); ++axis) {
        for (const int step : {1, -1}) draw_links(rank, axis, step, topology);
      }
    }
  }

 private:
  void draw_links(int rank, std::size_t axis, int step, Topology& topology) const {
    const int neighbour = next(rank, axis, step);
    for (int link = 0; neighbour >= 0 && link < per_neighbour_; ++link) {
      topology.add_link(topology.rank_vertex(rank), topology.rank_vertex(neighbour), link_,
                        bundles_[slot(rank, axis, step)]);
    }
  }
  int coordinate(int rank, std::size_t axis) const {
    return rank % layout_.ranks_per_system / strides_[axis] % sizes_[axis];
  }
  std::size_t slot(int rank, std::size_t axis, int step) const {
    return (index(rank) * sizes_.size() + axis) * 2 + (step > 0 ? 0 : 1);
  }

  /// The neighbour along an axis; -1: none.
  int next(int rank, std::size_t axis, int step) const {
    const int size = sizes_[axis], to = coordinate(rank, axis) + step;
    if (size == 1 || (wraps_[axis] == 0 && (to < 0 || to >= size))) return -1;
    return rank + ((to + size) % size - coordinate(rank, axis)) * strides_[axis];
  }

  /// Visits the links between two coordinates of the line through `rank`, which is at `from`.
  template <class Visit>
  void walk(int rank, std::size_t axis, int from, int to, double share, Visit visit) const {
    const int size = sizes_[axis], up = (to - from + size) % size;
    if (up == 0) return;
    if (wraps_[axis] == 0) {
      steps(rank, axis, to > from ? 1 : -1, std::abs(to - from), share, visit);
      return;
    }
    const double upwards = share_upwards(rank, axis, up);
    if (upwards > 0) steps(rank, axis, 1, up, share * upwards, visit);
    if (upwards < 1) steps(rank, axis, -1, size - up, share * (1 - upwards), visit);
  }
  /// The share of a message that goes `up` links upwards on a ring; the rest goes downwards.
  double share_upwards(int rank, std::size_t axis, int up) const {
    const int size = sizes_[axis];
    if (!down_.empty()) {
      const bool above = is_whole(rank, axis, 1, up), below = is_whole(rank, axis, -1, size - up);
      if (above != below) return above ? 1 : 0;
    }
    if (2 * up == size) return 0.5;
    return 2 * up < size ? 1 : 0;
  }
  bool is_whole(int rank, std::size_t axis, int step, int count) const {
    bool whole = true;
    steps(rank, axis, step, count, 1,
          [&](BundleId bundle, double) { whole = whole && down_.count(bundle) == 0; });
    return whole;
  }
  template <class Visit>
  void steps(int rank, std::size_t axis, int step, int count, double share, Visit visit) const {
    for (int i = 0; i < count; ++i, rank = next(rank, axis, step)) {
      visit(bundles_[slot(rank, axis, step)], share);
    }
  }

  /// `sources` is by coordinate; `destinations` too, `strides_[axis]` apart.
  void add_line(int line, std::size_t axis, const double* sources, const double* destinations,
                double bytes, std::vector<double>& loads) const {
    for (int from = 0; from < sizes_[axis]; ++from) {
      if (sources[from] == 0) continue;
      for (int to = 0; to < sizes_[axis]; ++to) {
        const double messages = sources[from] * destinations[index(to) * index(strides_[axis])];
        if (messages == 0) continue;
        walk(line + from * strides_[axis], axis, from, to, bytes * messages,
             [&](BundleId bundle, double share) { loads[bundle] += share; });
      }
    }
  }

  void add_bundles(Topology& topology) {
    bundles_.resize(index(layout_.ranks()) * sizes_.size() * 2);
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      for (std::size_t axis = 0; axis < sizes_.size(); ++axis) {
        for (const int step : {1, -1}) {
          const int neighbour = next(rank, axis, step);
          if (neighbour < 0) continue;
          bundles_[slot(rank, axis, step)] =
              topology.add_bundle(topology.rank_name(rank), topology.rank_name(neighbour),
                                  {LinkKind::kScaleUp, link_ * static_cast<double>(per_neighbour_),
                                   per_neighbour_, rank, 2});
        }
      }
    }
  }

  RankLayout layout_;
  std::vector<int> sizes_;
  std::vector<int> wraps_;    // by axis
  std::vector<int> strides_;  // ranks from one coordinate to the next
  int per_neighbour_ = 1;     // parallel links
  BytesPerSecond link_;
  std::vector<BundleId> bundles_;  // by rank, axis, direction
  std::set<BundleId> down_;
};

bool open_axes_exist(const TorusTopology& torus) {
  return std::all_of(torus.open_axes.begin(), torus.open_axes.end(),
                     [&](int axis) { return axis >= 0 && index(axis) < torus.sizes.size(); });
}

const config::Schema<TorusTopology>& TorusTopology::schema() {
  using C = TorusTopology;
  using config::between;
  static const auto schema =
      config::Schema<C>("torus", "neighbours linked along every axis")
          .required("torus", &C::sizes, "packages by axis: [4, 4, 4]", between(1, 1e6))
          .optional("open_axes", &C::open_axes, "numbers of axes without wrap-around",
                    between(0, 9))
          .optional("cube", &C::cube, "edge of the cubes that optical switches join",
                    between(0, 1e6))
          .check("open_axes must name axes of the torus, from 0 on", open_axes_exist, "open_axes");
  return schema;
}

std::unique_ptr<Fabric> TorusTopology::build(const SystemConfig& system, const RankLayout& layout,
                                             Topology& topology) const {
  const int ports = system.accelerator.scale_up.links.value;
  if (sizes.empty() || layout.dies != 1) {
    throw config::KeyError({"system.scale_up.torus", "system.accelerators", "system.scale_up.kind"},
                           fmt::format("the torus has {} packages, the system {} ranks",
                                       system.accelerators.value, layout.ranks_per_system));
  }
  if (ports < 1 || ports % (2 * static_cast<int>(sizes.size())) != 0) {
    throw config::KeyError(
        {"system.scale_up.torus", "system.accelerator.scale_up.links"},
        fmt::format("a torus of {} axes needs a multiple of {} scale-up links, not {}",
                    sizes.size(), 2 * sizes.size(), ports));
  }
  return std::make_unique<TorusFabric>(*this, system, layout, topology);
}

const RegisterScaleUp<TorusTopology> registered_torus(
    "torus", "neighbours linked along every axis, closed to rings unless an axis is open");

}  // namespace

TorusOptics torus_optics(const ScaleUpConfig& config) {
  const auto* torus = dynamic_cast<const TorusTopology*>(config.keys.get());
  if (torus == nullptr || torus->cube < 1) return {};
  TorusOptics optics{.cubes = 1, .switches = static_cast<int>(torus->sizes.size())};
  for (std::size_t axis = 0; axis < torus->sizes.size(); ++axis) {
    if (torus->sizes[axis] % torus->cube != 0) return {};
    optics.cubes *= torus->sizes[axis] / torus->cube;
    if (axis > 0) optics.switches *= torus->cube;
  }
  optics.ports = 2 * optics.cubes;
  optics.links_per_cube = 2 * optics.switches;
  return optics;
}

}  // namespace orrery
