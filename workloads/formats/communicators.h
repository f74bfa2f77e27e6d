// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// Groups of ranks that collectives run in: by name, as a file of groups or the traces themselves
/// say ({"1": [0, 2], ...}), and by members.
class Communicators {
 public:
  /// The number of a group of ranks, in their order; equal groups have one number.
  std::uint32_t add(const std::vector<int>& ranks);
  /// A name for a group; the last that is given to a name counts.
  void name(std::string_view name, const std::vector<int>& ranks);
  /// The group of a name; nothing where nobody has said what it is.
  std::optional<std::uint32_t> find(std::string_view name) const;

  /// Ranks by number of the group.
  const std::vector<std::vector<int>>& groups() const { return groups_; }

 private:
  std::vector<std::vector<int>> groups_;
  std::map<std::vector<int>, std::uint32_t> by_ranks_;
  std::map<std::string, std::uint32_t, std::less<>> by_name_;
};

/// Reads a file of groups, {"name": [ranks], ...}, as ASTRA-sim has them beside Chakra traces.
/// @returns the SHA-256 of the file
/// @throws config::ConfigError for what is no such file
std::string read_communicators(const std::string& path, Communicators& communicators);

}  // namespace orrery
