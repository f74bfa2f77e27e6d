// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/results/answer.h"
#include "workloads/models/config/model_config.h"

namespace orrery {

/// A model in one screen: layers by kind, parameters by module, how its checkpoint stores them,
/// bytes of cache and state of a token and a sequence, FLOPs of a token at some contexts.
Answer model_details(const ModelConfig& model);

}  // namespace orrery
