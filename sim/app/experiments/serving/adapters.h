// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/experiments/serving/config.h"
#include "sim/serving/adapter_slots.h"

namespace orrery {

/// Slots of a rank of a group, and what an adapter takes to come from host memory: its part on each
/// rank over the rank's link, one pipeline stage after the other.
AdapterRules adapter_rules(const LlmConfig& llm, const ServingGroup& group);

/// @throws config::KeyError for requests with adapters that no slots are for, and for slots that no
/// engine fills or no link leads to, below "serving"
void require_adapters(const ServingConfig& serving);

/// Warns of slots whose adapters no request asks for. @param node the experiment
void warn_of_idle_slots(const ServingConfig& serving, const config::Node& node,
                        config::Diagnostics& diagnostics);

}  // namespace orrery
