// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "sim/app/cli/progress.h"

namespace orrery {

/// Watches a long run: shows how far it is, and ends it at Ctrl-C. Only a run that asks is watched;
/// for others Ctrl-C is what it always is.
class RunWatch {
 public:
  RunWatch() = default;
  ~RunWatch();
  RunWatch(const RunWatch&) = delete;
  RunWatch& operator=(const RunWatch&) = delete;

  /// @param all how many there will be; 0: not known
  /// @return false once the user wants it to end
  bool go_on(std::size_t done, std::size_t all);

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> started_;
  std::optional<Progress> progress_;
};

}  // namespace orrery
