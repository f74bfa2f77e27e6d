// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/name_pool.h"

#include <functional>
#include <limits>
#include <stdexcept>

namespace orrery {
namespace {

// A slot is two numbers: the name, and behind it the low bits of its hash, so that texts are
// compared where those are equal alone.
constexpr NameId kFree = ~NameId{0};
constexpr std::size_t kOfSlot = 2;

/// Nothing depends on its values but where a name is looked for.
std::uint32_t hash_of(std::string_view name) {
  return static_cast<std::uint32_t>(std::hash<std::string_view>()(name));
}

}  // namespace

NameId NamePool::add(std::string_view name) {
  if (2 * kOfSlot * (size() + 1) > slots_.size()) grow();
  const std::size_t slot = slot_of(name);
  if (slots_[slot] != kFree) return slots_[slot];
  if (text_.size() + name.size() > std::numeric_limits<std::uint32_t>::max())
    throw std::length_error("the names of a machine take more than 4 GiB");
  slots_[slot] = static_cast<NameId>(size());
  slots_[slot + 1] = hash_of(name);
  text_.append(name);
  begin_.push_back(static_cast<std::uint32_t>(text_.size()));
  return slots_[slot];
}

/// Where a name is, or would be.
std::size_t NamePool::slot_of(std::string_view name) const {
  const std::uint32_t hash = hash_of(name);
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = kOfSlot * hash & mask;
  while (slots_[slot] != kFree && (slots_[slot + 1] != hash || at(slots_[slot]) != name))
    slot = (slot + kOfSlot) & mask;
  return slot;
}

void NamePool::grow() {
  std::size_t slots = 16 * kOfSlot;
  while (slots < 2 * kOfSlot * (size() + 1)) slots *= 2;
  slots_.assign(slots, kFree);
  for (NameId id = 0; id < size(); ++id) {
    const std::uint32_t hash = hash_of(at(id));
    std::size_t slot = kOfSlot * hash & (slots - 1);
    while (slots_[slot] != kFree) slot = (slot + kOfSlot) & (slots - 1);
    slots_[slot] = id;
    slots_[slot + 1] = hash;
  }
}

}  // namespace orrery
