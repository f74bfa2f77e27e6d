// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace orrery {

class ByteSource;  // sim/config/byte_source.h

/// The text of a JSON file as a stream for RapidJSON, mended on the way. Profilers write names as
/// they come: control characters, wrong escapes (pytorch/pytorch issue 130622), numbers like
/// `-nan`. Control characters become spaces, wrong escapes question marks, what is no number an
/// empty text. Texts end after 64 KiB, so that none fills the memory.
class MendedJson {
 public:
  using Ch = char;

  /// What has been mended so far.
  struct Counts {
    std::uint64_t control_characters = 0;
    std::uint64_t escapes = 0;      ///< escapes that JSON does not have
    std::uint64_t not_numbers = 0;  ///< NaN and infinities
    std::uint64_t long_texts = 0;   ///< texts that were cut
  };

  explicit MendedJson(ByteSource& source);

  // RapidJSON's names. NOLINTBEGIN(readability-identifier-naming)
  Ch Peek() const { return at_ == end_ ? '\0' : *at_; }
  Ch Take() {
    if (at_ == end_) return '\0';
    const Ch c = *at_++;
    if (at_ == end_) refill();
    return c;
  }
  std::size_t Tell() const { return offset(); }
  // Of streams that are written; readers only name them.
  static Ch* PutBegin() { return nullptr; }
  static void Put(Ch /*c*/) {}
  static std::size_t PutEnd(Ch* /*begin*/) { return 0; }
  // NOLINTEND(readability-identifier-naming)

  /// Bytes of the file, unpacked, before the next character.
  std::size_t offset() const {
    return begin_offset_ + static_cast<std::size_t>(at_ - text_.data());
  }
  bool at_end() const { return at_ == end_; }
  const Counts& counts() const { return counts_; }

 private:
  void refill();
  bool read_more();
  void mend(std::size_t limit);
  std::size_t inside(std::size_t at, std::size_t limit);
  std::size_t outside(std::size_t at, std::size_t limit);
  std::size_t not_a_number(std::size_t at);
  std::size_t escape(std::size_t at);
  bool has_digits(std::size_t at) const;
  char code(std::size_t at) const { return at < text_.size() ? text_[at] : '\0'; }
  [[noreturn]] void refuse(std::size_t at, const std::string& reason) const;

  ByteSource& source_;
  std::vector<char> text_;        ///< read and not taken; mended before `mended_`
  std::size_t begin_offset_ = 0;  ///< where text_ begins in the file
  std::size_t mended_ = 0;
  std::size_t cut_from_ = 0;  ///< where what is left out begins, while `cutting_`
  bool whole_ = false;        ///< the end of the file is in `text_`
  bool in_text_ = false;
  bool cutting_ = false;         ///< the text is too long: its rest is left out
  std::size_t text_length_ = 0;  ///< length of the text, number or word that `mended_` is in
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  Counts counts_;
};

}  // namespace orrery
