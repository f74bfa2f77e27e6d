// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/verify_transfers.h"

#include <algorithm>

namespace orrery {
namespace {

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
                 std::vector<std::string>& findings) {
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
    findings.push_back(transfer_name(program, transfer) + " is sent by " + std::to_string(sends) +
                       " roles and received by " + std::to_string(receives) + " of " +
                       std::to_string(uses.size()) + ", first " + use_name(program, uses.front()) +
                       "; a send_receive has one of each and no other");
  }
}

/// Adds a use to those of the same role, which must use the transfer in one way and on one stream.
void add_use(const Program& program, TransferId transfer, const TransferUse& next,
             std::vector<TransferUse>& known, std::vector<std::string>& findings) {
  if (known.empty() || known.back().role != next.role) {
    known.push_back(next);
  } else if (known.back().kind != next.kind || known.back().stream != next.stream) {
    findings.push_back(transfer_name(program, transfer) +
                       " is used in two ways or on two streams by " +
                       use_name(program, known.back()) + " and " + use_name(program, next));
  } else {
    known.back().count += next.count;
  }
}

}  // namespace

TransferUses collect_uses(const Program& program, std::vector<std::string>& findings) {
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

void check_counts(const Program& program, const TransferUses& uses,
                  std::vector<std::string>& findings) {
  for (TransferId t = 0; t < uses.size(); ++t) {
    if (uses[t].empty()) {
      continue;  // priced, but not part of this program: takes no time
    }
    const auto participants = static_cast<std::size_t>(program.transfers[t].participants);
    if (uses[t].size() != participants) {
      findings.push_back(transfer_name(program, t) + " has " + std::to_string(participants) +
                         " participants, but " + std::to_string(uses[t].size()) +
                         " roles use it, first " + use_name(program, uses[t].front()));
      continue;
    }
    const TransferUse& first = uses[t].front();
    const auto other = std::find_if(uses[t].begin(), uses[t].end(), [&](const TransferUse& use) {
      return use.count != first.count;
    });
    if (other != uses[t].end()) {
      findings.push_back(transfer_name(program, t) + " is called " + std::to_string(first.count) +
                         " times by " + use_name(program, first) + ", but " +
                         std::to_string(other->count) + " times by " + use_name(program, *other));
    }
    check_kinds(program, t, uses[t], findings);
  }
}

}  // namespace orrery
