// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// Texts by number, one behind the other. Equal ones may have one number or several.
class NodeNames {
 public:
  using Number = std::uint32_t;

  /// @throws std::length_error where all take more than 4 GiB
  Number append(std::string_view name);
  std::string_view at(Number number) const {
    return std::string_view(text_).substr(begin_[number], begin_[number + 1] - begin_[number]);
  }
  std::size_t size() const { return begin_.size() - 1; }

 private:
  std::string text_;  ///< all names without separators
  std::vector<std::uint32_t> begin_ = {0};
};

/// Gives names their numbers while a file streams by, equal ones the same. Where hardly any comes
/// twice it only looks whether that is still so now and then, since to look for a name takes as
/// long as all else that is done for a node.
class NamesInStream {
 public:
  NodeNames::Number add(NodeNames& names, std::string_view name);

 private:
  static constexpr std::uint32_t kLook = 1024;            ///< names that are looked for
  static constexpr std::uint32_t kAppend = 15 * kLook;    ///< names that are not, thereafter
  static constexpr std::uint32_t kMostKnown = kLook / 8;  ///< names of kLook, at most, for that

  /// A name, and the low bits of its hash: texts are compared where those are equal alone.
  struct Slot {
    std::uint32_t hash = 0;
    NodeNames::Number number = ~NodeNames::Number{0};
  };
  NodeNames::Number find_or_append(NodeNames& names, std::string_view name);
  void grow();

  std::vector<Slot> slots_;             ///< open addressing
  std::size_t used_ = 0;                ///< slots that have a name
  std::uint32_t seen_ = 0, known_ = 0;  ///< names of this turn, and those of them that were known
};

}  // namespace orrery
