// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/name_pool.h"

#include <functional>
#include <limits>
#include <stdexcept>

namespace orrery {
namespace {

constexpr NameId kFree = ~NameId{0};

/// Nothing depends on its values but where a name is looked for.
std::uint32_t hash_of(std::string_view name) {
  return static_cast<std::uint32_t>(std::hash<std::string_view>()(name));
}

}  // namespace

NameId NamePool::add(std::string_view name) {
  if (2 * (size() + 1) > slots_.size()) grow();
  const std::uint32_t hash = hash_of(name);
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  for (; slots_[slot].id != kFree; slot = (slot + 1) & mask)
    if (slots_[slot].hash == hash && at(slots_[slot].id) == name) return slots_[slot].id;
  if (text_.size() + name.size() > std::numeric_limits<std::uint32_t>::max())
    throw std::length_error("the names of a machine take more than 4 GiB");
  slots_[slot] = {hash, static_cast<NameId>(size())};
  text_.append(name);
  begin_.push_back(static_cast<std::uint32_t>(text_.size()));
  return slots_[slot].id;
}

void NamePool::grow() {
  std::size_t slots = 16;
  while (slots < 2 * (size() + 1)) slots *= 2;
  slots_.assign(slots, {});
  for (NameId id = 0; id < size(); ++id) {
    const std::uint32_t hash = hash_of(at(id));
    std::size_t slot = hash & (slots - 1);
    while (slots_[slot].id != kFree) slot = (slot + 1) & (slots - 1);
    slots_[slot] = {hash, id};
  }
}

}  // namespace orrery
