// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/dimension_phases.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace orrery {

std::vector<DimensionPhase> dimension_phases(const Collective& collective) {
  using enum TransferKind;
  const std::size_t count = collective.dimensions.size();
  const bool both = collective.kind == kAllReduce, whole = both && collective.each_dimension;
  std::vector<DimensionPhase> phases;
  phases.reserve(2 * count);
  double share = 1;
  for (std::size_t d = 0; d < count; ++d) {
    phases.push_back({d, whole || (both && d + 1 == count) ? kAllReduce : kReduceScatter, share});
    if (!whole) share /= collective.dimensions[d]->size;
  }
  if (collective.kind == kAllGather) {
    std::reverse(phases.begin(), phases.end());
    for (DimensionPhase& phase : phases) phase.kind = kAllGather;
  }
  if (both && !whole) {
    for (std::size_t d = count - 1; d-- > 0;) phases.push_back({d, kAllGather, phases[d].share});
  }
  return phases;
}

int line_steps(const DimensionConfig& dimension) {
  switch (dimension.algorithm) {
    case LineAlgorithm::kRing:
      return dimension.size - 1;
    case LineAlgorithm::kDirect:
      return 1;
    case LineAlgorithm::kHalvingDoubling:
      break;
  }
  return static_cast<int>(std::bit_width(static_cast<unsigned>(dimension.size))) - 1;
}

int line_links(const DimensionConfig& dimension) {
  if (dimension.shape != DimensionShape::kRing || dimension.algorithm == LineAlgorithm::kRing)
    return line_steps(dimension) * dimension.links_of_step();
  const int n = dimension.size;
  if (dimension.algorithm == LineAlgorithm::kDirect) return n / 2;
  int links = 0;
  for (int apart = 1; apart < n; apart *= 2) links += apart;
  return links;
}

Bytes line_bytes(const DimensionConfig& dimension, Bytes bytes) {
  const int n = dimension.size;
  const Bytes part = bytes / n;
  if (dimension.algorithm == LineAlgorithm::kDirect && dimension.shape == DimensionShape::kMesh)
    return part;  // over a link for each
  const bool passes_others = dimension.shape == DimensionShape::kRing && n > 2;
  if (!passes_others || dimension.algorithm == LineAlgorithm::kRing) return part * (n - 1);
  // Each of the two ways round has half of all links that the parts cross.
  const double crossed = std::floor(0.25 * n * n);  // (n^2 - 1) / 4 of odd n
  if (dimension.algorithm == LineAlgorithm::kDirect) return part * crossed / 2;
  // In step t, 2^t messages of S/2^(t+1) cross the link amid 2^(t+1) ranks; those of the last, half
  // round the ring, go half each way.
  return bytes * ((line_steps(dimension) - 1) / 2.0 + 0.25);
}

}  // namespace orrery
