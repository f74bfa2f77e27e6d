// SPDX-License-Identifier: Apache-2.0
// Collectives as PyTorch records them with its NCCL kernels (record_param_comms;
// ParamCommsUtils.hpp of PyTorch has the arguments).
#include "workloads/formats/kineto/graph.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace orrery::kineto {
namespace {

double bytes_of(std::string_view dtype) {
  static constexpr std::pair<std::string_view, double> kTypes[] = {
      {"bfloat16", 2}, {"half", 2},  {"float8", 1}, {"complexdouble", 16}, {"complexfloat", 8},
      {"double", 8},   {"float", 4}, {"long", 8},   {"short", 2},          {"byte", 1},
      {"char", 1},     {"bool", 1},  {"int", 4},
  };
  const std::string small = in_small_letters(dtype);
  for (const auto& [name, bytes] : kTypes)
    if (small.find(name) != std::string::npos) return bytes;
  return 0;
}

std::optional<TransferKind> kind_of(std::string_view name) {
  static constexpr std::pair<std::string_view, TransferKind> kKinds[] = {
      {"reducescatter", TransferKind::kReduceScatter},
      {"allreduce", TransferKind::kAllReduce},
      {"allgather", TransferKind::kAllGather},
      {"alltoall", TransferKind::kAllToAll},
      {"broadcast", TransferKind::kBroadcast},
      {"barrier", TransferKind::kBarrier},
      {"reduce", TransferKind::kReduce},
      {"gather", TransferKind::kGather},
      {"scatter", TransferKind::kScatter},
      {"send", TransferKind::kSendReceive},
      {"recv", TransferKind::kSendReceive},
  };
  std::string small = in_small_letters(name);
  std::erase(small, '_');
  for (const auto& [part, kind] : kKinds)
    if (small.find(part) != std::string::npos) return kind;
  return std::nullopt;
}

/// "[0, 1]"; nothing where it is cut ("[0, 1, ..., 63]") or no list.
std::vector<int> ranks_in(std::string_view text) {
  std::vector<int> ranks;
  if (text.find("...") != std::string_view::npos) return ranks;
  for (std::size_t at = 0; (at = text.find_first_of("0123456789", at)) != std::string_view::npos;) {
    int rank = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), rank);
    if (error != std::errc()) return {};
    ranks.push_back(rank);
    at = static_cast<std::size_t>(end - text.data());
  }
  return ranks;
}

bool are_a_group(const std::vector<int>& ranks, std::int64_t size) {
  const std::set<int> members(ranks.begin(), ranks.end());
  return !ranks.empty() && members.size() == ranks.size() && *members.rbegin() < kMostRanks &&
         (size == kUnknown || size == static_cast<std::int64_t>(ranks.size()));
}

/// Members, from whichever record has them whole.
std::vector<int> members(const Collective& collective, const Header& header) {
  const std::int64_t size = collective.group_size;
  if (std::vector<int> ranks = ranks_in(collective.ranks); are_a_group(ranks, size)) return ranks;
  for (const ProcessGroup& group : header.groups)
    if (group.name == collective.group && are_a_group(group.ranks, size)) return group.ranks;
  if (size == kUnknown || size < 1 || size > kMostRanks) return {};
  std::vector<int> ranks;
  const std::int64_t first = collective.first_rank, stride = collective.rank_stride;
  const bool is_series = first >= 0 && first < kMostRanks && stride >= 1 && stride < kMostRanks &&
                         first + stride * (size - 1) < kMostRanks;
  if (!is_series && size != header.world_size) return {};
  ranks.reserve(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i)
    ranks.push_back(static_cast<int>(is_series ? first + stride * i : i));
  return ranks;
}

bool is_rank(std::int64_t number) { return number >= 0 && number < kMostRanks; }

}  // namespace

std::optional<MessageNode> message_of(const Collective& collective, const Header& header,
                                      Communicators& communicators) {
  const std::optional<TransferKind> kind = kind_of(collective.name);
  if (!kind) return std::nullopt;
  MessageNode node;
  node.message.kind = *kind;
  if (*kind != TransferKind::kBarrier) {
    // The larger side is what Transfer::bytes counts, whichever that is.
    const std::int64_t elements = std::max(collective.in_elements, collective.out_elements);
    const double bytes = bytes_of(collective.dtype);
    constexpr std::int64_t kMostElements = std::int64_t{1} << 50U;
    if (elements < 1 || elements > kMostElements || bytes == 0) return std::nullopt;
    node.message.bytes = Bytes(bytes * static_cast<double>(elements));
  }
  if (*kind == TransferKind::kSendReceive) {
    const bool sends = in_small_letters(collective.name).find("send") != std::string::npos;
    const std::int64_t peer = sends ? collective.destination : collective.source;
    if (!is_rank(peer) || peer == header.rank) return std::nullopt;
    node.kind = sends ? NodeKind::kSend : NodeKind::kReceive;
    node.message.peer = static_cast<int>(peer);
    return node;
  }
  if (const auto named = communicators.find(collective.group); named) {
    node.message.group = *named;
    return node;
  }
  const std::vector<int> ranks = members(collective, header);
  const bool has_own =
      !is_rank(header.rank) || std::find(ranks.begin(), ranks.end(), header.rank) != ranks.end();
  if (ranks.empty() || !has_own) return std::nullopt;
  node.message.group = communicators.add(ranks);
  return node;
}

}  // namespace orrery::kineto
