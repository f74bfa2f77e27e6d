// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace orrery {

/// Standard error of a worker, kept in memory that outlives it: what it said of its last point.
class WorkerStderr {
 public:
  /// Where there is no such memory, a worker goes on saying what it says to everyone.
  WorkerStderr();
  ~WorkerStderr();
  WorkerStderr(const WorkerStderr&) = delete;
  WorkerStderr& operator=(const WorkerStderr&) = delete;

  /// In the worker: standard error goes here from now on.
  void redirect() const;
  /// In the worker, before each point: what was said of others is dropped.
  static void begin_point();
  /// In the worker: the last 4 KB that was said of the present point.
  static std::string said_of_point();
  /// In the parent: the last 4 KB, characters as a terminal may have them; says them to everyone,
  /// and begins anew.
  std::string take() const;

 private:
  int file_;
};

}  // namespace orrery
