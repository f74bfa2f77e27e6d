// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <string>
#include <vector>

#include "sim/app/cli/command_line.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);  // `orrery ... | head` ends quietly
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit is an error of its writer
  return static_cast<int>(
      orrery::run_command_line(std::vector<std::string>(argv + 1, argv + argc)));
}
