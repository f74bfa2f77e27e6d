// SPDX-License-Identifier: Apache-2.0
#include "sim/units/spelling.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "sim/units/comma_separated.h"

namespace orrery {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

/// Two edits turn any short word into any other: short words must be nearer.
int allowed_edits(std::size_t length) {
  constexpr std::size_t kShort = 3;
  constexpr int kMostEdits = 2;
  return length <= kShort ? 1 : kMostEdits;
}

bool is_separator(char c) { return c == '_' || c == '.' || c == '-' || c == ' '; }

/// Whether a name ends with a word: dgx_h100 has h100.
bool ends_with_word(std::string_view name, std::string_view word) {
  return name.size() > word.size() + 1 && name.ends_with(word) &&
         is_separator(name[name.size() - word.size() - 1]);
}

/// Whether a name goes on behind a word: qwen3_vl_8b behind qwen3_vl.
bool begins_with_word(std::string_view name, std::string_view word) {
  return name.size() > word.size() + 1 && name.starts_with(word) && is_separator(name[word.size()]);
}

/// The shortest path whose last part is the word: parallel.tp for tp.
std::string path_to(const std::string& lower_word, const std::vector<std::string>& candidates) {
  std::string shortest;
  for (const std::string& candidate : candidates)
    if (lower_case(candidate).ends_with("." + lower_word) &&
        (shortest.empty() || candidate.size() < shortest.size()))
      shortest = candidate;
  return shortest;
}

/// The shortest name that ends with the word, else the shortest that begins with it.
std::string shortest_with(const std::string& lower_word,
                          const std::vector<std::string>& candidates) {
  std::string shortest;
  for (const auto has_word : {ends_with_word, begins_with_word}) {
    for (const std::string& candidate : candidates)
      if (has_word(lower_case(candidate), lower_word) &&
          (shortest.empty() || candidate.size() < shortest.size()))
        shortest = candidate;
    if (!shortest.empty()) break;
  }
  return shortest;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b, int limit) {
  const int rows = static_cast<int>(a.size());
  const int columns = static_cast<int>(b.size());
  if (std::abs(rows - columns) > limit) return limit + 1;
  std::vector<int> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (int j = 0; j <= columns; ++j) row[static_cast<std::size_t>(j)] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int substituted = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substituted});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return std::min(row[b.size()], limit + 1);
}

std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string lower_word = lower_case(word);
  const int limit = allowed_edits(word.size());
  // What begins so, then case, decides between names that are equally near: gb200_nvl7 is
  // gb200_nvl72 rather than gb200_nvl4, GBps is GB/s rather than Gb/s.
  const int longest = static_cast<int>(word.size()) + limit;
  std::tuple best(limit + 1, true, 0);
  std::string nearest;
  for (const std::string& candidate : candidates) {
    const int distance = edit_distance(lower_word, lower_case(candidate), limit);
    if (distance > limit || distance > std::get<0>(best)) continue;
    const bool begins = lower_case(candidate).starts_with(lower_word);
    const std::tuple rank(distance, !begins, edit_distance(word, candidate, longest));
    if (rank < best) {
      best = rank;
      nearest = candidate;
    }
  }
  if (std::string path = path_to(lower_word, candidates); !path.empty() && std::get<0>(best) > 0)
    return path;
  constexpr std::size_t kTellsMuch = 3;  // letters
  if (std::get<0>(best) <= 1 || word.size() < kTellsMuch) return nearest;
  const std::string longer = shortest_with(lower_word, candidates);
  return longer.empty() ? nearest : longer;
}

std::vector<std::string> like_names(std::string_view word,
                                    const std::vector<std::string>& candidates, std::size_t count) {
  const std::string wanted = lower_case(word);
  std::vector<std::pair<std::size_t, std::string>> likest;  // letters that differ
  for (const std::string& candidate : candidates) {
    const std::string name = lower_case(candidate);
    const auto differ = std::mismatch(name.begin(), name.end(), wanted.begin(), wanted.end());
    const auto alike = static_cast<std::size_t>(differ.first - name.begin());
    const bool within = name.find(wanted) != std::string::npos;
    if (!within && (alike < 2 || 2 * alike < wanted.size())) continue;
    likest.emplace_back(within ? 0 : wanted.size() - alike, candidate);
  }
  std::stable_sort(likest.begin(), likest.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  likest.resize(std::min(count, likest.size()));
  std::vector<std::string> names;
  names.reserve(likest.size());
  for (auto& [differing, name] : likest) names.push_back(std::move(name));
  return names;
}

std::string did_you_mean(std::string_view meant) {
  return meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant);
}

std::string names_instead(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kFew = 40;
  constexpr std::size_t kShown = 6;
  const bool few = candidates.size() <= kFew;
  const std::vector<std::string> names = few ? candidates : like_names(word, candidates, kShown);
  if (!few && names == std::vector<std::string>{nearest_name(word, candidates)}) return {};
  return names.empty() ? "" : (few ? "there are: " : "like it: ") + comma_joined(names);
}

}  // namespace orrery
