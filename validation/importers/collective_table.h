// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orrery {

/// What the rows of a collective table are.
enum class CollectiveTableKind : std::uint8_t {
  kNccl,             ///< NCCL, with a column `collective`
  kAllReduceCustom,  ///< one- and two-shot all-reduce of TensorRT-LLM, without that column
};
/// "collective_nccl", "all_reduce_custom": the name of the file without its endings.
const char* to_string(CollectiveTableKind kind);

/// One measured collective.
struct CollectiveRow {
  std::size_t line = 0;    ///< line of the file, the header is line 1
  std::string system;      ///< accelerator; the ranks are in one node
  std::string collective;  ///< name as nccl-tests spells it: "all_reduce", "alltoall"
  std::string precision;
  std::int64_t ranks = 0;
  std::int64_t bytes = 0;  ///< the `size` of nccl-tests
  double latency_us = 0;
  std::string source;
  std::string text;  ///< the row as it stands in the file, for output
};

struct CollectiveTable {
  CollectiveTableKind kind = CollectiveTableKind::kNccl;
  std::string path;
  std::string header;  ///< the header line as it stands in the file
  std::vector<CollectiveRow> rows;
};

/// Reads a collective table, plain or gzip: columns system, collective (absent: "all_reduce"),
/// precision, ranks, bytes, latency_us, source; further ones are kept in `text`.
/// @throws config::ConfigError with file, line and column for what is wrong
CollectiveTable read_collective_table(const std::string& path);

}  // namespace orrery
