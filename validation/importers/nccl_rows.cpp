// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/nccl_rows.h"

#include <algorithm>
#include <array>

#include "validation/importers/numbers.h"

namespace orrery {
namespace {

constexpr std::size_t kMostColumns = 64;

/// A type name of nccl-tests (rccl-tests), that of the precision, and the deviation up to which
/// versions before 2.12 call a sum right (src/common.cu there, DeltaMaxValue).
struct NcclType {
  std::string_view name, precision;
  double deviation;
};
constexpr auto kNcclTypes = std::to_array<NcclType>({
    {"float", "fp32", 1e-5},
    {"half", "fp16", 1e-2},
    {"bfloat16", "bf16", 1e-2},
    {"f8e4m3", "fp8", 1e-1},
    {"f8e5m2", "fp8", 1e-1},
    {"fp8_e4m3", "fp8", 1e-1},
    {"fp8_e5m2", "fp8", 1e-1},
    {"int8", "int8", 1e-200},
    {"uint8", "uint8", 1e-200},
    {"char", "int8", 1e-200},
    {"int32", "int32", 1e-200},
    {"uint32", "uint32", 1e-200},
    {"int", "int32", 1e-200},
    {"int64", "int64", 1e-200},
    {"uint64", "uint64", 1e-200},
    {"double", "fp64", 1e-12},
});

const NcclType* find_nccl_type(std::string_view name) {
  const auto found = std::find_if(kNcclTypes.begin(), kNcclTypes.end(),
                                  [&](const NcclType& t) { return t.name == name; });
  return found == kNcclTypes.end() ? nullptr : &*found;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// A name as those of types and operations: letters, digits and underscores.
bool is_name(std::string_view text) {
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

/// The begin of a cell at the end of a part to which a line of a log was glued, "-1host:7:7".
std::string_view before_glue(std::string_view text) {
  if (text.starts_with("N/A")) return text.substr(0, 3);
  const std::size_t digits = text.find_first_not_of("-+.0123456789");
  if (digits == 0 || digits == text.npos || !is_letter(text[digits])) return text;
  return whole_number<double>(text) ? text : text.substr(0, digits);
}

bool ends_part(std::size_t place, const NcclColumns& columns) {
  return place == columns.root ||
         std::any_of(columns.halves.begin(), columns.halves.end(),
                     [place](const NcclColumns::Half& half) { return half.wrong == place; });
}

bool fits(std::string_view text, std::size_t place, const NcclColumns& columns) {
  if (place < 2) return parse_count(text).has_value();
  if (place == columns.type || place == columns.redop) return is_name(text);
  if (place == columns.root) return whole_number<std::int64_t>(text).has_value();
  if (text == "N/A" || text == "-nan") return ends_part(place, columns);
  if (ends_part(place, columns) && text.ends_with('*')) text.remove_suffix(1);
  return whole_number<double>(text).has_value();
}

/// Adds words from `at` on while they fit the next columns.
/// @return the word that does not; nothing when the row is whole or the line at its end
std::optional<LogWord> add_cells(std::vector<LogWord>& cells, const std::vector<LogWord>& words,
                                 std::size_t at, const NcclColumns& columns) {
  while (cells.size() < columns.count && at < words.size()) {
    LogWord cell = words[at];
    const std::size_t place = cells.size();
    if (place == columns.redop && place != 0 && whole_number<double>(cell.text)) {
      cell.text = {};  // collectives that do not reduce leave it blank in some versions
      cells.push_back(cell);
      continue;
    }
    if (ends_part(place, columns)) cell.text = before_glue(cell.text);
    if (!fits(cell.text, place, columns)) return words[at];
    cells.push_back(cell);
    ++at;
  }
  return std::nullopt;
}

/// Where the columns of the next part end.
std::size_t next_part(std::size_t cells, const NcclColumns& columns) {
  for (const NcclColumns::Half& half : columns.halves) {
    if (half.wrong >= cells) return half.wrong + 1;
  }
  return columns.count;
}

}  // namespace

std::optional<NcclColumns> NcclColumns::from_header(const std::vector<LogWord>& words) {
  NcclColumns columns;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view name = words[i].text;
    const std::size_t place = i - 1;
    if (name == "type") columns.type = place;
    if (name == "redop" || name == "op") columns.redop = place;
    if (name == "root") columns.root = place;
    if (name == "time") columns.halves.push_back({place, 0, 0, 0});
    if (columns.halves.empty()) continue;
    Half& half = columns.halves.back();
    if (name == "algbw") half.algorithm = place;
    if (name == "busbw") half.bus = place;
    if (name == "#wrong" || name == "error") half.wrong = place;
    columns.deviations = columns.deviations || name == "error";
    if (half.wrong == place) columns.count = place + 1;
  }
  const bool whole =
      std::all_of(columns.halves.begin(), columns.halves.end(), [](const Half& half) {
        return half.time < half.algorithm && half.algorithm < half.bus && half.bus < half.wrong;
      });
  if (columns.type != 2 || columns.halves.empty() || columns.halves.size() > 2 || !whole ||
      columns.count > kMostColumns ||
      std::max(columns.redop, columns.root) > columns.halves.front().time) {
    return std::nullopt;
  }
  return columns;
}

NcclCells find_nccl_row(const std::vector<LogWord>& words, const NcclColumns& columns) {
  NcclCells part;
  for (std::size_t at = 0; at + 2 < words.size(); ++at) {
    if (!parse_count(words[at].text) || !parse_count(words[at + 1].text)) continue;
    const bool known = find_nccl_type(words[at + 2].text) != nullptr;
    NcclCells found;
    found.misfit = add_cells(found.cells, words, at, columns);
    if (found.cells.size() == columns.count) return found;
    // "8 16 GPUs" is no row, "8 16 newtype sum -1" is one.
    const bool is_row = known || (at == 0 && found.cells.size() >= columns.halves[0].time &&
                                  columns.halves[0].time > 3);
    if (is_row && part.cells.empty()) part = std::move(found);
  }
  return part;
}

bool continue_nccl_row(std::vector<LogWord>& cells, const std::vector<LogWord>& words,
                       const NcclColumns& columns) {
  const std::size_t missing = columns.count - cells.size();
  for (const std::size_t at : {std::size_t{0}, words.size() - std::min(missing, words.size())}) {
    std::vector<LogWord> longer = cells;
    add_cells(longer, words, at, columns);
    const std::size_t part = next_part(cells.size(), columns);
    if (longer.size() < part) continue;
    if (longer.size() < columns.count) longer.resize(part);
    cells = std::move(longer);
    return true;
  }
  return false;
}

std::optional<std::string_view> nccl_precision(std::string_view type) {
  const NcclType* known = find_nccl_type(type);
  if (known == nullptr) return std::nullopt;
  return known->precision;
}

std::optional<bool> is_wrong_result(std::string_view cell, std::string_view type, bool deviation) {
  if (cell == "N/A") return false;
  if (cell.ends_with('*')) return true;
  const auto value = whole_number<double>(cell);
  if (!value) return std::nullopt;
  const NcclType* known = find_nccl_type(type);
  const double most = deviation && known != nullptr ? known->deviation : 0;
  return !(*value <= most);
}

}  // namespace orrery
