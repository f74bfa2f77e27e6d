// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// Points of a plan by their place in it: `first` to the one before `last`.
struct PointRange {
  std::size_t first = 0;
  std::size_t last = 0;
  bool operator==(const PointRange&) const = default;
};

/// Places of a plan, in order and apart from each other.
using Places = std::vector<PointRange>;

/// Adds a place behind all others; it joins the last range where it is next to it, or where all
/// between may be done with it.
void append(Places& places, std::size_t place, bool with_all_between = false);

/// All places of both.
Places joined(Places some, const Places& others);
/// The same places in parts of so many, each of at most 1,000 ranges.
std::vector<Places> in_parts(const Places& places, std::size_t size);

std::size_t size_of(const Places& places);
bool has_place(const Places& places, std::size_t place);

/// "0..100,120..130": from the first to the one before the last.
std::string to_text(const Places& places);

/// Reads that. None: it is no such text, or ranges are empty or not in order.
std::optional<Places> parse_places(std::string_view text);

}  // namespace orrery
