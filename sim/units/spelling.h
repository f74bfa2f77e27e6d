// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// The fewest insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`
/// (optimal string alignment, the restricted Damerau-Levenshtein distance), or `limit + 1` if it
/// takes more than `limit`.
int edit_distance(std::string_view a, std::string_view b, int limit);

/// The candidate nearest to `word` within two edits (fewer for words of up to three letters), the
/// first of those equally near; empty if there is none. Case alone is not counted as an edit. One
/// that begins or ends with the whole word ("dgx_h100" for "h100") comes before those that are two
/// edits away.
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);

/// At most `count` candidates that look like `word`, the likest first: those that have the whole
/// word in them, then those that begin as it does, at least half of it. Case does not count.
std::vector<std::string> like_names(std::string_view word,
                                    const std::vector<std::string>& candidates, std::size_t count);

/// "; did you mean 'meant'?", or nothing where `meant` is empty.
std::string did_you_mean(std::string_view meant);

/// What there is instead of `word`, for a message: "there are: a, b" of up to 40 candidates, else
/// "like it: a, b" of the six likest; empty where that is none, or nearest_name() alone.
std::string names_instead(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace orrery
