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
    return *std::find_if(log.answers().begin(), log.answers().end(),
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
    EXPECT_EQ(served.log.answers().size(), requests.size());
    for (const Instance& instance : served.instances) EXPECT_EQ(instance.used_blocks(), 0);
    for (const ServedRequest& a : served.log.answers()) {
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

std::size_t chosen(const std::string& router, const std::vector<InstanceView>& views) {
  return Routers::at("router", router)()->choose(request(0, 1000, 1), views);
}

TEST(PrefixAware, TakesWhoKeepsMostOfThePrompt) {
  const Keeps little(200), much(700);
  EXPECT_EQ(chosen("prefix_aware", {{3, 3, 90, &little}, {9, 9, 900, &much}}), 1U);
  // A fifth is not enough: the fewest tokens count then.
  EXPECT_EQ(chosen("prefix_aware", {{3, 3, 900, &little}, {9, 9, 90, nullptr}}), 1U);
  // 65 requests apart, and more than half as many again: whoever keeps what.
  EXPECT_EQ(chosen("prefix_aware", {{0, 10, 90, nullptr}, {10, 65, 900, &much}}), 0U);
}

TEST(KvAware, WeighsWhatIsToComputeAgainstWhatIsHeld) {
  const Keeps some(400);
  EXPECT_EQ(chosen("kv_aware", {{0, 0, 5000, nullptr}, {0, 0, 5300, &some}}), 1U);
  EXPECT_EQ(chosen("kv_aware", {{0, 0, 5000, nullptr}, {0, 0, 5500, &some}}), 0U);
}

}  // namespace
}  // namespace orrery::handover_test
