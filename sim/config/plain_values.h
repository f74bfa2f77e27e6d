// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/config/schema.h"

namespace orrery::config {

/// The map that a what-if changed, of the maps that `node` was laid over. A `--set`, or a file that
/// `extends` another, is a what-if if it writes a Fact without a source; otherwise it describes
/// another device. Null if no what-if changed the map.
const Node* changed_by_what_if(const Node& node, const Record& record);

}  // namespace orrery::config
