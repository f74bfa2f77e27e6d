// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/costs.h"

namespace orrery {

const char* to_string(Bound bound) {
  switch (bound) {
    case Bound::kTensor:
      return "tensor";
    case Bound::kVector:
      return "vector";
    case Bound::kCache:
      return "L2";
    case Bound::kMemory:
      return "HBM";
    case Bound::kHost:
      return "host";
    case Bound::kEngine:
      return "copy engine";
    case Bound::kLatency:
      return "latency";
  }
  return "?";
}

const char* to_string(Fidelity fidelity) {
  switch (fidelity) {
    case Fidelity::kAuto:
      return "auto";
    case Fidelity::kClosed:
      return "closed";
    case Fidelity::kTile:
      return "tile";
  }
  return "?";
}

const char* to_string(Provenance provenance) {
  switch (provenance) {
    case Provenance::kMeasured:
      return "measured";
    case Provenance::kCalibrated:
      return "calibrated";
    case Provenance::kAnalytic:
      return "analytic";
    case Provenance::kExtrapolated:
      return "extrapolated";
  }
  return "?";
}

}  // namespace orrery
