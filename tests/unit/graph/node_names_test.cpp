// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/node_names.h"

#include <gtest/gtest.h>

#include <string>

namespace orrery::node_names_test {
namespace {

TEST(NodeNames, NamesThatComeAgainKeepTheirNumber) {
  NodeNames names;
  NamesInStream stream;
  for (int turn = 0; turn < 2000; ++turn)
    for (NodeNames::Number i = 0; i < 40; ++i)
      EXPECT_EQ(stream.add(names, "layer" + std::to_string(i)), i);
  EXPECT_EQ(names.size(), 40U);
  EXPECT_EQ(names.at(7), "layer7");
}

TEST(NodeNames, NamesThatAllDifferAreKeptAsTheyCome) {
  NodeNames names;
  NamesInStream stream;
  for (NodeNames::Number i = 0; i < 100'000; ++i)
    ASSERT_EQ(stream.add(names, "node" + std::to_string(i)), i);
  for (NodeNames::Number i = 0; i < 100'000; i += 997)
    EXPECT_EQ(names.at(i), "node" + std::to_string(i));
}

// Once names differ, some that repeat may be kept again, but no more than until it looks next.
TEST(NodeNames, WhereNamesBeginToRepeatTheyAreSoonKeptOnce) {
  NodeNames names;
  NamesInStream stream;
  for (int i = 0; i < 20'000; ++i) stream.add(names, "node" + std::to_string(i));
  for (int i = 0; i < 1'000'000; ++i) stream.add(names, "again");
  EXPECT_LT(names.size(), 20'000U + 2 * 16 * 1024U);
  const NodeNames::Number number = stream.add(names, "again");
  EXPECT_EQ(stream.add(names, "again"), number);
}

}  // namespace
}  // namespace orrery::node_names_test
