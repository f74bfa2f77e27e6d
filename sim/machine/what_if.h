// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/machine/accelerator_config.h"
#include "sim/machine/system_config.h"

namespace orrery {

/// A figure without a source is a what-if: somebody changed it (`--set`, a sweep, a plain value). A
/// data sheet's figures that hang together with it follow, so that one change is enough:
///  - units, clock or compute.matrix_per_clock: the matrix rates, units x clock x matrix_per_clock;
///    vector, special-function and exchange rates in proportion to units x clock;
///  - clock alone: boost_clock, core.shared_bandwidth and cache.bandwidth in proportion, as one
///    domain clocks them;
///  - memory.stacks, bus_width or data_rate: the bandwidth of the pins; stacks alone also the
///    capacity, by the stack.
/// What should follow and cannot, because too much was changed at once to tell what the part as
/// sold had, is told with the reason. A rate that is a what-if itself stays as it was written, and
/// a memory bandwidth that is one drops an organisation that does not give it, but keeps its
/// losses. What was changed is told in `device.followed`. The schema applies it to every
/// accelerator that is read; not to be applied twice.
void follow_changes(AcceleratorConfig& device);

/// Figures of a system that follow others which were changed, one line each: those of its
/// accelerator, and `all_in_power` where `extends` or `--set` changed the accelerators alone.
std::vector<std::string> followed(const SystemConfig& system);

/// What is wrong with matrix rates whose figures all have sources: units x clock x matrix_per_clock
/// must be the rate. Empty: nothing.
std::string per_clock_fault(const ComputeConfig& compute);

/// What is wrong with systolic arrays: their multiply-adds must be the matrix_per_clock of one
/// precision. Empty: nothing.
std::string arrays_fault(const ComputeConfig& compute);

/// What is wrong with the organisation of a memory: pins times the rate of a pin must be the
/// bandwidth. A wrong generation or number of stacks shows here.
std::string organisation_fault(const MemoryConfig& memory);

}  // namespace orrery
