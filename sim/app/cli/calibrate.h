// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/app/questions/base/verb.h"

namespace orrery {

struct CalibrateArguments {
  std::vector<std::string> files;
  std::vector<std::string> systems;  ///< fit protocols of these; empty: kernels of accelerators
  std::vector<std::string> accelerators;  ///< empty: all that the tables have
  std::vector<std::string> only;          ///< fits to make; empty: all
  std::vector<std::string> where;         ///< conditions that rows meet: "version=0.24.0"
  std::string engine;                     ///< fit the host of this serving engine instead
  std::vector<std::string> fit_on;        ///< MODEL@SYSTEM of its rows to fit on
  std::string given;                      ///< what its host is known to take; empty: nothing
  std::vector<std::string> versions;      ///< what versions of it begin with; empty: all
  std::string models;                     ///< folder of Hugging Face configurations; empty: none
  std::string output;                     ///< empty: a folder of the library
  std::string source, date;
  std::string model = "tiles";  ///< model of kernels: "tiles" or "roofline"
  bool check = false;           ///< compare with the file that is there, write nothing

  void take(Options& options);
  Answer answer() const;

  /// Date of the measurement, and what the calibration was made with.
  std::string measured() const;
  std::string made_with() const;
  /// The file of a calibration: what -o says, or in a folder of the library.
  std::filesystem::path file_of(const std::string& name, const std::string& folder) const;
  /// @throws UsageError where one output file is given for several
  void require_files_for(std::size_t calibrations, const std::string& of) const;
};

/// A file that is there is written over only where an earlier calibration wrote it.
/// @param key that its own files begin with, such as "calibration"
/// @throws UsageError where it is another's
void require_own_file(const std::filesystem::path& path, const std::string& key);

/// Writes a calibration, and says so on standard error.
void write_calibration(const std::filesystem::path& path, const std::string& yaml);

/// Fits the protocols of systems.
Answer calibrate_collectives(const CalibrateArguments& arguments);

/// Fits the host of a serving engine.
Answer calibrate_engine(const CalibrateArguments& arguments);

}  // namespace orrery
