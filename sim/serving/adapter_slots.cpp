// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/adapter_slots.h"

namespace orrery {

void AdapterSet::add(std::int32_t adapter) {
  if (adapter < 0) return;
  const auto place = std::lower_bound(adapters_.begin(), adapters_.end(), adapter);
  if (place == adapters_.end() || *place != adapter) adapters_.insert(place, adapter);
}

/// Those that are there are used first, so that none of them makes place.
Seconds AdapterSlots::use(const AdapterSet& adapters) {
  Seconds time{};
  std::vector<std::int32_t> absent;
  for (const std::int32_t adapter : adapters) {
    const auto place = std::find(resident_.begin(), resident_.end(), adapter);
    if (place == resident_.end()) {
      absent.push_back(adapter);
    } else {
      std::rotate(place, place + 1, resident_.end());
    }
  }
  for (const std::int32_t adapter : absent) {
    if (static_cast<std::int64_t>(resident_.size()) == rules_.slots)
      resident_.erase(resident_.begin());
    resident_.push_back(adapter);
    time += rules_.load;
    ++loads_;
  }
  return time;
}

}  // namespace orrery
