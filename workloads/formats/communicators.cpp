// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/communicators.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "sim/config/byte_source.h"
#include "sim/config/diagnostics.h"
#include "sim/config/input_files.h"
#include "sim/config/json_text.h"

namespace orrery {

std::uint32_t Communicators::add(const std::vector<int>& ranks) {
  const auto [group, is_new] =
      by_ranks_.try_emplace(ranks, static_cast<std::uint32_t>(groups_.size()));
  if (is_new) groups_.push_back(ranks);
  return group->second;
}

void Communicators::name(std::string_view name, const std::vector<int>& ranks) {
  by_name_.insert_or_assign(std::string(name), add(ranks));
}

std::optional<std::uint32_t> Communicators::find(std::string_view name) const {
  const auto known = by_name_.find(name);
  if (known == by_name_.end()) return std::nullopt;
  return known->second;
}

namespace {

constexpr std::int64_t kHighestRank = 10'000'000;

std::vector<int> ranks_in(const nlohmann::json& list, const std::string& where) {
  std::vector<int> ranks;
  if (!list.is_array()) throw config::ConfigError(where + ": expected a list of ranks");
  ranks.reserve(list.size());
  for (const nlohmann::json& rank : list) {
    if (!rank.is_number_integer() || rank.get<std::int64_t>() < 0 ||
        rank.get<std::int64_t>() > kHighestRank)
      throw config::ConfigError(fmt::format("{}: expected a rank, got {}", where, rank.dump()));
    ranks.push_back(rank.get<int>());
  }
  return ranks;
}

}  // namespace

std::string read_communicators(const std::string& path, Communicators& communicators) {
  const config::FileText file = config::input_files().read(path);
  if (!file.fault.empty()) throw config::ConfigError(path + ": " + file.fault);
  nlohmann::json groups;
  try {
    groups = config::parse_json(file.text);
  } catch (const config::JsonFault& fault) {
    refuse_at_byte(path, fault.byte, fault.what());
  }
  if (!groups.is_object())
    throw config::ConfigError(path + R"(: expected groups of ranks, {"name": [ranks], ...})");
  for (const auto& [name, ranks] : groups.items())
    communicators.name(name, ranks_in(ranks, fmt::format("{}: group {}", path, name)));
  return file.sha256;
}

}  // namespace orrery
