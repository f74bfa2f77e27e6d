// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/properties/random/laws.h"

namespace orrery {

/// A group of any engine and version that serves any shipped model, with the keys written that
/// engines choose by the memory of a device.
RandomExperiment draw_start(Draw& draw);

/// The memory of a start: more device memory, and a cache in fewer bits, hold no fewer tokens;
/// twice the tensor parallel ranks need no more weights, activations and cache each. What is left
/// out of the last law by name: contexts, communicators and graphs, which ranks bring.
Trial try_start(const RandomExperiment& experiment);

/// The memory of a training step: twice the tensor parallel ranks, a further ZeRO stage and more
/// recomputation need no more memory in each rank, twice the micro-batch needs no less.
/// @param draw which of these is looked at
void inspect_memory(const RandomExperiment& experiment, const LoadedExperiment& loaded, Draw& draw,
                    Trial& trial);

}  // namespace orrery
