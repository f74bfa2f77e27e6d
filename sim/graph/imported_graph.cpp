// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/imported_graph.h"

namespace orrery {

const char* to_string(NodeKind kind) {
  switch (kind) {
    case NodeKind::kMarker:
      return "marker";
    case NodeKind::kHost:
      return "host";
    case NodeKind::kKernel:
      return "kernel";
    case NodeKind::kCollective:
      return "collective";
    case NodeKind::kSend:
      return "send";
    case NodeKind::kReceive:
      return "receive";
  }
  return "?";
}

}  // namespace orrery
