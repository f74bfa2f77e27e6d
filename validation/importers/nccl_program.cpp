// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/nccl_program.h"

#include <algorithm>
#include <vector>

#include "sim/config/diagnostics.h"
#include "sim/units/spelling.h"
#include "validation/importers/numbers.h"

namespace orrery {
namespace {

const std::vector<std::string>& nccl_collectives() {
  static const std::vector<std::string> all = {
      "all_reduce", "all_gather", "reduce_scatter", "alltoall", "alltoallv", "broadcast",
      "reduce",     "sendrecv",   "gather",         "scatter",  "hypercube", "all_reduce_bias"};
  return all;
}

/// What follows the mark in a line, without the blanks and colons between.
std::string_view text_after(std::string_view line, std::string_view mark) {
  const std::size_t at = line.find(mark);
  if (at == line.npos) return {};
  const std::string_view rest = line.substr(at + mark.size());
  return rest.substr(std::min(rest.find_first_not_of(" :"), rest.size()));
}

}  // namespace

void check_collective(const std::string& name) {
  const auto& known = nccl_collectives();
  if (name.empty() || std::find(known.begin(), known.end(), name) != known.end()) return;
  const std::string meant = nearest_name(name, known);
  throw config::ConfigError("nccl-tests has no collective '" + name + "'" +
                            (meant.empty() ? "" : "; did you mean '" + meant + "'?"));
}

std::string named_collective(std::string_view line, std::string_view suffix) {
  std::string named;
  for (auto end = line.find(suffix); end != line.npos; end = line.find(suffix, end + 1)) {
    std::size_t start = end;
    while (start > 0 &&
           (line[start - 1] == '_' || (line[start - 1] >= 'a' && line[start - 1] <= 'z')))
      --start;
    std::string name(line.substr(start, end - start));
    const auto& known = nccl_collectives();
    if (std::find(known.begin(), known.end(), name) == known.end() || name == named) continue;
    if (!named.empty()) return {};
    named = std::move(name);
  }
  return named;
}

std::vector<double> bus_factors(const std::string& collective, std::int64_t ranks) {
  const auto others = static_cast<double>(ranks - 1);
  const double share = others / static_cast<double>(ranks);
  if (collective == "all_reduce") return {2 * share};
  if (collective == "all_gather" || collective == "reduce_scatter" || collective == "alltoall") {
    return {share, 1, others};
  }
  return {};
}

void NcclLibrary::read(std::string_view line) {
  if (line.find("rccl-tests") != line.npos || line.find("RCCL version") != line.npos) {
    name_ = "rccl";
  }
  const std::string_view code = text_after(line, "nccl-library=");
  std::string_view version = text_after(line, "NCCL version");
  if (version.empty()) version = text_after(line, "RCCL version");
  if (const auto number = parse_count(code.substr(0, code.find_first_not_of("0123456789")));
      number && *number >= 10000) {
    version_ = std::to_string(*number / 10000) + "." + std::to_string(*number / 100 % 100) + "." +
               std::to_string(*number % 100);
  } else if (version.find_first_of("0123456789") == 0) {
    version_ = version.substr(0, version.find_first_not_of("0123456789."));
  }
}

std::string NcclLibrary::source() const {
  return name_ + "-tests" + (version_.empty() ? "" : "__" + name_ + "_" + version_);
}

}  // namespace orrery
