// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/config/diagnostics.h"
#include "sim/machine/accelerator_config.h"

namespace orrery {

/// What of a device can hardly be true together. No error: a part may be odd, and a what-if is
/// meant to be. Data sheets are misread in a few ways, and each leaves a trace:
/// - units x clock x FLOP per clock is not the rate; twice or half of it is a rate of sparse
/// operands;
/// - stacks x pins x data rate is not the bandwidth;
/// - fp8 at four times formats of 16 bits, fp4 at four times those of 8: sparse beside dense;
/// - a link that is faster than its generation: both ways taken for one, or bits for bytes;
/// - a product at full rate, with the memory streaming, draws less than 0.5 or more than 1.5 of the
///   design power.
/// @param within the path of the device in what the user wrote: "system.accelerator."
/// @return one finding a doubt, with the key to point to
std::vector<config::KeyError> doubts(const AcceleratorConfig& device,
                                     const std::string& within = {});

/// A link of a known kind, one way, as its standard has it; 0: unknown kind.
BytesPerSecond link_rate(const std::string& kind);

}  // namespace orrery
