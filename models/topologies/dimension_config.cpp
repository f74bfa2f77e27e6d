// SPDX-License-Identifier: Apache-2.0
#include "models/topologies/dimension_config.h"

#include <bit>

#include "sim/config/schema.h"

namespace orrery {
namespace {

using config::between;
using config::Schema;

const config::Bounds kDimensionRate = between(BytesPerSecond(0), BytesPerSecond(1e15));
const config::Bounds kDimensionTime = between(Seconds(0), Seconds(1));

}  // namespace

int DimensionConfig::links_of_rank() const {
  switch (shape) {
    case DimensionShape::kRing:
      return size < 3 ? size - 1 : 2;
    case DimensionShape::kMesh:
      return size - 1;
    case DimensionShape::kSwitch:
      break;
  }
  return 1;
}

const Schema<DimensionConfig>& DimensionConfig::schema() {
  using C = DimensionConfig;
  static const auto schema =
      Schema<C>("dimension", "one dimension of a network of several")
          .required("shape", &C::shape, "how the ranks of a line are joined")
          .required("size", &C::size, "ranks of a line", between(1, 1e6))
          .required("bandwidth", &C::bandwidth, "line rate of one link, one way [GB/s]",
                    between(BytesPerSecond(1), BytesPerSecond(1e15)))
          .optional("latency", &C::latency, "latency of one link [ns]", kDimensionTime)
          .optional("algorithm", &C::algorithm, "how a collective goes along a line")
          .optional("sum_rate", &C::sum_rate,
                    "rate at which a rank sums what it receives; 0: sums are free [GB/s]",
                    kDimensionRate)
          .check(
              "halving_doubling needs a size that is a power of two",
              [](const C& c) {
                return c.algorithm != LineAlgorithm::kHalvingDoubling ||
                       std::has_single_bit(static_cast<unsigned>(c.size));
              },
              "size");
  return schema;
}

const Schema<NetworkDimensionsConfig>& NetworkDimensionsConfig::schema() {
  using C = NetworkDimensionsConfig;
  static const auto schema =
      Schema<C>("dimensions", "dimensions of a network, and how collectives go through them")
          .required("axes", &C::axes, "rings, meshes and switches; the first varies fastest")
          .optional("chunks", &C::chunks, "parts of a buffer that follow each other",
                    between(1, 1e4))
          .optional("start", &C::start, "what a chunk waits at the begin of each phase [ns]",
                    kDimensionTime)
          .optional("all_reduce", &C::all_reduce,
                    "reduce-scatters up the dimensions and all-gathers down, or whole all-reduces "
                    "in one after the other")
          .check(
              "a network has one dimension or more", [](const C& c) { return !c.axes.empty(); },
              "axes");
  return schema;
}

}  // namespace orrery
