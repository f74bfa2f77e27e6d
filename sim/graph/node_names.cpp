// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/node_names.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>

namespace orrery {
namespace {

constexpr NodeNames::Number kNoName = ~NodeNames::Number{0};

}  // namespace

NodeNames::Number NodeNames::append(std::string_view name) {
  if (text_.size() + name.size() > std::numeric_limits<std::uint32_t>::max())
    throw std::length_error("the names of a graph take more than 4 GiB");
  text_.append(name);
  begin_.push_back(static_cast<std::uint32_t>(text_.size()));
  return static_cast<Number>(size() - 1);
}

NodeNames::Number NamesInStream::find_or_append(NodeNames& names, std::string_view name) {
  if (2 * (used_ + 1) > slots_.size()) grow();
  // Nothing depends on its values but where a name is looked for.
  const auto hash = static_cast<std::uint32_t>(std::hash<std::string_view>()(name));
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  for (; slots_[slot].number != kNoName; slot = (slot + 1) & mask) {
    if (slots_[slot].hash != hash || names.at(slots_[slot].number) != name) continue;
    ++known_;
    return slots_[slot].number;
  }
  slots_[slot] = {hash, names.append(name)};
  ++used_;
  return slots_[slot].number;
}

void NamesInStream::grow() {
  std::vector<Slot> slots(std::max<std::size_t>(16, 2 * slots_.size()));
  const std::size_t mask = slots.size() - 1;
  for (const Slot& known : slots_) {
    if (known.number == kNoName) continue;
    std::size_t slot = known.hash & mask;
    while (slots[slot].number != kNoName) slot = (slot + 1) & mask;
    slots[slot] = known;
  }
  slots_ = std::move(slots);
}

NodeNames::Number NamesInStream::add(NodeNames& names, std::string_view name) {
  if (seen_ >= kLook) {
    if (++seen_ == kLook + kAppend) seen_ = known_ = 0;
    return names.append(name);
  }
  const NodeNames::Number number = find_or_append(names, name);
  if (++seen_ == kLook && known_ > kMostKnown) seen_ = known_ = 0;
  return number;
}

}  // namespace orrery
