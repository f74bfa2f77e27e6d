// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// @param name collective that the user says; empty: none
/// @throws config::ConfigError when it is none of nccl-tests, rccl-tests or hccl_test
void check_collective(const std::string& name);

/// The collective of the program that a line names ("./build/all_reduce_perf -b 8" with the suffix
/// "_perf"). Nothing where it names several, such as a list of files.
std::string named_collective(std::string_view line, std::string_view suffix);

/// Bus over algorithm bandwidth (doc/PERFORMANCE.md of nccl-tests); empty where it is not known.
/// Versions of 2018 and before count only the bytes that leave a rank, or those of one rank.
std::vector<double> bus_factors(const std::string& collective, std::int64_t ranks);

/// The library that was measured, as far as lines have told it.
class NcclLibrary {
 public:
  /// "# nccl-tests version 2.17 nccl-headers=22703 nccl-library=22703", "NCCL version 2.27.3+..."
  /// with NCCL_DEBUG=VERSION, or "RCCL version : 2.22.3-...". The number is 10000 major + 100 minor
  /// + patch (NCCL_VERSION in nccl.h, since 2.9).
  void read(std::string_view line);
  /// "nccl-tests__nccl_2.27.3", "rccl-tests"
  std::string source() const;

 private:
  std::string name_ = "nccl", version_;
};

}  // namespace orrery
