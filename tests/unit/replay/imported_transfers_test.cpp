// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/imported_transfers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/unit/replay/graph_builder.h"

namespace orrery::imported_transfers_test {
namespace {

using test::GraphOf;
using test::message;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(ImportedTransfers, EachIsThereOnceHoweverOftenItHappens) {
  std::vector<GraphOf> ranks(2);
  for (GraphOf& rank : ranks)
    for (const double bytes : {100, 200, 100}) rank.collective(bytes);
  const ImportedRun run = test::run_of(ranks);
  const ImportedTransfers transfers(run);
  ASSERT_EQ(transfers.list().size(), 2U);
  EXPECT_EQ(transfers.list()[0].bytes, Bytes(100));
  EXPECT_EQ(transfers.list()[0].participants, 2);
  using Runs = std::pair<TransferId, std::uint64_t>;
  EXPECT_THAT(transfers.runs_of(1), ElementsAre(Runs{0, 2}, Runs{1, 1}));
}

TEST(ImportedTransfers, OnlyTheSenderOfAMessageRunsIt) {
  std::vector<GraphOf> ranks(2);
  ranks[0].communicates(NodeKind::kSend, message(1, 100));
  ranks[1].communicates(NodeKind::kReceive, message(0, 100));
  const ImportedRun run = test::run_of(ranks);
  const ImportedTransfers transfers(run);
  ASSERT_EQ(transfers.list().size(), 1U);
  EXPECT_THAT(transfers.list()[0].groups, ElementsAre(ElementsAre(0, 1)));
  EXPECT_EQ(transfers.of_message(Bytes(100), 0, 1), 0U);
  EXPECT_EQ(transfers.of_message(Bytes(100), 1, 0), ImportedTransfers::kNone);
  EXPECT_EQ(transfers.runs_of(0).size(), 1U);
  EXPECT_THAT(transfers.runs_of(1), IsEmpty());
}

TEST(ImportedTransfers, TheRootOfAGroupComesFirst) {
  GraphOf rank;
  ImportedMessage broadcast;
  broadcast.kind = TransferKind::kBroadcast;
  broadcast.bytes = Bytes(100);
  broadcast.group = 0;
  broadcast.root = 2;
  rank.communicates(NodeKind::kCollective, broadcast);
  ImportedRun run = test::run_of({rank});
  run.graph_of_rank = {0, 0, 0};
  run.groups = {{0, 1, 2}};
  EXPECT_THAT(ImportedTransfers(run).list()[0].groups, ElementsAre(ElementsAre(2, 0, 1)));
}

// The replay names the node.
TEST(ImportedTransfers, GroupsWithRanksThatAreNotThereAndUnknownSizesAreLeftOut) {
  GraphOf rank;
  rank.collective(100, {}, 0);
  rank.collective(0);
  rank.communicates(NodeKind::kSend, message(9, 100));
  ImportedRun run = test::run_of({rank});
  run.graph_of_rank = {0, 0};
  run.groups = {{0, 5}};
  EXPECT_THAT(ImportedTransfers(run).list(), IsEmpty());
}

}  // namespace
}  // namespace orrery::imported_transfers_test
