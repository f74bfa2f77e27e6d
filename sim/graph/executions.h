// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/graph/program.h"

namespace orrery {

/// How often each kernel and transfer of a program runs.
struct ExecutionCounts {
  std::vector<std::uint64_t> kernels;    ///< runs by KernelId, on one rank of the role
  std::vector<std::uint64_t> transfers;  ///< posts of the role by TransferId (a receive is none)
};

/// Runs on one rank of `role`, over all its calls.
ExecutionCounts count_executions(const Program& program, const Role& role);

/// `visit(id, runs)` for each kernel or transfer that runs, by ascending id.
template <class Visit>
void each_run(const std::vector<std::uint64_t>& runs, Visit visit) {
  for (std::size_t id = 0; id < runs.size(); ++id) {
    if (runs[id] > 0) visit(id, runs[id]);
  }
}

/// FLOPs of matrix units in all kernels that run, over all ranks of all roles, by the precision of
/// their operands.
std::map<Precision, Flops> executed_matrix_flops(const Program& program);

/// FLOPs of recurrences that run on vector lanes whole, over all ranks of all roles.
Flops executed_recurrence_flops(const Program& program);

/// Sets Kernel::reuse of all kernels of a program: weights and cached tokens are touched once a
/// step, so between two times lies all that the role reads and writes in it. Of roles that share a
/// kernel, the one that touches least counts.
void set_reuse(Program& program);

}  // namespace orrery
