// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "sim/serving/handover.h"
#include "tests/unit/serving/fixture.h"

namespace orrery::handover_test {
namespace {

using test::Given;
using test::PricedBy;
using ::testing::HasSubstr;

constexpr Picoseconds kMs = 1'000'000'000;

/// 10 ms, whatever is computed.
Picoseconds constant(const BatchShape& /*shape*/) { return 10 * kMs; }

/// 1 MB a token over 1 GB/s: 1 ms a token.
KvPort port(Seconds latency = {}) {
  return {BytesPerSecond(1e9), latency, {.token = Bytes(1e6), .window = {}, .window_tokens = 0}};
}

struct Split {
  int prefill = 1, decode = 1;
  std::int64_t blocks = 1000;  ///< blocks of 16 tokens of each decode instance
  KvPort port = handover_test::port();
  int ranks = 1;
};

struct Served {
  ServingLog log;
  std::vector<Instance> instances;
  Bytes moved;

  const ServedRequest& of(std::int64_t id) const {
    return *std::find_if(log.served().begin(), log.served().end(),
                         [id](const ServedRequest& a) { return a.id == id; });
  }
};

Served serve(std::vector<Request> requests, const Split& split = {},
             const std::string& engine_keys = "{kind: vllm}") {
  const auto engine = test::engine_of(engine_keys);
  PricedBy pricer(constant);
  const EngineMemory memory = engine->memory();
  Served served;
  for (int i = 0; i < split.prefill + split.decode; ++i) {
    const bool prefill = i < split.prefill;
    const std::int64_t blocks = prefill ? 1000 : split.blocks;
    served.instances.emplace_back(
        *engine.object, pricer,
        InstanceRules{.kv = {memory.block_tokens, blocks, memory.prefix_caching},
                      .ranks = split.ranks,
                      .role = prefill ? InstanceRole::kPrefill : InstanceRole::kDecode});
  }
  const auto prompts = Routers::at("router", "round_robin")();
  const auto answers = Routers::at("router", "round_robin")();
  Handover handover(served.instances, *answers,
                    std::vector<KvPort>(served.instances.size(), split.port));
  Given source(std::move(requests));
  Service service(served.instances, *prompts, source, served.log, &handover);
  service.run();
  served.moved = handover.moved();
  return served;
}

Request request(std::int64_t id, std::int64_t prompt, std::int64_t output) {
  return {.id = id, .arrival = 0, .prompt = prompt, .output = output};
}

TEST(Handover, ACacheCrossesBeforeTheSecondToken) {
  const Served served = serve({request(0, 100, 3)}, {.port = port(Seconds(0.002))});
  const ServedRequest& a = served.of(0);
  EXPECT_EQ(a.first_token, 10 * kMs);
  EXPECT_EQ(a.moved, (10 + 100 + 2) * kMs);
  EXPECT_EQ(a.last_token, (10 + 100 + 2 + 2 * 10) * kMs);
  EXPECT_EQ(served.moved.base(), 100e6);
}

TEST(Handover, AnswersOfOneTokenStay) {
  const Served served = serve({request(0, 100, 1)});
  EXPECT_EQ(served.of(0).last_token, 10 * kMs);
  EXPECT_EQ(served.moved.base(), 0);
}

TEST(Handover, TwoCachesToOneInstanceGetHalfItsPortEach) {
  const Served served = serve({request(0, 100, 2), request(1, 100, 2)}, {.prefill = 2});
  EXPECT_EQ(served.of(0).moved, (10 + 200) * kMs);
  EXPECT_EQ(served.of(1).moved, (10 + 200) * kMs);
  const Served apart = serve({request(0, 100, 2), request(1, 100, 2)}, {.prefill = 2, .decode = 2});
  EXPECT_EQ(apart.of(0).moved, (10 + 100) * kMs);
  EXPECT_EQ(apart.of(1).moved, (10 + 100) * kMs);
}

TEST(Handover, RanksOfAnInstanceHavePortsOfTheirOwn) {
  const Served served = serve({request(0, 100, 2), request(1, 100, 2)}, {.prefill = 2, .ranks = 2});
  EXPECT_EQ(served.of(1).moved, (10 + 100) * kMs);
}

TEST(Handover, WhatHasNoRoomStaysWhereItIsUntilThereIsSome) {
  // 100 tokens and the next are 7 blocks: two of 10 do not fit.
  const Served served =
      serve({request(0, 100, 5), request(1, 100, 5)}, {.prefill = 2, .blocks = 10});
  EXPECT_EQ(served.of(0).moved, (10 + 100) * kMs);
  EXPECT_EQ(served.of(0).last_token, (10 + 100 + 4 * 10) * kMs);
  EXPECT_EQ(served.of(1).moved, (10 + 100 + 4 * 10 + 100) * kMs);
}

TEST(Handover, WhatIsKeptThereDoesNotCross) {
  const auto hashes = std::make_shared<const PrefixHashes>(PrefixHashes{64, {1, 2}});
  Request first = request(0, 128, 2), second = request(1, 160, 2);
  first.prefix = second.prefix = hashes;
  second.arrival = 1000 * kMs;
  const Served served = serve({first, second});
  EXPECT_EQ(served.of(1).moved, (1000 + 10 + 160 - 128) * kMs);
  EXPECT_EQ(served.moved.base(), 160e6);
}

TEST(Handover, WhatNeverFitsIsSaid) {
  EXPECT_THROW(
      try { serve({request(0, 100, 500)}, {.blocks = 10}); } catch (const std::overflow_error& e) {
        EXPECT_THAT(e.what(), HasSubstr("does not fit in a cache of 160 tokens"));
        throw;
      },
      std::overflow_error);
}

TEST(Handover, EveryEngineGoesOnWithWhatComes) {
  std::vector<Request> requests;
  std::int64_t tokens = 0;
  for (int i = 0; i < 60; ++i) {
    requests.push_back({.id = i,
                        .arrival = static_cast<Picoseconds>(i) * 5 * kMs,
                        .prompt = 20 + 7 * (i % 13),
                        .output = 1 + i % 17});
    tokens += requests.back().prompt * (i % 17 > 0 ? 1 : 0);
  }
  for (const char* engine : {"{kind: vllm}", "{kind: sglang}", "{kind: tensorrt_llm}",
                             "{kind: sarathi}", "{kind: orca}", "{kind: static}"}) {
    SCOPED_TRACE(engine);
    const Served served = serve(requests, {.prefill = 2, .decode = 2, .blocks = 400}, engine);
    EXPECT_EQ(served.log.served().size(), requests.size());
    for (const Instance& instance : served.instances) EXPECT_EQ(instance.used_blocks(), 0);
    for (const ServedRequest& a : served.log.served()) {
      if (a.output > 1) {
        EXPECT_LT(a.first_token, a.moved);
      }
      EXPECT_LE(a.first_token, a.last_token);
    }
    EXPECT_EQ(served.moved.base(), static_cast<double>(tokens) * 1e6);
  }
}

TEST(KvSize, OfWindowsGrowsUntilTheyAreFull) {
  const KvSize size{.token = Bytes(10), .window = Bytes(400), .window_tokens = 100};
  EXPECT_EQ(size.of(50).base(), 500 + 200);
  EXPECT_EQ(size.of(200).base(), 2000 + 400);
}

/// An instance that keeps some tokens of any prompt.
struct Keeps final : KeptPrefixes {
  explicit Keeps(std::int64_t count) : tokens(count) {}
  std::int64_t kept(const Request& request) const override {
    return std::min(tokens, request.prompt);
  }
  std::int64_t tokens;
};

/// Replicas of a fleet without load, of which each keeps what is given.
std::vector<InstanceView> idle(const std::vector<const KeptPrefixes*>& kept) {
  std::vector<InstanceView> views;
  for (std::size_t i = 0; i < kept.size(); ++i)
    views.push_back({.prefixes = kept[i], .instance = i});
  return views;
}

Request with_prefix(std::int64_t id, std::int64_t prompt, std::vector<std::uint64_t> pieces) {
  Request asked = request(id, prompt, 10);
  asked.prefix = std::make_shared<const PrefixHashes>(PrefixHashes{100, std::move(pieces)});
  return asked;
}

/// Has the router choose among idle replicas, and sends the request.
std::size_t send(Router& router, const Request& asked, const std::vector<InstanceView>& views) {
  const std::size_t chosen = router.choose(asked, views);
  router.sent(asked, views[chosen].instance);
  return chosen;
}

TEST(PrefixAware, FollowsThePrefixThatItHasSentBeforeItIsComputed) {
  const auto router = Routers::at("router", "prefix_aware")();
  const auto views = idle({nullptr, nullptr, nullptr});
  EXPECT_EQ(send(*router, with_prefix(0, 1000, {1, 2, 3, 4}), views), 0U);
  EXPECT_EQ(send(*router, with_prefix(1, 1000, {5, 6, 7, 8}), views), 1U);  // the fewest requests
  EXPECT_EQ(send(*router, with_prefix(2, 1000, {1, 2, 3, 4}), views), 0U);
  EXPECT_EQ(send(*router, with_prefix(3, 1000, {5, 6, 7, 8}), views), 1U);
  // Three tenths of a prompt are not enough: again the fewest requests.
  EXPECT_EQ(send(*router, with_prefix(4, 1000, {5, 6, 7, 9}), views), 2U);
}

TEST(PrefixAware, OutOfBalanceTheFewestRequestsCount) {
  const auto router = Routers::at("router", "prefix_aware")();
  const auto views = idle({nullptr, nullptr});
  for (int i = 0; i < 65; ++i)
    EXPECT_EQ(send(*router, with_prefix(i, 400, {1, 2, 3, 4}), views), 0U) << i;
  EXPECT_EQ(send(*router, with_prefix(65, 400, {1, 2, 3, 4}), views), 1U);
  router->prefilled(with_prefix(0, 400, {1, 2, 3, 4}));
  router->answered(with_prefix(0, 400, {1, 2, 3, 4}));
  EXPECT_EQ(send(*router, with_prefix(66, 400, {1, 2, 3, 4}), views), 0U);
}

TEST(KvAware, WeighsWhatIsToComputeAgainstWhatIsHeld) {
  const Keeps some(400);
  const auto router = Routers::at("router", "kv_aware")();
  const auto views = idle({nullptr, &some});
  EXPECT_EQ(send(*router, request(0, 1000, 1), views), 1U);  // 600 + 1000 against 1000 + 1000
  // Its 600 are still to be computed, and its 1,000 are held: 600 + 600 + 2000 against 2000.
  EXPECT_EQ(send(*router, request(1, 1000, 1), views), 0U);
  router->prefilled(request(1, 1000, 1));
  // 1000 + 2000 against 600 + 600 + 2000.
  EXPECT_EQ(send(*router, request(2, 1000, 1), views), 0U);
  router->answered(request(0, 1000, 1));
  EXPECT_EQ(send(*router, request(3, 1000, 1), views), 1U);
}

TEST(KvAware, APrefixThatRequestsShareIsHeldOnce) {
  const auto router = Routers::at("router", "kv_aware")();
  const Keeps all(900);
  const auto views = idle({&all, nullptr});
  // 100 to compute and 1,000 to hold; then 100 more of each, until 1,000 + 1,000 elsewhere are
  // less.
  std::vector<std::size_t> chosen;
  for (int i = 0; i < 6; ++i) {
    const Request asked = with_prefix(i, 1000, {1, 2, 3, 4, 5, 6, 7, 8, 9});
    chosen.push_back(send(*router, asked, views));
  }
  EXPECT_EQ(chosen, (std::vector<std::size_t>{0, 0, 0, 0, 0, 1}));
}

}  // namespace
}  // namespace orrery::handover_test
