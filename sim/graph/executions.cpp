// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/executions.h"

#include <algorithm>
#include <set>

namespace orrery {
namespace {

/// Calls of each block by the role.
std::vector<std::uint64_t> count_calls(const Program& program, const Role& role) {
  std::vector<std::uint64_t> calls(program.blocks.size());
  for (const BlockId block : role.calls) ++calls.at(block);
  return calls;
}

/// Calls `visit(kernel, runs)` with the runs on all ranks of all roles.
template <class Visit>
void each_kernel(const Program& program, Visit visit) {
  for (const Role& role : program.roles) {
    const auto ranks = static_cast<double>(role.ranks.size());
    each_run(count_executions(program, role).kernels, [&](std::size_t id, std::uint64_t runs) {
      visit(program.kernels[id], static_cast<double>(runs) * ranks);
    });
  }
}

/// Kernels of a block, a time for each operator.
std::vector<KernelId> kernels_of(const OperatorGraph& block) {
  std::vector<KernelId> kernels;
  for (OperatorId id = 0; id < block.size(); ++id)
    if (block[id].kind == OperatorKind::kCompute) kernels.push_back(block[id].work);
  return kernels;
}

}  // namespace

ExecutionCounts count_executions(const Program& program, const Role& role) {
  ExecutionCounts counts{std::vector<std::uint64_t>(program.kernels.size()),
                         std::vector<std::uint64_t>(program.transfers.size())};
  each_run(count_calls(program, role), [&](std::size_t block, std::uint64_t calls) {
    const OperatorGraph& graph = program.blocks[block];
    for (OperatorId id = 0; id < graph.size(); ++id) {
      const Operator& op = graph[id];
      if (op.kind == OperatorKind::kCompute) {
        counts.kernels.at(op.work) += calls;
      } else if (op.kind != OperatorKind::kReceive) {
        counts.transfers.at(op.work) += calls;
      }
    }
  });
  for (const auto& [kernel, runs] : role.runs.kernels) counts.kernels.at(kernel) += runs;
  for (const auto& [transfer, runs] : role.runs.transfers) counts.transfers.at(transfer) += runs;
  return counts;
}

std::map<Precision, Flops> executed_matrix_flops(const Program& program) {
  std::map<Precision, Flops> flops;
  each_kernel(program, [&](const Kernel& kernel, double runs) {
    if (kernel.matrix_flops.base() > 0) flops[kernel.precision] += kernel.matrix_flops * runs;
  });
  return flops;
}

Flops executed_recurrence_flops(const Program& program) {
  Flops flops;
  each_kernel(program, [&](const Kernel& kernel, double runs) {
    const bool on_lanes = kernel.kind == KernelClass::kScan && kernel.matrix_flops.base() == 0;
    if (on_lanes) flops += kernel.vector_flops * runs;
  });
  return flops;
}

void set_reuse(Program& program) {
  std::vector<std::vector<KernelId>> kernels;
  std::vector<Bytes> touched;
  for (const OperatorGraph& block : program.blocks) {
    kernels.push_back(kernels_of(block));
    Bytes bytes;
    for (const KernelId id : kernels.back())
      bytes += program.kernels[id].read + program.kernels[id].written;
    touched.push_back(bytes);
  }
  for (const Role& role : program.roles) {
    Bytes step;
    for (const BlockId block : role.calls) step += touched[block];
    for (const BlockId block : std::set<BlockId>(role.calls.begin(), role.calls.end())) {
      for (const KernelId id : kernels[block]) {
        Bytes& reuse = program.kernels[id].reuse;
        reuse = reuse.base() == 0 ? step : std::min(reuse, step);
      }
    }
  }
}

}  // namespace orrery
