// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/topologies/dimension_config.h"
#include "models/topologies/fabric.h"
#include "sim/graph/topology.h"

namespace orrery {

/// Dimensions, each across all others.
struct DimensionsTopology final : ScaleUpTopology {
  NetworkDimensionsConfig dimensions;
  static const config::Schema<DimensionsTopology>& schema();
  bool says_start() const override { return true; }
  config::Fault fault(const SystemConfig& system) const override;
  std::unique_ptr<Fabric> build(const SystemConfig& system, const RankLayout& layout,
                                Topology& topology) const override;
};

/// What a network of several dimensions is to collectives, beyond its links.
class DimensionGrid {
 public:
  DimensionGrid(NetworkDimensionsConfig network, int ranks_per_system);

  /// How collectives go through the dimensions.
  const NetworkDimensionsConfig& network() const { return network_; }
  const std::vector<DimensionConfig>& dimensions() const { return network_.axes; }
  std::size_t count() const { return dimensions().size(); }
  /// The place of a rank in a dimension, and the ranks from one place to the next.
  int coordinate(int rank, std::size_t dimension) const {
    return rank % ranks_ / strides_[dimension] % dimensions()[dimension].size;
  }
  int stride(std::size_t dimension) const { return strides_[dimension]; }

  /// The dimensions in which the members of a group differ, where it has all ranks that agree with
  /// them in the others, in rank order; empty where it has not. Those of one rank count in none.
  std::vector<int> filled_by(std::span<const int> group) const;
  /// The most latency of the links between any two of a group that fills a box, dimension after
  /// dimension, the shorter way round a ring; of other groups no less.
  Seconds link_latency(std::span<const int> group) const;

  /// Says that the bundles up to `end` are those of the next dimension.
  void end_dimension(std::size_t end) { ends_.push_back(static_cast<BundleId>(end)); }
  /// The first bundle of a dimension.
  BundleId first_bundle(std::size_t dimension) const {
    return dimension == 0 ? 0 : ends_[dimension - 1];
  }
  /// The dimension that a bundle belongs to, or -1 for a bundle of no dimension.
  int dimension_of(BundleId bundle) const;

 private:
  NetworkDimensionsConfig network_;
  std::vector<int> strides_;
  int ranks_;
  std::vector<BundleId> ends_;  ///< number of the bundle behind those of each dimension
};

}  // namespace orrery
