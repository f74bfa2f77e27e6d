// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>

#include <csignal>
#include <string>
#include <vector>

#include "sim/app/cli/command_line.h"

namespace {

/// Memory that a point has given back is there for the next one: glibc gives all beyond 128 KiB to
/// the system at once, whose pages then cost 40 % of a sweep of points that simulate tiles.
void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kMebibyte = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 * kMebibyte);
  mallopt(M_TRIM_THRESHOLD, 128 * kMebibyte);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  keep_freed_memory();
  std::signal(SIGPIPE, SIG_DFL);  // `orrery ... | head` ends quietly
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit is an error of its writer
  return static_cast<int>(
      orrery::run_command_line(std::vector<std::string>(argv + 1, argv + argc)));
}
