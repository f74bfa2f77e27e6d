// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/clock.h"

#include <array>
#include <chrono>
#include <ctime>

namespace orrery {

std::string utc_now() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

}  // namespace orrery
