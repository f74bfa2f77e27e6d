// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/executions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace orrery::executions_test {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

Operator operator_of(OperatorKind kind, std::uint32_t work) {
  Operator op;
  op.kind = kind;
  op.work = work;
  return op;
}

OperatorGraph block_of(const std::vector<Operator>& operators) {
  OperatorGraph block;
  for (const Operator& op : operators) block.add(op);
  return block;
}

/// Two roles of 3 and 1 ranks; kernels of 10, 100 and 1000 FLOPs, of which nobody runs the last.
Program two_roles() {
  Program program;
  for (const double flops : {10.0, 100.0, 1000.0}) {
    Kernel kernel;
    kernel.matrix_flops = Flops(flops);
    program.kernels.push_back(kernel);
  }
  program.transfers.resize(2);
  program.blocks = {
      block_of({operator_of(OperatorKind::kCompute, 0), operator_of(OperatorKind::kSend, 0)}),
      block_of({operator_of(OperatorKind::kReceive, 0), operator_of(OperatorKind::kCompute, 0),
                operator_of(OperatorKind::kCompute, 1),
                operator_of(OperatorKind::kCollective, 1)})};
  program.roles = {{"first", {0, 0, 0}, {0, 1, 2}}, {"second", {1, 0, 1}, {3}}};
  return program;
}

TEST(Executions, AreThoseOfABlockTimesItsCalls) {
  const Program program = two_roles();
  const ExecutionCounts first = count_executions(program, program.roles[0]);
  EXPECT_THAT(first.kernels, ElementsAre(3, 0, 0));
  EXPECT_THAT(first.transfers, ElementsAre(3, 0));
  const ExecutionCounts second = count_executions(program, program.roles[1]);
  EXPECT_THAT(second.kernels, ElementsAre(3, 2, 0));
}

TEST(Executions, OfATransferArePostsNotReceives) {
  const Program program = two_roles();
  // One send in the call of block 0; the two receives of block 1 are the other end of sends.
  EXPECT_THAT(count_executions(program, program.roles[1]).transfers, ElementsAre(1, 2));
}

TEST(Executions, AreVisitedByAscendingIdWithoutThoseThatNeverRun) {
  const Program program = two_roles();
  std::vector<std::pair<std::size_t, std::uint64_t>> seen;
  each_run(count_executions(program, program.roles[1]).kernels,
           [&](std::size_t id, std::uint64_t runs) { seen.emplace_back(id, runs); });
  EXPECT_THAT(seen, ElementsAre(Pair(0, 3), Pair(1, 2)));
}

TEST(Executions, HaveTheFlopsOfAllRanksOfTheirRole) {
  // 3 ranks x 3 runs x 10 FLOPs, and 1 rank x (3 x 10 + 2 x 100).
  EXPECT_THAT(executed_matrix_flops(two_roles()),
              ElementsAre(Pair(Precision::kBf16, Flops(90 + 230))));
}

TEST(Executions, RecurrencesOnVectorLanesCountAsOnesOfMatrixUnits) {
  Program program = two_roles();
  program.kernels[1].kind = KernelClass::kScan;
  program.kernels[1].vector_flops = Flops(7);
  EXPECT_EQ(executed_recurrence_flops(program), Flops());  // its products run on matrix units
  program.kernels[1].matrix_flops = Flops();
  EXPECT_EQ(executed_recurrence_flops(program), Flops(2 * 7));
}

}  // namespace
}  // namespace orrery::executions_test
