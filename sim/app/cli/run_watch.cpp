// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/run_watch.h"

#include <csignal>

namespace orrery {
namespace {

/// Shorter runs show nothing.
constexpr std::chrono::seconds kQuiet{2};

volatile std::sig_atomic_t ctrl_c = 0;

void note_ctrl_c(int) { ctrl_c = 1; }

}  // namespace

RunWatch::~RunWatch() {
  if (started_) std::signal(SIGINT, SIG_DFL);
}

bool RunWatch::go_on(std::size_t done, std::size_t all) {
  const auto now = Clock::now();
  if (!started_) {
    started_ = now;
    std::signal(SIGINT, note_ctrl_c);
  }
  if (all > 0 && done <= all && now - *started_ > kQuiet) {
    if (!progress_) progress_.emplace("requests", all);
    progress_->reach(done, "answered");
  }
  return ctrl_c == 0;
}

}  // namespace orrery
