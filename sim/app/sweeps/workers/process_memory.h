// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace orrery {

/// Bytes that processes may still take before something has to go: what the machine has available,
/// or the memory group of this process where that leaves less.
std::int64_t available_memory();

/// Resident bytes of a process; 0: this one. 0 where it is gone.
std::int64_t resident_bytes(pid_t process);

/// Begins the largest resident memory of this process anew (getrusage), so that it is that of one
/// point; where the kernel does not let it, it stays that of the whole process.
void begin_peak_memory();

/// Where memory runs out, the kernel is to end this process rather than another one.
void go_first_without_memory();

}  // namespace orrery
