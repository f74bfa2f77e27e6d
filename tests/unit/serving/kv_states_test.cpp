// SPDX-License-Identifier: Apache-2.0
// States of recurrent layers in the pool: of requests that run, and copies at the ends of pieces.
#include <gtest/gtest.h>

#include <memory>

#include "sim/serving/kv_pool.h"

namespace orrery::kv_states_test {
namespace {

/// Blocks of 16 tokens, states of 10 blocks, kept every 64 tokens.
KvRules rules(std::int64_t blocks) {
  KvRules rules{16, blocks, true};
  rules.state_blocks = 10;
  rules.state_tokens = 60;  // hashes come every 16 tokens: the next is at 64
  return rules;
}

/// A prompt whose first tokens it has in common with all of them.
RequestState prompt(std::int64_t tokens) {
  auto prefix = std::make_shared<PrefixHashes>(PrefixHashes{16, {}});
  for (std::int64_t i = 0; i < tokens / 16; ++i)
    prefix->pieces.push_back(static_cast<std::uint64_t>(i) + 7);
  return {.request = {.id = 0, .prompt = tokens, .output = 1, .prefix = prefix}};
}

void compute(KvPool& pool, RequestState& state) {
  ASSERT_TRUE(pool.grow(state, state.missing()));
  state.cached = state.request.prompt;
}

TEST(KvStates, ARequestHasBlocksForItsStatesWhileItRuns) {
  KvPool pool(rules(100));
  RequestState state = prompt(33);
  compute(pool, state);
  EXPECT_EQ(pool.used(), 3 + 10);
  ASSERT_TRUE(pool.grow(state, 16));  // no second state
  EXPECT_EQ(pool.used(), 4 + 10);
  pool.release(state);
  EXPECT_EQ(pool.used(), 0);
  EXPECT_EQ(pool.available(), 100);
}

TEST(KvStates, StatesThatAreSetAsideTakeNoBlocks) {
  KvRules apart = rules(100);
  apart.states_apart = true;
  KvPool pool(apart);
  RequestState state = prompt(33);
  compute(pool, state);
  EXPECT_EQ(pool.used(), 3);
}

TEST(KvStates, ARequestMustFitWithItsStates) {
  const RequestState state = prompt(33);
  EXPECT_FALSE(KvPool(rules(12)).fits_alone(state.request));
  EXPECT_TRUE(KvPool(rules(13)).fits_alone(state.request));
}

TEST(KvStates, PiecesEndWhereStatesAreKeptAndTakeRoomForThem) {
  KvPool pool(rules(100));
  RequestState first = prompt(200);
  compute(pool, first);
  pool.publish(first);
  EXPECT_EQ(first.shared, 3);  // 192 tokens
  EXPECT_EQ(pool.used(), 13 + 10 + 3 * 10);
  RequestState second = prompt(150);
  pool.find_prefix(second);
  EXPECT_EQ(second.cached, 128);
  pool.release(first);
  pool.release(second);
  EXPECT_EQ(pool.used(), 0);
  RequestState third = prompt(65);
  EXPECT_EQ(pool.kept(third.request), 64);
}

TEST(KvStates, APieceForWhoseStateThereIsNoRoomIsNotKept) {
  KvPool pool(rules(24));
  RequestState state = prompt(200);
  compute(pool, state);  // 13 + 10 of 24
  pool.publish(state);
  EXPECT_EQ(state.shared, 0);
  EXPECT_EQ(pool.used(), 23);
  pool.release(state);
  EXPECT_EQ(pool.available(), 24);
}

TEST(KvStates, KeptPiecesGiveTheirStatesBackWhenTheirBlocksAreNeeded) {
  KvPool pool(rules(60));
  RequestState first = prompt(200);
  compute(pool, first);
  pool.release(first);  // keeps 12 + 30
  RequestState other = prompt(500);
  other.request.adapter = 1;  // shares none
  ASSERT_TRUE(pool.grow(other, 500));
  EXPECT_EQ(pool.used(), 32 + 10);
  EXPECT_EQ(pool.available(), 18);
}

}  // namespace
}  // namespace orrery::kv_states_test
