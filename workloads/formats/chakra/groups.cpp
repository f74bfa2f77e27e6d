// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/chakra/groups.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace orrery {
namespace {

constexpr std::int64_t kHighestMember = 10'000'000;

/// What stands behind the colon of a key.
std::string_view value_of(std::string_view one, std::string_view key) {
  const auto is_quote = [](char c) { return c == '"' || c == '\''; };
  for (std::size_t at = one.find(key); at != std::string_view::npos; at = one.find(key, at + 1)) {
    const std::size_t end = at + key.size();
    if (at == 0 || !is_quote(one[at - 1]) || end >= one.size() || !is_quote(one[end])) continue;
    const std::size_t colon = one.find(':', end);
    if (colon == std::string_view::npos) return {};
    const std::size_t begin = one.find_first_not_of(' ', colon + 1);
    return begin == std::string_view::npos ? std::string_view() : one.substr(begin);
  }
  return {};
}

std::string text_of(std::string_view one, std::string_view key) {
  std::string_view value = value_of(one, key);
  if (value.empty()) return {};
  const char quote = value[0];
  if (quote != '"' && quote != '\'')
    return std::string(value.substr(0, value.find_first_of(", }")));
  value.remove_prefix(1);
  return std::string(value.substr(0, value.find(quote)));
}

std::vector<int> list_of(std::string_view one, std::string_view key) {
  std::vector<int> ranks;
  const std::string_view value = value_of(one, key);
  if (value.empty() || value[0] != '[') return ranks;
  std::int64_t number = -1;  // none has begun
  for (const char c : value.substr(1)) {
    if (c >= '0' && c <= '9') {
      number = std::min(std::max<std::int64_t>(number, 0) * 10 + (c - '0'), kHighestMember);
    } else if (number >= 0) {
      ranks.push_back(static_cast<int>(number));
      number = -1;
    }
    if (c == ']') break;
  }
  return ranks;
}

}  // namespace

std::vector<ProcessGroup> process_groups(std::string_view text) {
  std::vector<ProcessGroup> groups;
  if (text.find("pg_name") == std::string_view::npos) return groups;
  for (std::size_t open = text.find('{'); open != std::string_view::npos;
       open = text.find('{', open + 1)) {
    const std::size_t close = std::min(text.find('}', open), text.size());
    const std::string_view one = text.substr(open, close - open);
    ProcessGroup group{text_of(one, "pg_name"), list_of(one, "ranks")};
    if (!group.name.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace orrery
