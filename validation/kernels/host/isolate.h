// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace orrery::measure {

/// How work in a process of its own ended.
struct Ending {
  enum class Kind { kReturned, kThrew, kCrashed, kTimedOut };
  Kind kind = Kind::kReturned;
  std::string text;  ///< what the work returned, or what went wrong
};

/// Runs `work` in a child process and waits at most `limit_s` for it, then kills it. A kernel that
/// reads a wrong address spoils its CUDA context for good, and one that waits for ever never hands
/// the GPU back: either takes only its own process along. The caller must not have used CUDA, whose
/// state does not survive a fork. @throws std::system_error when no process can be started.
Ending isolate(const std::function<std::string()>& work, double limit_s);

}  // namespace orrery::measure
