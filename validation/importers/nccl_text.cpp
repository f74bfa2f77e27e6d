// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/nccl_text.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <vector>

#include "sim/config/diagnostics.h"
#include "sim/units/spelling.h"
#include "validation/importers/numbers.h"

namespace orrery {
namespace {

const std::vector<std::string> kNcclCollectives = {
    "all_reduce", "all_gather", "reduce_scatter", "alltoall", "alltoallv", "broadcast",
    "reduce",     "sendrecv",   "gather",         "scatter",  "hypercube", "all_reduce_bias"};

bool is_nccl_collective(const std::string& name) {
  return std::find(kNcclCollectives.begin(), kNcclCollectives.end(), name) !=
         kNcclCollectives.end();
}

/// What follows the mark in a line, without the blanks and colons between.
std::string_view text_after(std::string_view line, std::string_view mark) {
  const std::size_t at = line.find(mark);
  if (at == line.npos) return {};
  const std::string_view rest = line.substr(at + mark.size());
  return rest.substr(std::min(rest.find_first_not_of(" :"), rest.size()));
}

/// Whether these are 0 to n - 1.
bool is_whole(const std::set<std::int64_t>& ranks) {
  return !ranks.empty() && *ranks.begin() == 0 &&
         *ranks.rbegin() == static_cast<std::int64_t>(ranks.size()) - 1;
}

/// The words after the name, up to its value.
const LogWord* value_of(const LogWord* words, std::size_t count, std::string_view name) {
  const LogWord* end = words + count;
  const LogWord* found =
      std::find_if(words, end, [&](const LogWord& word) { return word.text == name; });
  return end - found > 1 ? found + 1 : nullptr;
}

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

ImportedTable collective_measurements() {
  return {{"system", "collective", "precision", "ranks", "bytes", "latency_us", "source", "nodes",
           "placement", "bus_bytes_per_s", "type", "redop", "root", "groups"}};
}

void check_collective(const std::string& name) {
  if (name.empty() || is_nccl_collective(name)) return;
  throw config::ConfigError(fmt::format("nccl-tests has no collective '{}'{}", name,
                                        did_you_mean(nearest_name(name, kNcclCollectives))));
}

std::string named_collective(std::string_view line, std::string_view suffix) {
  std::string named;
  for (auto end = line.find(suffix); end != line.npos; end = line.find(suffix, end + 1)) {
    std::size_t start = end;
    while (start > 0 &&
           (line[start - 1] == '_' || (line[start - 1] >= 'a' && line[start - 1] <= 'z')))
      --start;
    std::string name(line.substr(start, end - start));
    if (!is_nccl_collective(name) || name == named) continue;
    if (!named.empty()) return {};
    named = std::move(name);
  }
  return named;
}

std::vector<double> bus_factors(const std::string& collective, std::int64_t ranks) {
  const auto others = static_cast<double>(ranks - 1);
  const double share = others / static_cast<double>(ranks);
  if (collective == "all_reduce") return {2 * share};
  if (collective == "all_gather" || collective == "reduce_scatter" || collective == "alltoall")
    return {share, 1, others};
  return {};
}

void NcclLibrary::read(std::string_view line) {
  if (line.find("rccl-tests") != line.npos || line.find("RCCL version") != line.npos)
    name_ = "rccl";
  const std::string_view code = text_after(line, "nccl-library=");
  std::string_view version = text_after(line, "NCCL version");
  if (version.empty()) version = text_after(line, "RCCL version");
  if (const auto number = parse_count(code.substr(0, code.find_first_not_of("0123456789")));
      number && *number >= 10000) {
    version_ = fmt::format("{}.{}.{}", *number / 10000, *number / 100 % 100, *number % 100);
  } else if (version.find_first_of("0123456789") == 0) {
    version_ = version.substr(0, version.find_first_not_of("0123456789."));
  }
}

std::string NcclLibrary::source() const {
  if (version_.empty()) return name_ + "-tests";
  return fmt::format("{0}-tests__{0}_{1}", name_, version_);
}

std::string NcclRanks::add(const LogWord* words, std::size_t count) {
  const auto rank = count > 1 ? parse_count(words[1].text) : std::nullopt;
  if (!rank) return {};
  const LogWord* group_word = value_of(words, count, "Group");
  const auto said = group_word == nullptr ? std::nullopt : parse_count(group_word->text);
  const std::int64_t group = said.value_or(0);
  if (!members_.emplace(group, *rank).second)
    return fmt::format(
        "rank {} is there twice: processes that ran apart (built without MPI=1?), "
        "not one collective",
        *rank);
  groups_[group].ranks.insert(*rank);
  if (const LogWord* host = value_of(words, count, "on")) groups_[group].hosts.emplace(host->text);
  const LogWord* device = value_of(words, count, "device");
  std::string name;
  for (; device != nullptr && ++device < words + count;) {
    if (device->text.starts_with('[')) continue;
    name += name.empty() ? "" : " ";
    name += device->text;
  }
  if (device_.empty()) device_ = name;
  mixed_ = mixed_ || name != device_;
  return {};
}

void NcclRanks::add_apart(const NcclRanks& other) {
  const bool is_other_run = std::any_of(
      other.members_.begin(), other.members_.end(),
      [this](const auto& member) { return member.second == 0 || members_.count(member) > 0; });
  if (is_other_run) return;
  members_.insert(other.members_.begin(), other.members_.end());
  for (const auto& [number, group] : other.groups_) {
    groups_[number].ranks.insert(group.ranks.begin(), group.ranks.end());
    groups_[number].hosts.insert(group.hosts.begin(), group.hosts.end());
  }
}

std::string NcclRanks::gap() const {
  std::set<std::int64_t> all;
  for (const auto& [group, rank] : members_) all.insert(rank);
  if (all.size() < members_.size()) return "groups share some ranks";
  std::int64_t next = 0;
  for (const std::int64_t rank : all) {
    if (rank == next + 1) return fmt::format("rank {} is missing", next);
    if (rank != next) return fmt::format("ranks {} to {} are missing", next, rank - 1);
    ++next;
  }
  return {};
}

NcclRanks::Communicator NcclRanks::communicator(std::int64_t said, std::string& fault) const {
  // Ranks are numbered over all groups, or in each one.
  const std::string missing = gap();
  const bool apart = std::all_of(groups_.begin(), groups_.end(),
                                 [](const auto& group) { return is_whole(group.second.ranks); });
  Communicator found{
      said, 0, static_cast<std::int64_t>(std::max<std::size_t>(groups_.size(), 1)), {}};
  if (!members_.empty() && (apart || missing.empty())) {
    const Group& first = groups_.begin()->second;
    bool equal = true, spread = true;
    for (const auto& [number, group] : groups_) {
      equal = equal && group.ranks.size() == first.ranks.size();
      spread = spread && group.hosts.size() == first.hosts.size();
    }
    const auto listed = static_cast<std::int64_t>(first.ranks.size());
    if (!equal) {
      fault = "the groups have different numbers of ranks, so that a time has none";
    } else if (said != 0 && said < listed) {
      fault = fmt::format("the list has {} ranks, more than --ranks says", listed);
    }
    found.ranks = std::max(said, listed);
    found.listed = listed;
    if (spread && !first.hosts.empty() && found.ranks == listed) {
      found.nodes = static_cast<std::int64_t>(first.hosts.size());
    }
    return found;
  }
  if (said == 0) {
    fault = members_.empty()
                ? "there is no line '# Rank ...' before this table, so that the "
                  "number of ranks is unknown; say --ranks N"
                : "the list of ranks before this table is cut (" + missing + "); say --ranks N";
  } else if (groups_.size() == 1 && !members_.empty() && members_.rbegin()->second >= said) {
    fault = fmt::format("the list has rank {}, and --ranks {} means 0 to {}",
                        members_.rbegin()->second, said, said - 1);
  }
  return found;
}

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
  return known == nullptr ? std::nullopt : std::optional(known->precision);
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
