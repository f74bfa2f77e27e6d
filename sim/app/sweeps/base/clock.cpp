// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/base/clock.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>

namespace orrery {

std::string utc_now() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto rest = now - std::chrono::system_clock::from_time_t(seconds);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(
      text.data() + size, text.size() - size, ".%03dZ",
      static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(rest).count()));
  return text.data();
}

}  // namespace orrery
