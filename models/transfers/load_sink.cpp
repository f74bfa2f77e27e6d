// SPDX-License-Identifier: Apache-2.0
#include "models/transfers/load_sink.h"

namespace orrery {

BytesByKind bytes_by_kind(const LinkLoads& loads, const std::vector<Bundle>& bundles) {
  BytesByKind bytes;
  for (const LinkLoad& load : loads) {
    const Bundle& bundle = bundles[load.link];
    const Bytes whole_routes = Bytes(load.payload) * bundle.half_routes / 2;
    if (bundle.kind == LinkKind::kScaleUp) bytes.scale_up += whole_routes;
    if (bundle.kind == LinkKind::kScaleOut) bytes.scale_out += whole_routes;
    // Others are in the power of the package, or of the host.
  }
  return bytes;
}

}  // namespace orrery
