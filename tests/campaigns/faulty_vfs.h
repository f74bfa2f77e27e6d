// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace orrery {

/// What happens at one of the writes of SQLite to its files: writes, syncs, truncations, deletions,
/// new files and growing shared memory.
enum class WriteFault {
  kDie,        ///< the process ends before it
  kTear,       ///< the process ends when half of it is written
  kFull,       ///< no space is left, for this and all that follow
  kErrorOnce,  ///< an I/O error, once
  kErrors      ///< I/O errors from then on
};

/// Exit code of a process that ended at a write.
inline constexpr int kDied = 77;

/// Makes write number `at` (from 1) of this process go wrong; counts writes in `count`. For the
/// rest of the process: call it in a child.
void break_write(WriteFault fault, long at, std::atomic<long>& count);

}  // namespace orrery
