// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/name_pool.h"

#include <gtest/gtest.h>

#include <string>

namespace orrery::name_pool_test {
namespace {

TEST(NamePool, KeepsANameOnceAndNumbersItInOrder) {
  NamePool names;
  EXPECT_EQ(names.add("leaf"), 0U);
  EXPECT_EQ(names.add(""), 1U);
  EXPECT_EQ(names.add("spine"), 2U);
  EXPECT_EQ(names.add("leaf"), 0U);
  EXPECT_EQ(names.size(), 3U);
  EXPECT_EQ(names.at(0), "leaf");
  EXPECT_EQ(names.at(1), "");
  EXPECT_EQ(names.at(2), "spine");
}

TEST(NamePool, NamesKeepTheirNumbersWhileItGrows) {
  NamePool names;
  for (int turn = 0; turn < 2; ++turn) {
    for (NameId i = 0; i < 5000; ++i)
      EXPECT_EQ(names.add("system" + std::to_string(i) + "/node0"), i);
  }
  EXPECT_EQ(names.size(), 5000U);
  EXPECT_EQ(names.at(4321), "system4321/node0");
}

TEST(NamePool, ATrimmedOneFindsItsNamesWhenTheNextIsAdded) {
  NamePool names;
  for (NameId i = 0; i < 40; ++i) names.add(std::to_string(i));
  names.trim();
  EXPECT_EQ(names.at(7), "7");
  EXPECT_EQ(names.add("7"), 7U);
  EXPECT_EQ(names.add("new"), 40U);
  EXPECT_EQ(names.size(), 41U);
}

}  // namespace
}  // namespace orrery::name_pool_test
