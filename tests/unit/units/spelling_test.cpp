// SPDX-License-Identifier: Apache-2.0
#include "sim/units/spelling.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace orrery::spelling_test {
namespace {

TEST(EditDistance, CountsEachKindOfEditOnce) {
  EXPECT_EQ(edit_distance("memory", "memory", 2), 0);
  EXPECT_EQ(edit_distance("memry", "memory", 2), 1);    // insertion
  EXPECT_EQ(edit_distance("memorry", "memory", 2), 1);  // deletion
  EXPECT_EQ(edit_distance("memary", "memory", 2), 1);   // substitution
  EXPECT_EQ(edit_distance("mmeory", "memory", 2), 1);   // swap
  EXPECT_EQ(edit_distance("mmeorry", "memory", 2), 2);
}

TEST(EditDistance, StopsAtTheLimit) {
  EXPECT_EQ(edit_distance("abcdef", "uvwxyz", 2), 3);
  EXPECT_EQ(edit_distance("", "abcdef", 2), 3);
  EXPECT_EQ(edit_distance("", "ab", 2), 2);
}

TEST(EditDistance, IsSymmetric) {
  EXPECT_EQ(edit_distance("bandwith", "bandwidth", 3), edit_distance("bandwidth", "bandwith", 3));
  EXPECT_EQ(edit_distance("ca", "abc", 5), edit_distance("abc", "ca", 5));
}

TEST(NearestName, FindsTheNearestWithinTwoEdits) {
  EXPECT_EQ(nearest_name("bandwith", {"capacity", "bandwidth"}), "bandwidth");
  EXPECT_EQ(nearest_name("bnadwith", {"capacity", "bandwidth"}), "bandwidth");
  EXPECT_EQ(nearest_name("speed", {"capacity", "bandwidth"}), "");
  EXPECT_EQ(nearest_name("latency", {}), "");
}

TEST(NearestName, ShortWordsMustBeNearer) {
  EXPECT_EQ(nearest_name("tpp", {"tp", "dp"}), "tp");
  EXPECT_EQ(nearest_name("xy", {"tp"}), "");
}

TEST(NearestName, AWholeWordAtAnEndComesBeforeTwoEdits) {
  EXPECT_EQ(nearest_name("h100", {"h100_1g", "dgx_h100", "b200", "dgx_h100_long"}), "dgx_h100");
  EXPECT_EQ(nearest_name("qwen3_vl", {"qwen3_8b", "qwen3_vl_8b"}), "qwen3_vl_8b");
  EXPECT_EQ(nearest_name("h100", {"dgx_h100", "h10"}), "h10");  // one edit
  EXPECT_EQ(nearest_name("h100", {"dgxh100", "h100x"}), "h100x");
}

TEST(NearestName, AWordStandsForThePathThatEndsWithIt) {
  EXPECT_EQ(nearest_name("tp", {"parallel.tp", "serving.fleet.0.parallel.tp"}), "parallel.tp");
  EXPECT_EQ(nearest_name("micro", {"macro", "batch.micro"}), "batch.micro");
  EXPECT_EQ(nearest_name("tp", {"parallel.etp", "parallel.dp"}), "");
}

TEST(NearestName, CaseDecidesOnlyBetweenEquals) {
  EXPECT_EQ(nearest_name("BF16", {"fp16", "bf16"}), "bf16");
  EXPECT_EQ(nearest_name("GBps", {"Gb/s", "GB/s"}), "GB/s");
  EXPECT_EQ(nearest_name("Gbps", {"GB/s", "Gb/s"}), "Gb/s");
}

TEST(LikeNames, HaveTheWordOrBeginAsItDoes) {
  const std::vector<std::string> systems = {"colossus", "colossus_200k", "cortex", "dgx_h100",
                                            "h100_1g"};
  using Names = std::vector<std::string>;
  EXPECT_EQ(like_names("colosus", systems, 5), (Names{"colossus", "colossus_200k"}));
  EXPECT_EQ(like_names("H100", systems, 5), (Names{"dgx_h100", "h100_1g"}));
  EXPECT_EQ(like_names("H100", systems, 1), (Names{"dgx_h100"}));
  EXPECT_EQ(like_names("weather", systems, 5), Names{});
}

TEST(NamesInstead, AreAllWhereThereAreFewElseThoseLikeIt) {
  EXPECT_EQ(names_instead("rnig", {"ring", "tree"}), "there are: ring, tree");
  std::vector<std::string> many = {"colossus", "colossus_200k"};
  for (int i = 0; i < 40; ++i) many.push_back("other" + std::to_string(i));
  EXPECT_EQ(names_instead("colosus", many), "like it: colossus, colossus_200k");
  EXPECT_EQ(names_instead("x", many), "");
  many[1] = "cortex";
  EXPECT_EQ(names_instead("colosus", many), "");  // nearest_name() says that one
  EXPECT_EQ(names_instead("x", {}), "");
}

}  // namespace
}  // namespace orrery::spelling_test
