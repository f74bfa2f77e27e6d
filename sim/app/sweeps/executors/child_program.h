// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace orrery {

struct ProgramEnd {
  int code = -1;  ///< exit code; -1: it was not found, was ended by a signal or took too long
  std::string out, err;
};

/// Runs a program of the path and waits for it. It is ended when it takes longer than `limit`.
ProgramEnd run_program(const std::vector<std::string>& words, std::chrono::seconds limit);

/// Words as a shell has to be given them.
std::string shell_words(const std::vector<std::string>& words);

}  // namespace orrery
