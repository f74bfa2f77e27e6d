// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/dimension_phases.h"

#include <algorithm>
#include <bit>

namespace orrery {

std::vector<DimensionPhase> dimension_phases(const Collective& collective) {
  const std::size_t count = collective.dimensions.size();
  const bool both = collective.kind == TransferKind::kAllReduce;
  std::vector<DimensionPhase> phases;
  phases.reserve(2 * count);
  double share = 1;
  for (std::size_t d = 0; d < count; ++d) {
    if (both && collective.each_dimension) {
      phases.push_back({d, true, true, 1});
      continue;
    }
    phases.push_back({d, true, both && d + 1 == count, share});
    share /= collective.dimensions[d]->size;
  }
  if (collective.kind == TransferKind::kAllGather) {
    std::reverse(phases.begin(), phases.end());
    for (DimensionPhase& phase : phases) std::swap(phase.scatters, phase.gathers);
  }
  if (both && !collective.each_dimension) {
    for (std::size_t d = count - 1; d-- > 0;) phases.push_back({d, false, true, phases[d].share});
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

Bytes line_bytes(const DimensionConfig& dimension, Bytes bytes) {
  const Bytes part = bytes / dimension.size;
  const bool at_once = dimension.algorithm == LineAlgorithm::kDirect &&
                       dimension.shape == DimensionShape::kMesh;  // over a link for each
  return at_once ? part : part * (dimension.size - 1);
}

}  // namespace orrery
