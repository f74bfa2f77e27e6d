// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/verify.h"

#include <algorithm>
#include <boost/graph/strong_components.hpp>
#include <limits>
#include <optional>
#include <queue>
#include <utility>

#include "sim/graph/frozen_block.h"
#include "sim/graph/memory_profile.h"
#include "sim/graph/operator_graph_boost.h"
#include "sim/graph/verify_transfers.h"

namespace orrery {
namespace {

using Findings = std::vector<std::string>;

std::string block_name(const Program& program, BlockId block) {
  return "block " + (block < program.block_names.size() ? "'" + program.block_names[block] + "'"
                                                        : std::to_string(block));
}

std::string out_of(const char* what, std::size_t id, std::size_t count) {
  return std::string("names ") + what + " " + std::to_string(id) + ", but there are " +
         std::to_string(count);
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
        findings.push_back(name + "stands for rank " + std::to_string(rank) + ", but there are " +
                           std::to_string(program.ranks));
        continue;
      }
      std::optional<std::size_t>& other = owner[static_cast<std::size_t>(rank)];
      if (other) {
        findings.push_back("rank " + std::to_string(rank) + " belongs to " +
                           role_name(program, *other) + " and to " + role_name(program, r));
      }
      other = r;
    }
  }
}

void check_members(const Program& program, Findings& findings) {
  for (const Transfer& transfer : program.transfers) {
    const std::string name = "transfer '" + transfer.name + "' ";
    if (transfer.participants < 1) {
      findings.push_back(name + "has no participants");
    }
    for (const std::vector<int>& group : transfer.groups) {
      const auto unknown = std::find_if(
          group.begin(), group.end(), [&](int rank) { return rank < 0 || rank >= program.ranks; });
      if (unknown != group.end()) {
        findings.push_back(name + "names rank " + std::to_string(*unknown) + ", but there are " +
                           std::to_string(program.ranks));
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
    std::string text = block_name(program, block) + " has a cycle of " +
                       std::to_string(cycle.size()) + " operators: ";
    for (const OperatorId id : cycle) {
      text += "'" + graph[id].name + "' -> ";
    }
    findings.push_back(text + "'" + graph[cycle.front()].name + "'");
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
