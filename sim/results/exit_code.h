// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace orrery {

/// What the process returns, as documented for users.
enum class ExitCode : int {
  kOk = 0,
  kBug = 1,          ///< ours, deadlocks included
  kUsage = 2,        ///< command line or configuration
  kPartial = 3,      ///< some points failed or a tolerance was exceeded
  kDeterminism = 4,  ///< one point that gave two results
  kInfeasible = 5,   ///< does not fit, too long to count, a link down without another way
  kResource = 6,     ///< disk full, time-out, out of memory
};

}  // namespace orrery
