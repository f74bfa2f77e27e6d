// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/costs.h"

namespace orrery {

const char* to_string(Bound bound) {
  switch (bound) {
    case Bound::kCompute:
      return "compute";
    case Bound::kVector:
      return "vector";
    case Bound::kMemory:
      return "memory";
    case Bound::kHostLink:
      return "host_link";
    case Bound::kLaunch:
      return "launch";
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
