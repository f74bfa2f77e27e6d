// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/router.h"

#include <algorithm>

namespace orrery {

std::size_t least_loaded(std::span<const InstanceView> instances) {
  const auto load = [](const InstanceView& i) { return 4 * i.waiting + i.running; };
  const auto least = std::min_element(
      instances.begin(), instances.end(),
      [&](const InstanceView& a, const InstanceView& b) { return load(a) < load(b); });
  return static_cast<std::size_t>(least - instances.begin());
}

}  // namespace orrery
