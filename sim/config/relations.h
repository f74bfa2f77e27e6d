// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/config/schema.h"

namespace orrery::config {

/// fill(), which also tells how many of the errors that it reports are broken relations: values
/// that are right one by one, but not together.
int fill_and_count_broken_relations(void* object, const Node& completed, const Record& record,
                                    Diagnostics& diagnostics);

}  // namespace orrery::config
