// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/config/declared.h"
#include "sim/config/fact.h"
#include "sim/units/units.h"

namespace orrery {

/// How the ranks on a line of a dimension are joined.
enum class DimensionShape : std::uint8_t {
  kRing,    ///< each to its two neighbours
  kMesh,    ///< each to each other
  kSwitch,  ///< each to one switch
};

/// How a collective goes along a line.
enum class LineAlgorithm : std::uint8_t {
  kRing,             ///< each rank sends to the next one, one way round
  kDirect,           ///< each rank sends to each other at once
  kHalvingDoubling,  ///< each rank has one partner a step, 1, 2, 4, ... ranks away
};

/// One dimension of a network of several. The ranks that differ in its coordinate alone are a
/// line.
struct DimensionConfig {
  DimensionShape shape = DimensionShape::kRing;
  int size = 1;                    ///< ranks of a line
  Fact<BytesPerSecond> bandwidth;  ///< line rate of one link, one way
  Fact<Seconds> latency;           ///< latency of one link
  LineAlgorithm algorithm = LineAlgorithm::kRing;
  Fact<BytesPerSecond> sum_rate;
  static const config::Schema<DimensionConfig>& schema();

  /// Links from a rank to the one that it talks to.
  int links_of_step() const { return shape == DimensionShape::kSwitch ? 2 : 1; }
  /// Links of a rank in this dimension, one way.
  int links_of_rank() const;
};

/// What an all-reduce does with the dimensions.
enum class AllReduceOrder : std::uint8_t {
  kHierarchical,   ///< reduce-scatters up the dimensions, all-gathers down: each has less to carry
  kEachDimension,  ///< an all-reduce of the whole buffer in one dimension after the other
};

/// A network of several dimensions, and how a collective library goes through them: the buffer is
/// cut into chunks, each of which goes through all of its phases, one dimension after the other; a
/// dimension works on one chunk at a time, in the order in which they come to it.
struct NetworkDimensionsConfig {
  std::vector<DimensionConfig> axes;  ///< the first varies fastest
  int chunks = 1;
  Fact<Seconds> start;  ///< what a chunk waits at the begin of each phase
  AllReduceOrder all_reduce = AllReduceOrder::kHierarchical;
  static const config::Schema<NetworkDimensionsConfig>& schema();
};

namespace config {

template <>
struct EnumNames<DimensionShape> {
  using enum DimensionShape;
  static constexpr std::pair<DimensionShape, const char*> values[] = {
      {kRing, "ring"}, {kMesh, "mesh"}, {kSwitch, "switch"}};
};

template <>
struct EnumNames<LineAlgorithm> {
  using enum LineAlgorithm;
  static constexpr std::pair<LineAlgorithm, const char*> values[] = {
      {kRing, "ring"}, {kDirect, "direct"}, {kHalvingDoubling, "halving_doubling"}};
};

template <>
struct EnumNames<AllReduceOrder> {
  using enum AllReduceOrder;
  static constexpr std::pair<AllReduceOrder, const char*> values[] = {
      {kHierarchical, "hierarchical"}, {kEachDimension, "each_dimension"}};
};

}  // namespace config

}  // namespace orrery
