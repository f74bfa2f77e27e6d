// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/experiments/collective_config.h"

namespace orrery {

/// Adds the keys of dispatch and combine, and what must hold among them.
config::Schema<CollectiveConfig> with_token_keys(config::Schema<CollectiveConfig> schema);

}  // namespace orrery
