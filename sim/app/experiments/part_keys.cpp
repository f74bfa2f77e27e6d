// SPDX-License-Identifier: Apache-2.0

#include <fmt/core.h>
#include <algorithm>
#include <numeric>
#include <optional>
#include <sstream>

#include "sim/app/experiments/collective_config.h"
#include "sim/config/input_files.h"
#include "sim/machine/transfer_names.h"
#include "sim/units/spelling.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

using Matrix = std::vector<std::vector<Bytes>>;

constexpr const char* kAllRanks = "all";
/// More ranks than that have too many pairs to list.
constexpr std::int64_t kMostRows = 4096;

/// Finds fault with a key, at the value that the user wrote.
class Complaints {
 public:
  Complaints(const config::Node& node, config::Diagnostics& diagnostics)
      : node_(node), diagnostics_(diagnostics) {}

  void at(const std::string& key, std::string message, std::string suggestion = {}) {
    at(*node_.at_path("collective." + key), std::move(message), std::move(suggestion));
  }
  void at_row(std::size_t row, std::string message) {
    at(node_.at_path("collective.matrix")->items()[row], std::move(message), {});
  }

 private:
  void at(const config::Node& value, std::string message, std::string suggestion) {
    diagnostics_.error(value.where(), value.length(), std::move(message), std::move(suggestion));
  }

  const config::Node& node_;
  config::Diagnostics& diagnostics_;
};

/// @throws config::ConfigError with file and line
Matrix read_matrix(const std::string& path) {
  const config::FileText read = config::input_files().read(path);
  if (!read.fault.empty()) throw config::ConfigError(path + ": " + read.fault);
  std::istringstream file(read.text);
  Matrix matrix;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::vector<Bytes>& row = matrix.emplace_back();
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) {
      try {
        row.emplace_back(parse_number(cell));
      } catch (const UnitError& error) {
        config::throw_error(read.text, {path, number, 1}, static_cast<int>(line.size()),
                            error.what(), error.suggestion());
      }
      if (row.back().base() >= 0) continue;
      config::throw_error(read.text, {path, number, 1}, static_cast<int>(line.size()),
                          "bytes must not be negative");
    }
  }
  return matrix;
}

std::string shape_fault(const Matrix& matrix, int ranks, std::int64_t wanted) {
  const auto rows = static_cast<std::int64_t>(matrix.size());
  if (rows < 2) return fmt::format("an all_to_all needs at least 2 ranks; the matrix has {}", rows);
  if (rows > kMostRows) return fmt::format("a matrix may have {} rows, not {}", kMostRows, rows);
  if (rows > ranks) return fmt::format("the matrix has {} rows, the machine {} ranks", rows, ranks);
  if (wanted > 0 && rows != wanted)
    return fmt::format("the matrix has {} rows, but collective.ranks is {}", rows, wanted);
  return {};
}

std::string row_fault(const Matrix& matrix, std::size_t row) {
  if (matrix[row].size() == matrix.size()) return {};
  return fmt::format("row {} has {} parts, but there are {} rows", row, matrix[row].size(),
                     matrix.size());
}

void check_inline(const CollectiveConfig& collective, int ranks, Complaints& complaints) {
  const std::string fault = shape_fault(collective.matrix, ranks, collective.ranks);
  if (!fault.empty()) complaints.at("matrix", fault);
  for (std::size_t row = 0; row < collective.matrix.size(); ++row) {
    const std::string wrong = row_fault(collective.matrix, row);
    if (!wrong.empty()) complaints.at_row(row, wrong);
  }
}

void check_file(const CollectiveConfig& collective, int ranks, Complaints& complaints) {
  try {
    const Matrix matrix = read_matrix(collective.matrix_file.path);
    std::string fault = shape_fault(matrix, ranks, collective.ranks);
    for (std::size_t row = 0; row < matrix.size() && fault.empty(); ++row)
      fault = row_fault(matrix, row);
    if (!fault.empty()) complaints.at("matrix_file", fault);
  } catch (const config::ConfigError& error) {
    complaints.at("matrix_file", error.what());
  }
}

void check_matrix(const CollectiveConfig& collective, int ranks, Complaints& complaints) {
  const bool from_file = !collective.matrix_file.empty();
  const std::string key = from_file ? "matrix_file" : "matrix";
  if (collective.kind != TransferKind::kAllToAll) {
    complaints.at(key, std::string(to_string(collective.kind)) +
                           " has no parts of different sizes; all_to_all does");
  } else if (collective.bytes.base() > 0 || collective.skew > 1 ||
             (from_file && !collective.matrix.empty())) {
    complaints.at(key, "the parts are said twice: one of bytes (with skew), matrix, matrix_file");
  } else if (from_file) {
    check_file(collective, ranks, complaints);
  } else {
    check_inline(collective, ranks, complaints);
  }
}

struct End {
  enum class Kind { kRank, kHost, kStorage, kAll } kind = Kind::kRank;
  int rank = 0;
  bool is_host() const { return kind == Kind::kHost || kind == Kind::kStorage; }
};

std::optional<End> parse_end(const std::string& text) {
  if (text == "host") return End{End::Kind::kHost};
  if (text == "storage") return End{End::Kind::kStorage};
  if (text == kAllRanks) return End{End::Kind::kAll};
  const bool number =
      !text.empty() && text.size() < 9 && text.find_first_not_of("0123456789") == std::string::npos;
  if (!number) return {};
  return End{End::Kind::kRank, std::stoi(text)};
}

std::optional<End> checked_end(const std::string& key, const std::string& text, int ranks,
                               Complaints& complaints) {
  if (text.empty()) {
    complaints.at(key == "from" ? "to" : "from", "a message needs both ends: from and to");
    return {};
  }
  const std::optional<End> end = parse_end(text);
  if (!end) {
    complaints.at(key,
                  "there is no end '" + text + "' of a message; it is a rank, host, storage or all",
                  nearest_name(text, {"host", "storage", kAllRanks}));
  } else if (end->kind == End::Kind::kRank && end->rank >= ranks) {
    complaints.at(key, fmt::format("there is no rank {}; the machine has {}", text, ranks));
    return {};
  }
  return end;
}

void check_host(const CollectiveConfig& collective, const SystemConfig& system, End host,
                const std::string& key, Complaints& complaints) {
  if (!system.accelerator.host_link.present())
    complaints.at(key, system.accelerator.name + " has no host_link");
  if (host.kind == End::Kind::kStorage && system.host.network.base() <= 0)
    complaints.at(key, system.name + " has no host.network to storage");
  if (collective.algorithm != "auto")
    complaints.at("algorithm", "a copy to or from the host has no algorithm");
  if (collective.protocol != "auto")
    complaints.at("protocol", "a copy to or from the host has no protocol");
}

void check_ends(const CollectiveConfig& collective, const SystemConfig& system, int ranks,
                Complaints& complaints) {
  if (collective.kind != TransferKind::kSendReceive) {
    complaints.at(collective.from.empty() ? "to" : "from",
                  std::string(to_string(collective.kind)) + " has no ends; send_receive does");
    return;
  }
  if (collective.ranks > 0) complaints.at("ranks", "from and to already say which ranks");
  const auto from = checked_end("from", collective.from, ranks, complaints);
  const auto to = checked_end("to", collective.to, ranks, complaints);
  if (!from || !to) return;
  const bool host = from->is_host() || to->is_host();
  if (from->is_host() && to->is_host()) {
    complaints.at("to", "one end of a message must be a rank");
  } else if (host) {
    check_host(collective, system, from->is_host() ? *from : *to, from->is_host() ? "from" : "to",
               complaints);
  } else if (from->kind == End::Kind::kAll || to->kind == End::Kind::kAll) {
    complaints.at(from->kind == End::Kind::kAll ? "from" : "to",
                  "all ranks copy to and from the host or storage only");
  } else if (from->rank == to->rank) {
    complaints.at("to", "a message goes to another rank");
  }
}

/// A rank of n has `skew` times the mean for it, what the others have less.
std::vector<Bytes> skewed_parts(Bytes bytes, double skew, std::size_t n) {
  const double heaviest = std::min(skew, static_cast<double>(n));
  const double others = (static_cast<double>(n) - heaviest) / static_cast<double>(n - 1);
  const Bytes mean = bytes / static_cast<double>(n);
  std::vector<Bytes> parts(n * n, mean * others);
  for (std::size_t from = 0; from < n; ++from) parts[from * n] = mean * heaviest;
  return parts;
}

/// The most that a member of n sends or receives.
Bytes heaviest(const std::vector<Bytes>& parts, std::size_t n) {
  Bytes most;
  for (std::size_t i = 0; i < n; ++i) {
    Bytes sent, received;
    for (std::size_t j = 0; j < n; ++j) {
      sent += parts[i * n + j];
      received += parts[j * n + i];
    }
    most = std::max({most, sent, received});
  }
  return most;
}

void add_parts(const CollectiveConfig& collective, Transfer& transfer) {
  const std::size_t n = transfer.groups.front().size();
  if (collective.has_matrix()) {
    const Matrix matrix = collective.matrix_file.empty() ? collective.matrix
                                                         : read_matrix(collective.matrix_file.path);
    for (const std::vector<Bytes>& row : matrix)
      transfer.pair_bytes.insert(transfer.pair_bytes.end(), row.begin(), row.end());
  } else {
    transfer.pair_bytes = skewed_parts(collective.bytes, collective.skew, n);
  }
  transfer.bytes = heaviest(transfer.pair_bytes, n);
}

std::vector<int> first_ranks(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Transfer message(const CollectiveConfig& collective, int ranks) {
  const End from = *parse_end(collective.from), to = *parse_end(collective.to);
  if (!from.is_host() && !to.is_host()) return collective.transfer({from.rank, to.rank});
  const End host = from.is_host() ? from : to, rank = from.is_host() ? to : from;
  Transfer transfer = collective.transfer({rank.rank});
  transfer.host =
      HostCopy{host.kind == End::Kind::kStorage ? HostEnd::kStorage : HostEnd::kHost, to.is_host()};
  if (rank.kind == End::Kind::kAll) {
    transfer.groups.clear();
    for (const int r : first_ranks(ranks)) transfer.groups.push_back({r});
  }
  return transfer;
}

}  // namespace

void check_parts(const CollectiveConfig& collective, const SystemConfig& system, int ranks,
                 const config::Node& node, config::Diagnostics& diagnostics) {
  Complaints complaints(node, diagnostics);
  if (collective.has_matrix()) check_matrix(collective, ranks, complaints);
  if (!collective.from.empty() || !collective.to.empty())
    check_ends(collective, system, ranks, complaints);
  const bool skewed = collective.kind == TransferKind::kAllToAll && collective.skew > 1;
  const std::int64_t members = collective.ranks > 0 ? collective.ranks : ranks;
  if (skewed && members > kMostRows)
    complaints.at("skew", fmt::format("an all_to_all with skew may have {} ranks, not {}",
                                      kMostRows, members));
}

Transfer collective_transfer(const CollectiveConfig& collective, int ranks) {
  if (!collective.from.empty()) return message(collective, ranks);
  std::int64_t members = collective.ranks > 0 ? collective.ranks : ranks;
  if (collective.has_matrix() && collective.ranks == 0) {
    members = static_cast<std::int64_t>(collective.matrix_file.empty()
                                            ? collective.matrix.size()
                                            : read_matrix(collective.matrix_file.path).size());
  }
  Transfer transfer = collective.transfer(first_ranks(static_cast<int>(members)));
  const bool skewed = collective.kind == TransferKind::kAllToAll && collective.skew > 1;
  if (collective.has_matrix() || (skewed && members > 1)) add_parts(collective, transfer);
  return transfer;
}

}  // namespace orrery
