// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>

namespace orrery {

/// A file that says that this process lives and how many points it has done. Its time is renewed
/// every five seconds, however long a point takes, by a process that ends with this one.
class Heartbeat {
 public:
  /// Where the file cannot be written, nothing is said.
  explicit Heartbeat(const std::filesystem::path& path);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  /// At most once a second.
  void tell(std::uint64_t points);

 private:
  int file_ = -1;
  pid_t beating_ = 0;
  std::chrono::steady_clock::time_point told_;
};

}  // namespace orrery
