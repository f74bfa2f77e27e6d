// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

#include "sim/results/exit_code.h"

namespace orrery {

/// A wrong command line.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A resource ran out: disk, memory, time, processes.
class ResourceError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// @throws ResourceError with what errno says
[[noreturn]] void throw_errno(const std::string& what);

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
