// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/config/diagnostics.h"
#include "sim/config/node.h"

namespace orrery::config {

class Record;

/// Puts what a map says under other names of keys (Record::aliases) where the keys are. What is
/// given under two names is an error at the other name.
void rename_aliases(Node& node, const Record& record, Diagnostics& diagnostics);

}  // namespace orrery::config
