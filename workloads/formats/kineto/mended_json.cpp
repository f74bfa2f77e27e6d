// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/kineto/mended_json.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/config/byte_source.h"
#include "sim/config/diagnostics.h"

namespace orrery {
namespace {

constexpr std::size_t kMostText = 65536;
constexpr std::size_t kMostNumber = 4096;
/// Bytes that are looked at ahead: two \uXXXX.
constexpr std::size_t kAhead = 16;

/// What characters between texts are.
enum class Outside : std::uint8_t { kWord, kSign, kSeparator, kQuote, kControl };
constexpr std::array<Outside, 256> outside_kinds() {
  std::array<Outside, 256> kinds{};  // words and numbers
  for (std::size_t c = 0; c < 0x20; ++c) kinds[c] = Outside::kControl;
  for (const char c : std::string_view(" \t\r\n,:[]{}"))
    kinds[static_cast<unsigned char>(c)] = Outside::kSeparator;
  for (const char c : std::string_view("-iInN"))  // of -Infinity, nan
    kinds[static_cast<unsigned char>(c)] = Outside::kSign;
  kinds['"'] = Outside::kQuote;
  return kinds;
}
constexpr std::array<Outside, 256> kOutside = outside_kinds();

/// Characters inside texts that need more than passing on.
constexpr std::array<bool, 256> special_characters() {
  std::array<bool, 256> special{};
  for (std::size_t c = 0; c < 0x20; ++c) special[c] = true;
  special['"'] = special['\\'] = true;
  return special;
}
constexpr std::array<bool, 256> kSpecial = special_characters();

constexpr bool is_hexadecimal(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

}  // namespace

MendedJson::MendedJson(ByteSource& source) : source_(source) {
  begin_offset_ = static_cast<std::size_t>(source_.offset());
  at_ = end_ = text_.data();
  refill();
}

void MendedJson::refuse(std::size_t at, const std::string& reason) const {
  refuse_at_byte(source_.path(), begin_offset_ + at, reason);
}

bool MendedJson::read_more() {
  if (whole_) return false;
  const std::string_view more = source_.next();
  whole_ = more.empty();
  text_.insert(text_.end(), more.begin(), more.end());
  return true;
}

void MendedJson::refill() {
  // What was mended last has been taken.
  text_.erase(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(mended_));
  begin_offset_ += mended_;
  mended_ = 0;
  while (mended_ == 0) {
    const std::size_t limit = whole_ ? text_.size() : text_.size() - std::min(text_.size(), kAhead);
    if (limit > 0) {
      mend(limit);
      if (mended_ == 0 && cutting_) {  // all of it is left out
        text_.erase(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(cut_from_));
        begin_offset_ += cut_from_;
      }
    } else if (!read_more()) {
      break;
    }
  }
  at_ = text_.data();
  end_ = at_ + mended_;
}

/// Mends up to `limit`, or up to where a text is cut.
void MendedJson::mend(std::size_t limit) {
  std::size_t at = 0;
  if (cutting_) {
    while (at < limit && text_[at] != '"') at += text_[at] == '\\' ? 2 : 1;
    cut_from_ = std::min(at, text_.size());
    cutting_ = at >= limit;
    if (cutting_) return;
    text_.erase(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at));
    begin_offset_ += at;
    limit -= at;
    at = 0;
  }
  while (at < limit && !cutting_) at = in_text_ ? inside(at, limit) : outside(at, limit);
  mended_ = at;
  if (cutting_ && mended_ == 0) cut_from_ = 0;
}

std::size_t MendedJson::inside(std::size_t at, std::size_t limit) {
  const std::size_t stop = std::min(limit, at + (kMostText - std::min(text_length_, kMostText)));
  const std::size_t begin = at;
  while (at < stop && !kSpecial[static_cast<unsigned char>(text_[at])]) ++at;
  text_length_ += at - begin;
  if (at == limit) return at;
  if (text_[at] == '"') {
    in_text_ = false;
    text_length_ = 0;
    return at + 1;
  }
  if (text_length_ >= kMostText) {
    cutting_ = true;
    ++counts_.long_texts;
    return at;
  }
  if (text_[at] == '\\') {
    const std::size_t next = escape(at);
    text_length_ += next - at;
    return next;
  }
  text_[at] = ' ';
  ++counts_.control_characters;
  ++text_length_;
  return at + 1;
}

bool MendedJson::has_digits(std::size_t at) const {
  return is_hexadecimal(code(at)) && is_hexadecimal(code(at + 1)) && is_hexadecimal(code(at + 2)) &&
         is_hexadecimal(code(at + 3));
}

/// A backslash at `at`; @returns what comes behind what it escapes.
std::size_t MendedJson::escape(std::size_t at) {
  constexpr std::string_view kKnown = "\"\\/bfnrt";
  const char escaped = code(at + 1);
  if (escaped != '\0' && kKnown.find(escaped) != std::string_view::npos) return at + 2;
  if (escaped == 'u' && has_digits(at + 2)) {
    const auto half = [&](std::size_t digits, std::string_view range) {
      return (code(digits) == 'd' || code(digits) == 'D') &&
             range.find(code(digits + 1)) != std::string_view::npos;
    };
    if (!half(at + 2, "89abAB")) return at + 6;
    if (code(at + 6) == '\\' && code(at + 7) == 'u' && half(at + 8, "cdefCDEF") &&
        has_digits(at + 8))
      return at + 12;
  }
  text_[at] = '?';
  ++counts_.escapes;
  return at + 1;
}

std::size_t MendedJson::outside(std::size_t at, std::size_t limit) {
  while (at < limit) {
    switch (kOutside[static_cast<unsigned char>(text_[at])]) {
      case Outside::kSeparator:
        text_length_ = 0;
        break;
      case Outside::kQuote:
        in_text_ = true;
        text_length_ = 0;
        return at + 1;
      case Outside::kControl:
        text_[at] = ' ';
        ++counts_.control_characters;
        break;
      case Outside::kSign:
        if (text_length_ == 0) {
          if (const std::size_t next = not_a_number(at); next != at) return next;
        }
        [[fallthrough]];
      case Outside::kWord:
        if (++text_length_ > kMostNumber)
          refuse(at, "a number or word of more than 4,096 characters");
    }
    ++at;
  }
  return at;
}

/// Makes NaN, inf, -Infinity and their like, if one begins at `at`, an empty text.
std::size_t MendedJson::not_a_number(std::size_t at) {
  constexpr std::array<std::string_view, 3> kWords = {"infinity", "inf", "nan"};
  const std::size_t word = at + (text_[at] == '-' ? 1 : 0);
  for (const std::string_view known : kWords) {
    std::size_t same = 0;
    while (same < known.size() && (code(word + same) | 0x20) == known[same]) ++same;
    if (same < known.size()) continue;
    const std::size_t end = word + known.size();
    std::fill(text_.begin() + static_cast<std::ptrdiff_t>(at),
              text_.begin() + static_cast<std::ptrdiff_t>(end), ' ');
    text_[at] = text_[at + 1] = '"';
    ++counts_.not_numbers;
    return end;
  }
  return at;
}

}  // namespace orrery
