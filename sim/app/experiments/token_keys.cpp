// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/token_keys.h"

#include "sim/app/experiments/keys/enum_names.h"

namespace orrery {
namespace {

using config::between;

std::string token_fault(const CollectiveConfig& c) {
  const bool tokens = c.tokens > 0, hidden = c.hidden > 0, experts = c.experts > 0;
  const std::string kind = to_string(c.kind);
  if (!c.exchanges_tokens()) {
    return tokens || hidden || experts ? kind + " has no tokens; dispatch and combine do" : "";
  }
  if (c.bytes.base() > 0) return "a " + kind + " has tokens instead of bytes";
  if (!tokens || !hidden || !experts || c.top_k < 1)
    return "a " + kind + " needs tokens, hidden, experts and top_k";
  return c.top_k > c.experts ? "top_k must be at most experts" : "";
}

std::string group_fault(const CollectiveConfig& c) {
  if (c.expert_groups == 0) return c.top_groups > 0 ? "top_groups needs expert_groups" : "";
  if (c.top_groups < 1 || c.top_groups > c.expert_groups)
    return "top_groups must be between 1 and expert_groups";
  if (c.experts % c.expert_groups != 0) return "expert_groups must divide experts";
  return c.experts / c.expert_groups * c.top_groups < c.top_k
             ? "top_groups must hold at least top_k experts"
             : "";
}

}  // namespace

config::Schema<CollectiveConfig> with_token_keys(config::Schema<CollectiveConfig> schema) {
  schema
      .optional("tokens", &CollectiveConfig::tokens, "dispatch, combine: of each rank",
                between(1, 1e9))
      .optional("hidden", &CollectiveConfig::hidden, "dispatch, combine: elements of a token",
                between(1, 1e6))
      .optional("experts", &CollectiveConfig::experts,
                "dispatch, combine: routed experts, in order on the ranks", between(1, 1e6))
      .optional("top_k", &CollectiveConfig::top_k, "dispatch, combine: experts of a token",
                between(1, 1e4))
      .optional("expert_groups", &CollectiveConfig::expert_groups,
                "node-limited routing: groups of the experts, one a node; 0: no limit",
                between(0, 1e6))
      .optional("top_groups", &CollectiveConfig::top_groups,
                "node-limited routing: groups that the experts of a token may be in",
                between(0, 1e6))
      .optional("router", &CollectiveConfig::router,
                "uniform: experts at random; perfect: those of a token spread over all ranks")
      .optional("mode", &CollectiveConfig::mode,
                "normal: a token goes once to each node and rank; low_latency: each copy goes "
                "straight to its expert")
      .optional("skew", &CollectiveConfig::skew, "token copies of the heaviest rank over the mean",
                between(1, 1e6))
      .check(token_fault, "kind")
      .check(group_fault, "expert_groups");
  return schema;
}

Transfer CollectiveConfig::transfer(std::vector<int> group) const {
  Transfer transfer;
  transfer.name = to_string(kind);
  transfer.kind = kind;
  transfer.bytes = bytes;
  transfer.groups = {std::move(group)};
  transfer.purpose = "collective";
  transfer.byte_sums = byte_sums();
  if (!exchanges_tokens()) return transfer;
  transfer.bytes =
      token_bytes(precision, hidden) * (static_cast<double>(tokens) * static_cast<double>(top_k));
  transfer.routing = ExpertRouting{.experts = experts,
                                   .top_k = top_k,
                                   .groups = expert_groups,
                                   .top_groups = top_groups,
                                   .router = router,
                                   .mode = mode,
                                   .skew = skew};
  return transfer;
}

}  // namespace orrery
