// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

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

/// A wrong command line.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A resource ran out: disk, memory, time, processes.
class ResourceError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Failure {
  ExitCode code;
  std::string message;
};

/// A simulation in another process failed in this way.
class PointFailure : public std::runtime_error {
 public:
  explicit PointFailure(const Failure& failure)
      : std::runtime_error(failure.message), code(failure.code) {}
  ExitCode code;
};

/// Sorts an exception into an exit code and the text for stderr.
Failure classify(const std::exception_ptr& error);

}  // namespace orrery
