// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/app/cli/verb.h"
#include "sim/app/sweeps/run/run_sweep.h"

namespace orrery {

/// Where the points of a sweep run, as the command line says.
struct ExecutionArguments {
  std::string executor, launcher;
  std::vector<std::string> over;  ///< settings "key=value"
  bool no_wait = false;

  void take(Options& options);

  /// Runs the points of a sweep where they are to run. None: tasks go on without this process,
  /// which has said how to go on with them, and `code` is what it returns.
  /// @param where a condition beside those of the file
  /// @param store closed after it where all is merged
  std::optional<SweepResults> run(const Sweep& sweep, const std::string& store_file,
                                  std::optional<ResultStore>& store, const SweepOptions& options,
                                  const std::string& where, ExitCode& code) const;
};

}  // namespace orrery
