// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/graph/costs.h"
#include "sim/graph/program.h"

namespace orrery {

/// Puts together small programs with their prices by hand.
class TestProgramBuilder {
 public:
  explicit TestProgramBuilder(std::vector<std::string> streams = {"compute", "communication"}) {
    program.streams = std::move(streams);
  }

  KernelId kernel(Picoseconds duration, Picoseconds launch = 0) {
    program.kernels.emplace_back().name = "kernel " + std::to_string(program.kernels.size());
    costs.kernels.push_back({duration, launch, Bound::kTensor});
    return static_cast<KernelId>(program.kernels.size() - 1);
  }
  std::uint32_t link(BytesPerSecond capacity) {
    costs.links.push_back(capacity);
    return static_cast<std::uint32_t>(costs.links.size() - 1);
  }
  TransferId transfer(const std::string& name, int participants, TransferCost cost = {},
                      TransferKind kind = TransferKind::kAllReduce) {
    Transfer transfer;
    transfer.name = name;
    transfer.kind = kind;
    transfer.participants = participants;
    transfer.purpose = "test";
    program.transfers.push_back(std::move(transfer));
    costs.transfers.push_back(std::move(cost));
    return static_cast<TransferId>(program.transfers.size() - 1);
  }
  BlockId block(OperatorGraph graph, const std::string& name = "block") {
    program.blocks.push_back(std::move(graph));
    program.block_names.push_back(name);
    return static_cast<BlockId>(program.blocks.size() - 1);
  }
  /// A block of operators in a chain: each depends on the one before.
  BlockId chain(const std::vector<Operator>& operators, const std::string& name = "block") {
    OperatorGraph graph;
    for (const Operator& op : operators) {
      const OperatorId id = graph.add(op);
      if (id > 0) {
        graph.depends(id, id - 1);
      }
    }
    return block(std::move(graph), name);
  }
  void role(std::vector<BlockId> calls) {
    const int rank = program.ranks++;
    program.roles.push_back({"role " + std::to_string(rank), std::move(calls), {rank}});
  }

  static Operator compute(KernelId kernel, Category category = Category::kCompute,
                          StreamId stream = 0) {
    return {"compute", OperatorKind::kCompute, category, stream, kernel};
  }
  static Operator collective(TransferId transfer, StreamId stream = 1,
                             const std::string& name = "collective") {
    return {name, OperatorKind::kCollective, Category::kCommunication, stream, transfer};
  }
  static Operator send(TransferId transfer, StreamId stream = 1) {
    return {"send", OperatorKind::kSend, Category::kCommunication, stream, transfer};
  }
  static Operator receive(TransferId transfer, StreamId stream = 1) {
    return {"receive", OperatorKind::kReceive, Category::kCommunication, stream, transfer};
  }

  Program program;
  Costs costs;
};

}  // namespace orrery
