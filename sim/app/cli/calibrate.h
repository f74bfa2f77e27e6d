// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/app/cli/verb.h"

namespace orrery {

/// What `orrery calibrate` is asked for.
struct CalibrateArguments {
  std::vector<std::string> files;
  std::vector<std::string> systems;  ///< fit protocols of these; empty: kernels of accelerators
  std::vector<std::string> accelerators;  ///< empty: all that the tables have
  std::vector<std::string> only;          ///< fits to make; empty: all
  std::string engine;                     ///< fit the host of this serving engine instead
  std::vector<std::string> fit_on;        ///< MODEL@SYSTEM of its rows to fit on
  std::string given;                      ///< what its host is known to take; empty: nothing
  std::vector<std::string> versions;      ///< what versions of it begin with; empty: all
  std::string models;                     ///< folder of Hugging Face configurations; empty: none
  std::string output;                     ///< empty: a folder of the library
  std::string source, date;
  std::string model = "tiles";  ///< model of kernels: "tiles" or "roofline"
  bool check = false;           ///< compare with the file that is there, write nothing
  bool json = false;

  void take(Options& options);
  ExitCode run() const;
};

/// A file that is there is written over only where an earlier calibration wrote it.
/// @param key that its own files begin with, such as "calibration"
/// @throws UsageError where it is another's
void require_own_file(const std::string& path, const std::string& key);

/// Fits the protocols of systems.
ExitCode calibrate_collectives_command(const CalibrateArguments& arguments);

/// Fits the host of a serving engine.
ExitCode calibrate_engine_command(const CalibrateArguments& arguments);

}  // namespace orrery
