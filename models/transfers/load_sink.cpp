// SPDX-License-Identifier: Apache-2.0
#include "models/transfers/load_sink.h"

namespace orrery {

BytesByKind bytes_by_kind(const LinkLoads& loads, const std::vector<Bundle>& bundles) {
  BytesByKind bytes;
  for (const LinkLoad& load : loads) {
    switch (bundles[load.link].kind) {
      case LinkKind::kOnPackage:
        bytes.on_package += Bytes(load.payload);
        break;
      case LinkKind::kScaleUp:
        bytes.scale_up += Bytes(load.payload);
        break;
      case LinkKind::kScaleOut:
        bytes.scale_out += Bytes(load.payload);
        break;
      case LinkKind::kHost:
        break;  // in the power of the host
    }
  }
  return bytes;
}

}  // namespace orrery
