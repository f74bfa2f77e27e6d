// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/machine/accelerator_config.h"
#include "sim/machine/system_config.h"

namespace orrery {

namespace config {
class Changes;
}

/// A file says what a device is. A what-if (`--set`, an axis, `sensitivity`, or a value without a
/// source in a file that `extends` another) changes figures of the device, and others follow in
/// proportion, unless the same what-if writes them too:
///  - units: matrix, vector, special-function and exchange rates;
///  - clock or boost_clock: each other, these rates, core.shared_bandwidth and cache.bandwidth, as
///    one domain clocks them;
///  - compute.matrix_per_clock: the matrix rate of its precision;
///  - memory.stacks: bandwidth and capacity; bus_width and data_rate: the bandwidth;
///  - links of a port: its bandwidth.
/// Each change is told in `device.followed`. A memory bandwidth that is written alone drops the
/// organisation, but keeps its losses.
/// @param before the device that the what-if changed, to which older what-ifs were applied
/// @param changes which figures the what-if wrote
void follow_changes(AcceleratorConfig& device, const AcceleratorConfig& before,
                    const config::Changes& changes);

/// Keeps a device with a lower power cap as it would be without: its kernels were measured so.
void keep_without_limit(AcceleratorConfig& device);

/// Figures of a system that follow others which were changed, one line each: those of its
/// accelerator, and `all_in_power` where `extends` or `--set` changed the accelerators alone.
std::vector<std::string> followed(const SystemConfig& system);

/// stacks x bus_width x data_rate of a memory that has all three.
BytesPerSecond bandwidth_of_pins(const MemoryConfig& memory);

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
