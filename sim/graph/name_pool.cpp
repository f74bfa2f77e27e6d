// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/name_pool.h"

#include <functional>
#include <limits>
#include <stdexcept>

namespace orrery {
namespace {

constexpr NameId kFree = ~NameId{0};

/// Nothing depends on its values but where a name is looked for.
std::size_t hash(std::string_view name) { return std::hash<std::string_view>()(name); }

}  // namespace

NameId NamePool::add(std::string_view name) {
  if (2 * (size() + 1) > slots_.size()) grow();
  NameId& slot = slots_[slot_of(name)];
  if (slot != kFree) return slot;
  if (text_.size() + name.size() > std::numeric_limits<std::uint32_t>::max())
    throw std::length_error("the names of a machine take more than 4 GiB");
  slot = static_cast<NameId>(size());
  text_.append(name);
  begin_.push_back(static_cast<std::uint32_t>(text_.size()));
  return slot;
}

/// Where a name is, or would be.
std::size_t NamePool::slot_of(std::string_view name) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash(name) & mask;
  while (slots_[slot] != kFree && at(slots_[slot]) != name) slot = (slot + 1) & mask;
  return slot;
}

void NamePool::grow() {
  std::size_t slots = 16;
  while (slots < 2 * (size() + 1)) slots *= 2;
  slots_.assign(slots, kFree);
  for (NameId id = 0; id < size(); ++id) slots_[slot_of(at(id))] = id;
}

}  // namespace orrery
