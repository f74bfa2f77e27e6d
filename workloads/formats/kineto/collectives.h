// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "workloads/formats/communicators.h"
#include "workloads/formats/kineto/trace.h"

namespace orrery::kineto {

/// A collective or message, as a node of a graph.
struct MessageNode {
  NodeKind kind = NodeKind::kCollective;
  ImportedMessage message;
};

/// What a recorded collective sends, in which group; nothing where the trace does not say enough:
/// the kind, the bytes, or who takes part.
std::optional<MessageNode> message_of(const Collective& collective, const Header& header,
                                      Communicators& communicators);

}  // namespace orrery::kineto
