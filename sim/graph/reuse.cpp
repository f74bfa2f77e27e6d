// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/reuse.h"

#include <algorithm>
#include <set>
#include <vector>

namespace orrery {
namespace {

/// Kernels of a block, a time for each operator.
std::vector<KernelId> kernels_of(const OperatorGraph& block) {
  std::vector<KernelId> kernels;
  for (OperatorId id = 0; id < block.size(); ++id)
    if (block[id].kind == OperatorKind::kCompute) kernels.push_back(block[id].work);
  return kernels;
}

}  // namespace

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
