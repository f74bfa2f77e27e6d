// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace orrery::verify_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Two roles, one stream for compute and one for communication, `transfers` all_reduces of both
/// roles.
Program two_roles(int transfers) {
  Program program;
  program.streams = {"compute", "communication"};
  program.ranks = 2;
  program.kernels.resize(1);
  for (int t = 0; t < transfers; ++t) {
    Transfer transfer;
    transfer.name = "t" + std::to_string(t);
    transfer.groups = {{0, 1}};
    transfer.participants = 2;
    program.transfers.push_back(transfer);
  }
  program.roles = {{"a", {}, {0}}, {"b", {}, {1}}};
  return program;
}

Operator compute(const std::string& name) {
  return {name, OperatorKind::kCompute, Category::kCompute, 0, 0};
}
Operator use(TransferId transfer, OperatorKind kind = OperatorKind::kCollective,
             StreamId stream = 1) {
  return {"use " + std::to_string(transfer), kind, Category::kCommunication, stream, transfer};
}

/// Adds a block whose operators follow each other.
BlockId chain(Program& program, const std::string& name, const std::vector<Operator>& operators) {
  OperatorGraph graph;
  for (const Operator& op : operators) {
    const OperatorId id = graph.add(op);
    if (id > 0) {
      graph.depends(id, id - 1);
    }
  }
  program.blocks.push_back(std::move(graph));
  program.block_names.push_back(name);
  return static_cast<BlockId>(program.blocks.size() - 1);
}

TEST(Verify, ASoundProgramHasNoFindings) {
  Program program = two_roles(2);
  const BlockId block = chain(program, "layer", {compute("qkv"), use(0), compute("mlp"), use(1)});
  program.roles[0].calls = program.roles[1].calls = {block, block, block};
  EXPECT_THAT(verify(program), IsEmpty());
}

TEST(Verify, NamesTheShortestCycle) {
  Program program = two_roles(0);
  OperatorGraph graph;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    graph.add(compute(name));
  }
  for (const auto& [later, earlier] : std::vector<std::pair<OperatorId, OperatorId>>{
           {1, 0}, {2, 1}, {0, 2}, {3, 2}, {4, 3}, {3, 4}, {5, 4}}) {
    graph.depends(later, earlier);
  }
  program.blocks.push_back(graph);
  program.block_names = {"backward"};
  EXPECT_THAT(verify(program),
              ElementsAre("block 'backward' has a cycle of 2 operators: 'd' -> 'e' -> 'd'"));
}

TEST(Verify, AnOperatorThatWaitsForItselfIsACycle) {
  Program program = two_roles(0);
  OperatorGraph graph;
  graph.depends(graph.add(compute("a")), 0);
  program.blocks.push_back(graph);
  EXPECT_THAT(verify(program),
              ElementsAre(HasSubstr("block 0 has a cycle of 1 operators: 'a' -> 'a'")));
}

TEST(Verify, FindsIdsOutOfRange) {
  Program program = two_roles(1);
  Operator unknown_kernel = compute("k");
  unknown_kernel.work = 7;
  chain(program, "f", {unknown_kernel, use(1), use(0, OperatorKind::kCollective, 2)});
  program.roles[0].calls = {3};
  program.roles[0].ranks = {0, 1, 2};
  program.transfers[0].groups = {{0, 5}};
  EXPECT_THAT(verify(program),
              ElementsAre("block 'f', operator 'k' names kernel 7, but there are 1",
                          "block 'f', operator 'use 1' names transfer 1, but there are 1",
                          "block 'f', operator 'use 0' names stream 2, but there are 2",
                          "role 'a' names block 3, but there are 1",
                          "role 'a' stands for rank 2, but there are 2",
                          "rank 1 belongs to role 'a' and to role 'b'",
                          "transfer 't0' names rank 5, but there are 2"));
}

TEST(Verify, ParticipantsMustCallEquallyOften) {
  Program program = two_roles(1);
  const BlockId once = chain(program, "once", {use(0)});
  const BlockId twice = chain(program, "twice", {use(0), use(0)});
  program.roles[0].calls = {twice, twice, once};
  program.roles[1].calls = {once, once, once, twice};
  EXPECT_THAT(verify(program), IsEmpty());  // 2 + 2 + 1 = 1 + 1 + 1 + 2
  program.roles[1].calls.pop_back();
  EXPECT_THAT(
      verify(program),
      ElementsAre("transfer 't0' is called 5 times by role 'a' (block 'twice', operator 'use "
                  "0'), but 3 times by role 'b' (block 'once', operator 'use 0')"));
}

TEST(Verify, AsManyRolesAsParticipantsMustUseATransfer) {
  Program program = two_roles(1);
  program.roles[0].calls = {chain(program, "f", {use(0)})};
  EXPECT_THAT(verify(program),
              ElementsAre(HasSubstr("has 2 participants, but 1 roles use it, first "
                                    "role 'a' (block 'f', operator 'use 0')")));
}

TEST(Verify, ASendNeedsAReceiveOnTheOtherRole) {
  Program program = two_roles(1);
  program.transfers[0].kind = TransferKind::kSendReceive;
  const BlockId send = chain(program, "send", {use(0, OperatorKind::kSend)});
  const BlockId receive = chain(program, "receive", {use(0, OperatorKind::kReceive)});
  program.roles[0].calls = {send};
  program.roles[1].calls = {receive};
  EXPECT_THAT(verify(program), IsEmpty());
  program.roles[1].calls = {send};
  EXPECT_THAT(verify(program), ElementsAre(HasSubstr("is sent by 2 roles and received by 0 of 2")));
  program.roles[1].calls = {receive};
  program.transfers[0].kind = TransferKind::kAllReduce;
  EXPECT_THAT(verify(program), ElementsAre(HasSubstr("a send_receive has one of each")));
}

TEST(Verify, ARoleUsesATransferOnOneStream) {
  Program program = two_roles(1);
  const BlockId both = chain(program, "f", {use(0), use(0, OperatorKind::kCollective, 0)});
  program.roles[0].calls = program.roles[1].calls = {both};
  EXPECT_THAT(verify(program), testing::Contains(HasSubstr("on two streams by role 'a'")));
}

TEST(Verify, MembersOfACommunicatorCallInOneOrder) {
  Program program = two_roles(2);
  const BlockId x = chain(program, "x", {use(0)});
  const BlockId y = chain(program, "y", {use(1)});
  const BlockId xy = chain(program, "xy", {use(0), use(1)});
  program.roles[0].calls = {xy, xy};
  program.roles[1].calls = {x, y, xy};  // other blocks, the same order
  EXPECT_THAT(verify(program), IsEmpty());
  program.roles[1].calls = {xy, y, x};
  EXPECT_THAT(
      verify(program),
      ElementsAre("members of a communicator call in different orders: call 3 is 't0' for role "
                  "'a' (block 'xy', operator 'use 0'), but 't1' for role 'b' (block 'y', "
                  "operator 'use 1')"));
}

TEST(Verify, StreamsHaveNoOrderAmongThem) {
  Program program = two_roles(2);
  const Operator other = use(1, OperatorKind::kCollective, 0);
  program.roles[0].calls = {chain(program, "xy", {use(0), other})};
  program.roles[1].calls = {chain(program, "yx", {other, use(0)})};
  EXPECT_THAT(verify(program), IsEmpty());
}

TEST(Verify, AMillionCallsAreNotUnrolled) {
  Program program = two_roles(2);
  const BlockId block = chain(program, "layer", {use(0), use(1), use(0), use(1)});
  const BlockId half = chain(program, "half", {use(0), use(1)});
  program.roles[0].calls.assign(1'000'000, block);
  program.roles[1].calls.assign(2'000'000, half);
  EXPECT_THAT(verify(program), IsEmpty());
  program.roles[1].calls.back() = chain(program, "reversed", {use(1), use(0)});
  EXPECT_THAT(verify(program), ElementsAre(HasSubstr("call 3999999 is 't0' for role 'a'")));
}

}  // namespace
}  // namespace orrery::verify_test
