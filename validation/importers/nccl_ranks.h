// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "validation/importers/log_text.h"

namespace orrery {

/// The ranks that a run of nccl-tests lists before its table:
///   #  Rank  0 Group  0 Pid 4711 on host device  0 [0x07] NVIDIA H100 80GB HBM3
/// Groups are communicators that run at the same time (NCCL_TESTS_SPLIT); older versions have none.
class NcclRanks {
 public:
  /// What the list says of each communicator.
  struct Communicator {
    std::int64_t ranks = 0;   ///< ranks of one group
    std::int64_t listed = 0;  ///< ranks of one group in a list without gaps; 0: there is none
    std::int64_t groups = 1;  ///< communicators that ran at the same time
    std::optional<std::int64_t>
        nodes;  ///< nodes of one group; nothing: groups differ or ranks lack
  };

  /// @param words of the line, "Rank" the first
  /// @return what is wrong with it; empty: nothing
  std::string add(const LogWord* words, std::size_t count);

  /// Adds the ranks that another process has listed, as old versions print them: each its own. A
  /// list with a rank 0 is that of another run, and not added.
  void add_apart(const NcclRanks& other);

  /// Name of the accelerator of the first rank in the list; empty where none is told.
  const std::string& device() const { return device_; }
  /// Whether ranks have accelerators of different names.
  bool mixed() const { return mixed_; }

  /// @param said ranks of a communicator as the user says; 0: as the list says
  /// @param fault gets what is wrong: ranks that are not 0 to n - 1, groups of different sizes
  Communicator communicator(std::int64_t said, std::string& fault) const;

 private:
  struct Group {
    std::set<std::int64_t> ranks;
    std::set<std::string> hosts;
  };
  std::string gap() const;

  std::set<std::pair<std::int64_t, std::int64_t>> members_;  // group, rank
  std::map<std::int64_t, Group> groups_;
  std::string device_;
  bool mixed_ = false;
};

}  // namespace orrery
