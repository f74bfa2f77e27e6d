// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/units/units.h"

namespace orrery {

/// Different adapters, ascending.
class AdapterSet {
 public:
  /// A number below 0 is no adapter.
  void add(std::int32_t adapter);
  bool contains(std::int32_t adapter) const {
    return std::binary_search(adapters_.begin(), adapters_.end(), adapter);
  }
  std::int64_t size() const { return static_cast<std::int64_t>(adapters_.size()); }
  void clear() { adapters_.clear(); }
  auto begin() const { return adapters_.begin(); }
  auto end() const { return adapters_.end(); }

 private:
  std::vector<std::int32_t> adapters_;
};

/// Device memory for adapters, and the way from host memory, where all of them are.
struct AdapterRules {
  std::int64_t slots = 0;
  Seconds load{};  ///< time to bring one adapter into a slot
};

/// Adapters in the slots of a rank. The least recently used one makes place for another (vLLM's
/// LRUCacheLoRAModelManager).
class AdapterSlots {
 public:
  explicit AdapterSlots(const AdapterRules& rules) : rules_(rules) {}

  /// An iteration has these adapters, no more than there are slots.
  /// @return time to bring those that are in no slot, one after the other
  Seconds use(const AdapterSet& adapters);
  std::int64_t loads() const { return loads_; }

 private:
  AdapterRules rules_;
  std::vector<std::int32_t> resident_;  ///< the least recently used first
  std::int64_t loads_ = 0;
};

}  // namespace orrery
