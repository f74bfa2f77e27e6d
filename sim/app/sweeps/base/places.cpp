// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/base/places.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace orrery {
namespace {

/// Takes a number off the front of a text. @return false: there is none
bool take_number(std::string_view& text, std::size_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

}  // namespace

void append(Places& places, std::size_t place, bool with_all_between) {
  if (places.empty() || (places.back().last != place && !with_all_between))
    places.push_back({place, place});
  places.back().last = place + 1;
}

Places joined(Places some, const Places& others) {
  some.insert(some.end(), others.begin(), others.end());
  std::ranges::sort(some, {}, &PointRange::first);
  Places all;
  for (const PointRange& range : some) {
    if (all.empty() || all.back().last < range.first) {
      all.push_back(range);
    } else {
      all.back().last = std::max(all.back().last, range.last);
    }
  }
  return all;
}

std::vector<Places> in_parts(const Places& places, std::size_t size) {
  constexpr std::size_t kMostRanges = 1000;  // they are a word of a command line
  std::vector<Places> parts;
  std::size_t room = 0;
  for (PointRange range : places) {
    while (range.first < range.last) {
      if (room == 0 || parts.back().size() == kMostRanges) {
        parts.emplace_back();
        room = size;
      }
      const std::size_t last = std::min(range.last, range.first + room);
      parts.back().push_back({range.first, last});
      room -= last - range.first;
      range.first = last;
    }
  }
  return parts;
}

std::size_t size_of(const Places& places) {
  std::size_t size = 0;
  for (const PointRange& range : places) size += range.last - range.first;
  return size;
}

bool has_place(const Places& places, std::size_t place) {
  const auto after = std::ranges::upper_bound(places, place, {}, &PointRange::first);
  return after != places.begin() && place < std::prev(after)->last;
}

std::string to_text(const Places& places) {
  std::string text;
  for (const PointRange& range : places) {
    if (!text.empty()) text += ",";
    text.append(std::to_string(range.first)).append("..").append(std::to_string(range.last));
  }
  return text;
}

std::optional<Places> parse_places(std::string_view text) {
  Places places;
  do {
    PointRange range;
    if (!take_number(text, range.first) || !take_word(text, "..") || !take_number(text, range.last))
      return std::nullopt;
    if (range.first >= range.last) return std::nullopt;
    if (!places.empty() && range.first < places.back().last) return std::nullopt;
    places.push_back(range);
  } while (take_word(text, ","));
  if (!text.empty()) return std::nullopt;
  return places;
}

}  // namespace orrery
