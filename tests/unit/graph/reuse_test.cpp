// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/executions.h"

#include <gtest/gtest.h>

namespace orrery::reuse_test {
namespace {

Kernel moving(double read, double written) {
  Kernel kernel;
  kernel.read = Bytes(read);
  kernel.written = Bytes(written);
  return kernel;
}

OperatorGraph block_of(const std::vector<KernelId>& kernels) {
  OperatorGraph block;
  for (const KernelId id : kernels) {
    Operator op;
    op.work = id;
    block.add(op);
  }
  return block;
}

// Two layers of 100 + 10 and 50 bytes, then 7: between two steps of the same layer lie all 327.
TEST(Reuse, IsAllThatAStepTouches) {
  Program program;
  program.kernels = {moving(100, 10), moving(50, 0), moving(3, 4)};
  program.blocks = {block_of({0, 1}), block_of({2})};
  program.roles = {{"all", {0, 0, 1}, {0}}};
  set_reuse(program);
  for (const Kernel& kernel : program.kernels) EXPECT_EQ(kernel.reuse, Bytes(327));
}

TEST(Reuse, OfRolesThatShareAKernelTheSmallestCounts) {
  Program program;
  program.kernels = {moving(100, 0), moving(50, 0)};
  program.blocks = {block_of({0}), block_of({0, 1})};
  program.roles = {{"pp 0", {0}, {0}}, {"pp 1", {1}, {1}}};
  set_reuse(program);
  EXPECT_EQ(program.kernels[0].reuse, Bytes(100));
  EXPECT_EQ(program.kernels[1].reuse, Bytes(150));
}

TEST(Reuse, TransfersAreNoKernels) {
  Program program;
  program.kernels = {moving(100, 0)};
  OperatorGraph block = block_of({0});
  Operator op;
  op.kind = OperatorKind::kCollective;
  op.work = 5;
  block.add(op);
  program.blocks = {block};
  program.roles = {{"all", {0}, {0}}};
  set_reuse(program);
  EXPECT_EQ(program.kernels[0].reuse, Bytes(100));
}

}  // namespace
}  // namespace orrery::reuse_test
