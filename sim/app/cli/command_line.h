// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/questions/base/verb.h"

namespace orrery {

/// The work that the command line asks for, ready to be done.
using Command = std::function<ExitCode()>;
/// Lets a verb take its options. A question prints its answer.
Command command_of(const Verb& verb, Options& options);

/// Does what a command line asks for: results go to standard output, everything else to standard
/// error. @param words without the name of the program
ExitCode run_command_line(std::vector<std::string> words);

}  // namespace orrery
