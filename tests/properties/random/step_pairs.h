// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/properties/random/laws.h"

namespace orrery {

/// A training step of any shipped model on any shipped system, with a precision of 8 bits or with
/// replicas that can be doubled.
RandomExperiment draw_pair(Draw& draw);

/// Compares a training step with the same step in bf16, and with the same step on twice the
/// replicas:
/// - in fp8 it is slower by no more than its casts take, and by what its products take longer;
/// - on twice the replicas, each with half of the batch, kernels, optimizer and host take no
///   longer: a step that is slower waits for collectives, which `explain` names.
Trial try_pair(const RandomExperiment& step);

}  // namespace orrery
