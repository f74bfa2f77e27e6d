// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/programs.h"

#include <string>
#include <utility>

#include "tests/bench/contest.h"

namespace orrery::bench {
namespace {

constexpr int kGroup = 8;
constexpr std::uint32_t kBlockOperators = 40;
constexpr std::uint32_t kKernels = 4096;

Operator compute(std::uint32_t kernel, StreamId stream) {
  return {"compute", OperatorKind::kCompute, Category::kCompute, stream, kernel};
}
Operator communicate(OperatorKind kind, TransferId transfer, StreamId stream) {
  return {"communicate", kind, Category::kCommunication, stream, transfer};
}

/// Kernels of up to 5 us, distinct to the picosecond.
void add_kernels(PricedProgram& p) {
  Random random(3);
  for (std::uint32_t k = 0; k < kKernels; ++k) {
    p.program.kernels.emplace_back();
    p.costs.kernels.push_back({1 + random(5'000'000), 1000, Bound::kTensor});
  }
}

TransferId add_transfer(PricedProgram& p, int participants, TransferCost cost, TransferKind kind) {
  Transfer transfer;
  transfer.kind = kind;
  transfer.participants = participants;
  p.program.transfers.push_back(std::move(transfer));
  p.costs.transfers.push_back(std::move(cost));
  return static_cast<TransferId>(p.program.transfers.size() - 1);
}

BlockId add_block(PricedProgram& p, OperatorGraph graph) {
  p.program.blocks.push_back(std::move(graph));
  return static_cast<BlockId>(p.program.blocks.size() - 1);
}

void add_role(PricedProgram& p, std::vector<BlockId> calls) {
  const int rank = p.program.ranks++;
  p.program.roles.push_back({std::to_string(rank), std::move(calls), {rank}});
}

OperatorGraph rendezvous_block(Random& random, const std::vector<TransferId>& transfers) {
  OperatorGraph graph;
  for (std::uint32_t i = 0; i < kBlockOperators; ++i) {
    const auto stream = static_cast<StreamId>(i % 4 == 3 ? 1 : 0);
    graph.add(i % 8 == 7 ? communicate(OperatorKind::kCollective, transfers[i / 8], stream)
                         : compute(static_cast<std::uint32_t>(random(kKernels)), stream));
    if (i > 0) {
      graph.depends(i, i - 1);
    }
    if (i > 1 && i % 2 == 0) {
      graph.depends(i, i - 2);
    }
  }
  return graph;
}

/// One micro-batch forward through the layers of a stage: compute on stream 0, tensor-parallel
/// collectives on 1.
OperatorGraph layer(Random& random, TransferId collective) {
  constexpr std::uint32_t kOperators = 48;
  OperatorGraph graph;
  for (std::uint32_t i = 0; i < kOperators; ++i) {
    const auto kernel = static_cast<std::uint32_t>(random(kKernels));
    graph.add(i % 3 == 2 ? communicate(OperatorKind::kCollective, collective, 1)
                         : compute(kernel, 0));
    if (i > 0) {
      graph.depends(i, i - (i % 3 == 0 && i > 1 ? 2 : 1));  // collectives overlap the next kernel
    }
  }
  return graph;
}

}  // namespace

PricedProgram rendezvous_program(int roles, int calls) {
  PricedProgram p;
  p.program.streams = {"compute", "communication"};
  add_kernels(p);
  Random random(5);
  std::vector<TransferId> transfers;
  for (int role = 0; role < roles; ++role) {
    if (role % kGroup == 0) {
      transfers.clear();
      for (std::uint32_t i = 0; i < kBlockOperators / 8; ++i) {
        transfers.push_back(
            add_transfer(p, kGroup, {1 + random(1'000'000), {}}, TransferKind::kAllReduce));
      }
    }
    const BlockId block = add_block(p, rendezvous_block(random, transfers));
    add_role(p, std::vector<BlockId>(static_cast<std::size_t>(calls), block));
  }
  return p;
}

PricedProgram training_program(int micro_batches) {
  constexpr int kStages = 9;
  constexpr int kLayers = 14;
  PricedProgram p;
  p.program.streams = {"compute", "collectives", "send", "receive"};
  add_kernels(p);
  Random random(7);
  std::vector<TransferId> messages;
  for (std::uint32_t stage = 0; stage < kStages; ++stage) {
    p.costs.links.insert(p.costs.links.end(), 2, BytesPerSecond(450e9));
    messages.push_back(add_transfer(p, 2, {5'000'000, {{2 * stage, 1e6}, {2 * stage + 1, 1e5}}},
                                    TransferKind::kSendReceive));
  }
  for (std::uint32_t stage = 0; stage < kStages; ++stage) {
    const TransferId collective =
        add_transfer(p, 1, {800'000, {{2 * stage, 3e5 + 1e3 * stage}}}, TransferKind::kAllReduce);
    std::vector<BlockId> calls;
    if (stage > 0) {
      OperatorGraph receive;
      receive.add(communicate(OperatorKind::kReceive, messages[stage - 1], 3));
      receive.depends(receive.add(compute(0, 0)), 0);
      calls.push_back(add_block(p, std::move(receive)));
    }
    calls.insert(calls.end(), kLayers, add_block(p, layer(random, collective)));
    if (stage + 1 < kStages) {
      OperatorGraph send;
      send.add(compute(0, 0));
      send.depends(send.add(communicate(OperatorKind::kSend, messages[stage], 2)), 0);
      calls.push_back(add_block(p, std::move(send)));
    }
    std::vector<BlockId> all;
    for (int m = 0; m < micro_batches; ++m) {
      all.insert(all.end(), calls.begin(), calls.end());
    }
    add_role(p, std::move(all));
  }
  return p;
}

PricedProgram template_program(int roles, int calls) {
  PricedProgram p;
  p.program.streams = {"compute", "communication"};
  add_kernels(p);
  Random random(9);
  const TransferId all = add_transfer(p, roles, {1'000'000, {}}, TransferKind::kAllReduce);
  std::vector<BlockId> blocks;
  for (int variant = 0; variant < 16; ++variant) {
    OperatorGraph graph;
    for (std::uint32_t i = 0; i < kBlockOperators; ++i) {
      const auto kernel = static_cast<std::uint32_t>(random(kKernels));
      graph.add(i == kBlockOperators / 2 ? communicate(OperatorKind::kCollective, all, 1)
                                         : compute(kernel, static_cast<StreamId>(i % 5 == 4)));
      if (i > 0) {
        graph.depends(i, i - 1);
      }
    }
    blocks.push_back(add_block(p, std::move(graph)));
  }
  for (int role = 0; role < roles; ++role) {
    const BlockId block = blocks[static_cast<std::size_t>(role) % blocks.size()];
    add_role(p, std::vector<BlockId>(static_cast<std::size_t>(calls), block));
  }
  return p;
}

}  // namespace orrery::bench
