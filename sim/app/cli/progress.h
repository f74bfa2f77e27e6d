// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace orrery {

/// Whether standard error is a terminal that can renew a line.
bool stderr_is_terminal();

/// Progress with an ETA: a line that renews itself on a terminal, and nothing in a file.
class Progress {
 public:
  Progress(std::string what, std::size_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// One more is done; `label` names what comes next or was last.
  void step(const std::string& label) { reach(done_ + 1, label); }
  /// So many are done, of all at most.
  void reach(std::size_t done, const std::string& label);

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  std::size_t total_;
  std::size_t done_ = 0;
  bool terminal_;
  Clock::time_point started_;
};

}  // namespace orrery
