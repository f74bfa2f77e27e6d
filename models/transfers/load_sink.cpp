// SPDX-License-Identifier: Apache-2.0
#include "models/transfers/load_sink.h"

namespace orrery {

BytesByKind bytes_by_kind(const LinkLoads& loads, const std::vector<Bundle>& bundles) {
  BytesByKind bytes;
  for (const LinkLoad& load : loads) {
    const Bundle& bundle = bundles[load.link];
    const Bytes whole_routes = Bytes(load.payload) * bundle.half_routes / 2;
    switch (bundle.kind) {
      case LinkKind::kOnPackage:
        break;  // in the power of the package
      case LinkKind::kScaleUp:
        bytes.scale_up += whole_routes;
        break;
      case LinkKind::kScaleOut:
        bytes.scale_out += whole_routes;
        break;
      case LinkKind::kHost:
        break;  // in the power of the host
    }
  }
  return bytes;
}

}  // namespace orrery
