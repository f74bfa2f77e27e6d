// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/app/experiments/core/exit_codes.h"

namespace orrery {

/// Does what a command line asks for: results go to standard output, everything else to standard
/// error. @param words without the name of the program
ExitCode run_command_line(std::vector<std::string> words);

}  // namespace orrery
