// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/base/clock.h"

#include <fmt/chrono.h>

#include <chrono>

namespace orrery {

std::string utc_now() {
  using namespace std::chrono;
  const auto now = floor<milliseconds>(system_clock::now());
  const auto second = floor<seconds>(now);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(system_clock::to_time_t(second)),
                     (now - second).count());
}

}  // namespace orrery
