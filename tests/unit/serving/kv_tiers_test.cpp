// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "sim/serving/kv_pool.h"

namespace orrery::kv_tiers_test {
namespace {

/// A request whose prompt has so many pieces of 4 tokens, and one token more; pieces of different
/// `text` differ.
RequestState prompt(std::uint64_t text, std::int64_t pieces) {
  auto prefix = std::make_shared<PrefixHashes>(PrefixHashes{4, {}});
  for (std::int64_t i = 0; i < pieces; ++i)
    prefix->pieces.push_back(100 * text + static_cast<std::uint64_t>(i));
  return {.request = {.id = 0, .prompt = 4 * pieces + 1, .output = 1, .prefix = prefix}};
}

/// Computes what is missing of a prompt, and ends it. @return tokens that were found
std::int64_t serve(KvPool& pool, std::uint64_t text, std::int64_t pieces) {
  RequestState state = prompt(text, pieces);
  pool.find_prefix(state);
  const std::int64_t found = state.cached;
  EXPECT_TRUE(pool.grow(state, state.missing()));
  state.cached = state.request.prompt;
  pool.release(state);
  EXPECT_EQ(pool.used(), 0);
  return found;
}

/// Blocks of 4 tokens.
KvPool pool_of(std::int64_t blocks, std::vector<KvTierRules> tiers) {
  return KvPool({4, blocks, true, 0, std::move(tiers)});
}

TEST(KvTiers, WhatIsEvictedComesBackAtThePriceOfItsTokens) {
  KvPool pool = pool_of(5, {{1000, Seconds(2e-6), Seconds(1e-5)}});
  EXPECT_EQ(serve(pool, 1, 4), 0);
  EXPECT_EQ(serve(pool, 2, 4), 0);  // takes the blocks of the first
  EXPECT_EQ(pool.take_load_time().base(), 0);
  EXPECT_EQ(serve(pool, 1, 4), 16);
  EXPECT_EQ(pool.loaded_tokens(), 16);
  EXPECT_NEAR(pool.take_load_time().base(), 1e-5 + 16 * 2e-6, 1e-12);
  EXPECT_EQ(pool.take_load_time().base(), 0);  // once
}

TEST(KvTiers, WithoutThemItIsGone) {
  KvPool pool = pool_of(5, {});
  serve(pool, 1, 4);
  serve(pool, 2, 4);
  EXPECT_EQ(serve(pool, 1, 4), 0);
}

TEST(KvTiers, HoldNoMoreThanTheyHaveRoomFor) {
  // Of four pieces the first two are the last to go: a prompt is of no use without its beginning.
  KvPool pool = pool_of(5, {{8, Seconds(1e-6), {}}});
  serve(pool, 1, 4);
  serve(pool, 2, 4);
  EXPECT_EQ(serve(pool, 1, 4), 8);
}

TEST(KvTiers, WhatATierHasNoRoomForGoesToTheNext) {
  KvPool pool = pool_of(5, {{8, Seconds(1e-6), {}}, {1000, Seconds(1e-5), {}}});
  serve(pool, 1, 4);
  serve(pool, 2, 4);
  EXPECT_EQ(serve(pool, 1, 4), 16);
  // Both are read at once, and the slower decides.
  EXPECT_NEAR(pool.take_load_time().base(), 8 * 1e-5, 1e-12);
}

TEST(KvTiers, NothingComesBackWhereBlocksAreHeld) {
  KvPool pool = pool_of(6, {{1000, Seconds(1e-6), {}}});
  serve(pool, 1, 4);
  RequestState long_one = prompt(2, 5);
  ASSERT_TRUE(pool.grow(long_one, 21));  // all six blocks
  RequestState again = prompt(1, 4);
  pool.find_prefix(again);
  EXPECT_EQ(again.cached, 0);
}

}  // namespace
}  // namespace orrery::kv_tiers_test
