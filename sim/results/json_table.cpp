// SPDX-License-Identifier: Apache-2.0
#include "sim/results/json_table.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/units/text.h"

namespace orrery {
namespace {

struct Shown {
  nlohmann::ordered_json::json_pointer member;
  std::string format;
};

std::string cell(const nlohmann::ordered_json& row, const Shown& shown) {
  if (!row.contains(shown.member)) return "-";
  const nlohmann::ordered_json& found = row.at(shown.member);
  if (found.is_null()) return "-";
  if (found.is_string()) return found;
  if (shown.format == "count") return std::to_string(found.get<std::int64_t>());
  const double value = found;
  if (shown.format == "number") return print_number(value);
  if (shown.format == "percent") return format_percent(value);
  if (shown.format == "error") {
    const nlohmann::ordered_json& of = row.at(shown.member.parent_pointer());
    return of.value("count", of.value("n", 1)) > 0 ? format_percent(value) : "-";
  }
  if (shown.format == "s" && !std::isfinite(value)) return "never";
  return format_si(value, shown.format == "plain" ? "" : shown.format);
}

/// The text before a separator, which is taken off with it.
std::string taken(std::string_view& text, std::string_view separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  std::string part(text.substr(0, end));
  text.remove_prefix(std::min(end + separator.size(), text.size()));
  return part;
}

}  // namespace

Table json_table(const nlohmann::ordered_json& rows, std::string_view columns) {
  std::string titles;
  std::vector<Shown> members;
  while (!columns.empty()) {
    const std::string column = taken(columns, " | ");
    std::string_view rest = column;
    const std::string title = taken(rest, " = ");
    std::string member = "/" + taken(rest, " ");
    std::ranges::replace(member, '.', '/');
    titles += (titles.empty() ? "" : " | ") + std::string(rest.empty() ? "" : ">") + title;
    members.push_back({nlohmann::ordered_json::json_pointer(member), std::string(rest)});
  }
  Table table = Table::titled(titles);
  for (const auto& row : rows) {
    std::vector<std::string> cells;
    cells.reserve(members.size());
    for (const Shown& shown : members) cells.push_back(cell(row, shown));
    table.add_row(std::move(cells));
  }
  return table;
}

}  // namespace orrery
