// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

using NameId = std::uint32_t;

/// Texts, each once, numbered in the order in which they came. For the names of a machine, of which
/// 100,000 nodes have a million, each at the ends of several links.
class NamePool {
 public:
  /// The number of a name, which may be new.
  NameId add(std::string_view name);
  std::string_view at(NameId id) const {
    return std::string_view(text_).substr(begin_[id], begin_[id + 1] - begin_[id]);
  }
  std::size_t size() const { return begin_.size() - 1; }
  /// Gives back the room by which names are found, until the next one is added.
  void trim() { slots_ = {}; }

 private:
  /// A name, and the low bits of its hash: texts are compared where those are equal alone.
  struct Slot {
    std::uint32_t hash = 0;
    NameId id = ~NameId{0};
  };
  void grow();

  std::string text_;  ///< all names without separators
  std::vector<std::uint32_t> begin_ = {0};
  std::vector<Slot> slots_;  ///< open addressing
};

}  // namespace orrery
