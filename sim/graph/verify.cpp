// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/verify.h"

#include <fmt/core.h>
#include <algorithm>
#include <boost/graph/strong_components.hpp>
#include <limits>
#include <optional>
#include <queue>
#include <utility>

#include "sim/graph/frozen_block.h"
#include "sim/graph/memory_profile.h"
#include "sim/graph/operator_graph_boost.h"
#include "sim/graph/verify_order.h"

namespace orrery {
namespace {

using Findings = std::vector<std::string>;

std::string block_name(const Program& program, BlockId block) {
  if (block >= program.block_names.size()) return fmt::format("block {}", block);
  return fmt::format("block '{}'", program.block_names[block]);
}

std::string out_of(const char* what, std::size_t id, std::size_t count) {
  return fmt::format("names {} {}, but there are {}", what, id, count);
}

void check_operators(const Program& program, Findings& findings) {
  for (BlockId block = 0; block < program.blocks.size(); ++block) {
    const OperatorGraph& graph = program.blocks[block];
    for (OperatorId id = 0; id < graph.size(); ++id) {
      const Operator& op = graph[id];
      const std::string place = place_name(program, block, id) + " ";
      const bool compute = op.kind == OperatorKind::kCompute;
      const std::size_t works = compute ? program.kernels.size() : program.transfers.size();
      if (op.work >= works) {
        findings.push_back(place + out_of(compute ? "kernel" : "transfer", op.work, works));
      }
      if (op.stream >= program.streams.size()) {
        findings.push_back(place + out_of("stream", op.stream, program.streams.size()));
      }
    }
  }
}

void check_roles(const Program& program, Findings& findings) {
  std::vector<std::optional<std::size_t>> owner(
      static_cast<std::size_t>(std::max(0, program.ranks)));
  for (std::size_t r = 0; r < program.roles.size(); ++r) {
    const Role& role = program.roles[r];
    const std::string name = role_name(program, r) + " ";
    for (const BlockId block : role.calls) {
      if (block >= program.blocks.size()) {
        findings.push_back(name + out_of("block", block, program.blocks.size()));
        break;
      }
    }
    for (const int rank : role.ranks) {
      if (rank < 0 || rank >= program.ranks) {
        findings.push_back(
            fmt::format("{}stands for rank {}, but there are {}", name, rank, program.ranks));
        continue;
      }
      std::optional<std::size_t>& other = owner[static_cast<std::size_t>(rank)];
      if (other) {
        findings.push_back(fmt::format("rank {} belongs to {} and to {}", rank,
                                       role_name(program, *other), role_name(program, r)));
      }
      other = r;
    }
  }
}

void check_members(const Program& program, Findings& findings) {
  for (const Transfer& transfer : program.transfers) {
    if (transfer.participants < 1) {
      findings.push_back("transfer '" + transfer.name + "' has no participants");
    }
    for (const std::vector<int>& group : transfer.groups) {
      const auto unknown = std::find_if(
          group.begin(), group.end(), [&](int rank) { return rank < 0 || rank >= program.ranks; });
      if (unknown != group.end()) {
        findings.push_back(fmt::format("transfer '{}' names rank {}, but there are {}",
                                       transfer.name, *unknown, program.ranks));
      }
    }
  }
}

/// The operators from `start` to `last`, each reached from its `previous`.
std::vector<OperatorId> way_back(OperatorId last, OperatorId start,
                                 const std::vector<OperatorId>& previous) {
  std::vector<OperatorId> way;
  for (OperatorId at = last; at != start; at = previous[at]) way.push_back(at);
  way.push_back(start);
  return {way.rbegin(), way.rend()};
}

/// The shortest way from `start` back to itself, without the repetition of `start`; empty if there
/// is none.
std::vector<OperatorId> shortest_cycle_through(const OperatorGraph& graph, OperatorId start) {
  constexpr auto kUnseen = std::numeric_limits<OperatorId>::max();
  std::vector<OperatorId> previous(graph.size(), kUnseen);
  std::queue<OperatorId> open({start});
  while (!open.empty()) {
    const OperatorId from = open.front();
    open.pop();
    const auto [begin, end] = boost::out_edges(from, graph.graph());
    for (auto edge = begin; edge != end; ++edge) {
      const auto to = static_cast<OperatorId>(boost::target(*edge, graph.graph()));
      if (to == start) return way_back(from, start, previous);
      if (previous[to] == kUnseen) {
        previous[to] = from;
        open.push(to);
      }
    }
  }
  return {};
}

std::vector<OperatorId> shortest_cycle(const OperatorGraph& graph) {
  std::vector<std::size_t> component(graph.size());
  const auto map = boost::make_iterator_property_map(
      component.begin(), boost::get(boost::vertex_index, graph.graph()));
  const std::size_t components = boost::strong_components(graph.graph(), map);
  std::vector<std::size_t> members(components, 0);
  for (const std::size_t c : component) {
    ++members[c];
  }
  std::vector<OperatorId> shortest;
  for (OperatorId id = 0; id < graph.size(); ++id) {
    // A cycle lies within one component; one of a single operator can only be its dependency on
    // itself.
    if (members[component[id]] == 1 && !boost::edge(id, id, graph.graph()).second) {
      continue;
    }
    std::vector<OperatorId> cycle = shortest_cycle_through(graph, id);
    if (shortest.empty() || cycle.size() < shortest.size()) {
      shortest = std::move(cycle);
    }
  }
  return shortest;
}

void check_cycles(const Program& program, Findings& findings) {
  for (BlockId block = 0; block < program.blocks.size(); ++block) {
    const OperatorGraph& graph = program.blocks[block];
    if (execution_order(graph).size() == graph.size()) {
      continue;
    }
    const std::vector<OperatorId> cycle = shortest_cycle(graph);
    std::string way;
    for (const OperatorId id : cycle) way += "'" + graph[id].name + "' -> ";
    findings.push_back(fmt::format("{} has a cycle of {} operators: {}'{}'",
                                   block_name(program, block), cycle.size(), way,
                                   graph[cycle.front()].name));
  }
}

/// Transfers that one call of a block uses.
struct BlockUse {
  TransferId transfer = 0;
  std::uint64_t count = 0;
  OperatorId op = 0;  ///< the first
};

std::vector<BlockUse> uses_of_block(const OperatorGraph& graph) {
  std::vector<BlockUse> uses;
  for (OperatorId id = 0; id < graph.size(); ++id) {
    if (graph[id].kind != OperatorKind::kCompute) {
      uses.push_back({graph[id].work, 1, id});
    }
  }
  const auto same = [&graph](const BlockUse& a, const BlockUse& b) {
    return a.transfer == b.transfer && graph[a.op].kind == graph[b.op].kind &&
           graph[a.op].stream == graph[b.op].stream;
  };
  std::stable_sort(uses.begin(), uses.end(),
                   [](const BlockUse& a, const BlockUse& b) { return a.transfer < b.transfer; });
  std::vector<BlockUse> merged;
  for (const BlockUse& use : uses) {
    if (!merged.empty() && same(merged.back(), use)) {
      ++merged.back().count;
    } else {
      merged.push_back(use);
    }
  }
  return merged;
}

std::string use_name(const Program& program, const TransferUse& use) {
  return role_name(program, use.role) + " (" + place_name(program, use.block, use.op) + ")";
}

std::string transfer_name(const Program& program, TransferId transfer) {
  return "transfer '" + program.transfers[transfer].name + "'";
}

void check_kinds(const Program& program, TransferId transfer, const std::vector<TransferUse>& uses,
                 Findings& findings) {
  const auto count = [&uses](OperatorKind kind) {
    return std::count_if(uses.begin(), uses.end(),
                         [kind](const TransferUse& use) { return use.kind == kind; });
  };
  const auto sends = count(OperatorKind::kSend);
  const auto receives = count(OperatorKind::kReceive);
  if (sends == 0 && receives == 0) {
    return;
  }
  if (program.transfers[transfer].kind != TransferKind::kSendReceive || sends != 1 ||
      receives != 1 || uses.size() != 2) {
    findings.push_back(fmt::format(
        "{} is sent by {} roles and received by {} of {}, first {}; a send_receive has one of each "
        "and no other",
        transfer_name(program, transfer), sends, receives, uses.size(),
        use_name(program, uses.front())));
  }
}

/// Adds a use to those of the same role, which must use the transfer in one way and on one stream.
void add_use(const Program& program, TransferId transfer, const TransferUse& next,
             std::vector<TransferUse>& known, Findings& findings) {
  if (known.empty() || known.back().role != next.role) {
    known.push_back(next);
  } else if (known.back().kind != next.kind || known.back().stream != next.stream) {
    findings.push_back(fmt::format("{} is used in two ways or on two streams by {} and {}",
                                   transfer_name(program, transfer),
                                   use_name(program, known.back()), use_name(program, next)));
  } else {
    known.back().count += next.count;
  }
}

/// Counts the uses of every transfer, block by block. Adds a finding where a role uses one on
/// several streams or both sends and receives it.
TransferUses collect_uses(const Program& program, Findings& findings) {
  std::vector<std::vector<BlockUse>> by_block;
  for (const OperatorGraph& graph : program.blocks) {
    by_block.push_back(uses_of_block(graph));
  }
  TransferUses uses(program.transfers.size());
  std::vector<std::uint64_t> calls(program.blocks.size(), 0);
  for (std::uint32_t role = 0; role < program.roles.size(); ++role) {
    std::vector<BlockId> called;  // each block once, in order of first call
    for (const BlockId block : program.roles[role].calls) {
      if (calls[block]++ == 0) {
        called.push_back(block);
      }
    }
    for (const BlockId block : called) {
      for (const BlockUse& use : by_block[block]) {
        const Operator& op = program.blocks[block][use.op];
        const TransferUse next{role, use.count * calls[block], op.kind, op.stream, block, use.op};
        add_use(program, use.transfer, next, uses[use.transfer], findings);
      }
      calls[block] = 0;
    }
  }
  return uses;
}

/// Participants meet equally often; a message has one sender and one receiver.
void check_counts(const Program& program, const TransferUses& uses, Findings& findings) {
  for (TransferId t = 0; t < uses.size(); ++t) {
    if (uses[t].empty()) {
      continue;  // priced, but not part of this program: takes no time
    }
    const auto participants = static_cast<std::size_t>(program.transfers[t].participants);
    if (uses[t].size() != participants) {
      findings.push_back(fmt::format("{} has {} participants, but {} roles use it, first {}",
                                     transfer_name(program, t), participants, uses[t].size(),
                                     use_name(program, uses[t].front())));
      continue;
    }
    const TransferUse& first = uses[t].front();
    const auto other = std::find_if(uses[t].begin(), uses[t].end(), [&](const TransferUse& use) {
      return use.count != first.count;
    });
    if (other != uses[t].end()) {
      findings.push_back(fmt::format(
          "{} is called {} times by {}, but {} times by {}", transfer_name(program, t), first.count,
          use_name(program, first), other->count, use_name(program, *other)));
    }
    check_kinds(program, t, uses[t], findings);
  }
}

}  // namespace

std::string place_name(const Program& program, BlockId block, OperatorId op) {
  return block_name(program, block) + ", operator '" + program.blocks[block][op].name + "'";
}

std::string role_name(const Program& program, std::size_t role) {
  return "role '" + program.roles[role].name + "'";
}

std::vector<std::string> verify(const Program& program) {
  Findings findings;
  check_operators(program, findings);
  check_roles(program, findings);
  check_members(program, findings);
  if (findings.empty()) {
    check_cycles(program, findings);
  }
  if (findings.empty()) {
    const TransferUses uses = collect_uses(program, findings);
    check_counts(program, uses, findings);
    if (findings.empty()) {
      check_order(program, uses, findings);
    }
    for (std::string& fault : verify_tensors(program)) findings.push_back(std::move(fault));
  }
  return findings;
}

}  // namespace orrery
