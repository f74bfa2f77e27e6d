// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace orrery {

bool stderr_is_terminal() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) != 0 && !(term != nullptr && std::string_view(term) == "dumb");
}

Progress::Progress(std::string what, std::size_t total)
    : what_(std::move(what)),
      total_(total),
      terminal_(stderr_is_terminal()),
      started_(Clock::now()) {}

Progress::~Progress() {
  if (terminal_ && done_ > 0) std::fputs("\r\033[K", stderr);
}

void Progress::reach(std::size_t done, const std::string& label) {
  done_ = done;
  if (!terminal_) return;
  const double elapsed = std::chrono::duration<double>(Clock::now() - started_).count();
  const double left = elapsed / static_cast<double>(std::max<std::size_t>(done_, 1)) *
                      static_cast<double>(total_ - done_);
  std::fprintf(stderr, "\r\033[K%s: %zu of %zu, %.0f s left (%s)", what_.c_str(), done_, total_,
               left, label.c_str());
  std::fflush(stderr);
}

}  // namespace orrery
