// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/chakra/fields.h"

namespace orrery::chakra {

std::int64_t collective_type(TransferKind kind) {
  switch (kind) {
    case TransferKind::kAllReduce:
      return 0;
    case TransferKind::kReduce:
      return 1;
    case TransferKind::kAllGather:
      return 2;
    case TransferKind::kGather:
      return 3;
    case TransferKind::kScatter:
      return 4;
    case TransferKind::kBroadcast:
      return 5;
    case TransferKind::kAllToAll:
      return 6;
    case TransferKind::kReduceScatter:
      return 7;
    case TransferKind::kBarrier:
      return 9;
    default:
      return -1;
  }
}

void put_list(std::string& text, const std::vector<int>& ranks) {
  text += '[';
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(ranks[i]);
  }
  text += ']';
}

std::string process_groups_text(
    const std::vector<std::pair<std::string, std::vector<int>>>& groups) {
  std::string text = "[";
  for (const auto& [name, ranks] : groups) {
    text += text.size() > 1 ? ", " : "";
    text += R"({"pg_name": ")";
    text += name;
    text += R"(", "ranks": )";
    put_list(text, ranks);
    text += R"(, "group_size": )";
    text += std::to_string(ranks.size());
    text += "}";
  }
  return text + "]";
}

}  // namespace orrery::chakra
