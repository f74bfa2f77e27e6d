// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "host/measurement.h"

namespace orrery::measure {

enum class Action { kRun, kList, kVersion, kHelp };

/// What the command line asks for.
struct Options {
  Action action = Action::kRun;
  Depth depth = Depth::kQuick;
  std::string kernels;  ///< "1-6,gemm"; empty: all
  std::filesystem::path out = "measurements";
  int device = 0;
  std::optional<std::uint64_t> seed;  ///< seed of random inputs; drawn afresh when absent
  std::string system;                 ///< empty: from the GPU's name
};

/// The command line asks for something that there is not; the text is one line for its author.
class UsageError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// Reads the arguments after the program's name. @throws UsageError with a suggestion.
Options parse_options(const std::vector<std::string>& arguments);

/// The measurements that a list of numbers, ranges and names picks, in the order of `all`; every
/// one for an empty list. Those of `--priority` only are left out.
/// @throws UsageError for an item that picks none.
std::vector<const Measurement*> select(const std::string& list,
                                       const std::vector<Measurement>& all);

std::string help_text();

/// "0.1.0": the simulator's version.
std::string program_version();

}  // namespace orrery::measure
