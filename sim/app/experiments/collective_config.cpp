// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/collective_config.h"

#include "sim/app/experiments/keys/enum_names.h"

namespace orrery {

using config::between;
using config::Schema;
using namespace literals;

namespace {

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

const Schema<CollectiveConfig>& CollectiveConfig::schema() {
  using C = CollectiveConfig;
  static const auto schema =
      Schema<C>("collective", "one collective operation")
          .required("kind", &C::kind, "which collective operation")
          .optional("bytes", &C::bytes, "size as nccl-tests prints it; a barrier has none",
                    between(1_B, 1000_TB))
          .optional("ranks", &C::ranks, "the first ranks of the machine; 0: all", between(0, 1e7))
          .optional("algorithm", &C::algorithm,
                    "a name of `orrery describe collectives`, the path of a user-written one, or "
                    "auto: what the library takes where the system has protocols, else the fastest")
          .optional("protocol", &C::protocol, "ll, ll128, simple, or auto: what the library takes")
          .optional("precision", &C::precision,
                    "number format of the elements; bytes (int8) are not reduced in switches; "
                    "dispatch, combine: that of the tokens on the wire, to which scales of fp8, "
                    "nvfp4 and int8 come")
          .optional("tokens", &C::tokens, "dispatch, combine: of each rank", between(1, 1e9))
          .optional("hidden", &C::hidden, "dispatch, combine: elements of a token", between(1, 1e6))
          .optional("experts", &C::experts,
                    "dispatch, combine: routed experts, in order on the ranks", between(1, 1e6))
          .optional("top_k", &C::top_k, "dispatch, combine: experts of a token", between(1, 1e4))
          .optional("expert_groups", &C::expert_groups,
                    "node-limited routing: groups of the experts, one a node; 0: no limit",
                    between(0, 1e6))
          .optional("top_groups", &C::top_groups,
                    "node-limited routing: groups that the experts of a token may be in",
                    between(0, 1e6))
          .optional("router", &C::router,
                    "uniform: experts at random; perfect: those of a token spread over all ranks")
          .optional("mode", &C::mode,
                    "normal: a token goes once to each node and rank; low_latency: each copy goes "
                    "straight to its expert")
          .optional("skew", &C::skew, "token copies of the heaviest rank over the mean",
                    between(1, 1e6))
          .optional(
              "matrix", &C::matrix,
              "all_to_all: bytes from rank i to rank j, one row a sender: [[0, 1 MB], [2 MB, 0]]",
              between(0_B, 1000_TB))
          .optional("matrix_file", &C::matrix_file,
                    "all_to_all: the same as a CSV file of numbers, without a header")
          .optional(
              "from", &C::from,
              "send_receive: a rank, host or storage, or all (ranks at once, to one of those)")
          .optional("to", &C::to, "send_receive: likewise")
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
  transfer.byte_sums = precision == Precision::kInt8;
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
