// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <csignal>
#include <filesystem>

namespace orrery {

/// While it lives, signals that ask this process to end only note it.
class LeavesOnSignals {
 public:
  LeavesOnSignals();
  ~LeavesOnSignals();
  LeavesOnSignals(const LeavesOnSignals&) = delete;
  LeavesOnSignals& operator=(const LeavesOnSignals&) = delete;

  static bool leaves();

 private:
  static constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> before_{};
};

/// Only one process at a time gives and awaits the tasks of a folder: it holds a lock that ends
/// with it. A folder without tasks is removed afterwards. @throws ResourceError where another one
/// does
class AwaitsAlone {
 public:
  explicit AwaitsAlone(const std::filesystem::path& folder);
  ~AwaitsAlone();
  AwaitsAlone(const AwaitsAlone&) = delete;
  AwaitsAlone& operator=(const AwaitsAlone&) = delete;

 private:
  std::filesystem::path lock() const { return folder_ / "lock"; }

  std::filesystem::path folder_;
  int file_ = -1;
};

}  // namespace orrery
