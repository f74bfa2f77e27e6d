// SPDX-License-Identifier: Apache-2.0
// The simplest of each: static batches, round robin, Poisson arrivals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <tuple>

#include "sim/config/load.h"
#include "sim/serving/request_source.h"
#include "sim/serving/router.h"
#include "sim/serving/scheduler.h"

namespace orrery {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Keys that hold one of several structs, as an experiment would have them.
template <class Base>
struct Holder {
  std::optional<config::OneOf<Base>> of;
  static const config::Schema<Holder>& schema() {
    static const config::Schema<Holder> schema =
        config::Schema<Holder>("holder", "one of several").optional("of", &Holder::of, "which");
    return schema;
  }
};

template <class Base>
Holder<Base> read_of(const std::string& yaml) {
  config::Diagnostics diagnostics;
  const config::Node node = config::parse_yaml("of: " + yaml, "test.yaml", diagnostics);
  diagnostics.throw_if_errors();
  Holder<Base> holder = config::read<Holder<Base>>(node, diagnostics, config::default_library());
  diagnostics.throw_if_errors();
  return holder;
}

std::unique_ptr<RequestSource> source(const std::string& yaml) {
  return (*read_of<RequestSourceConfig>(yaml).of)->make();
}

std::unique_ptr<Scheduler> scheduler(const std::string& yaml) {
  return (*read_of<SchedulerConfig>(yaml).of)->make();
}

std::vector<Request> all_of(RequestSource& source) {
  std::vector<Request> all;
  while (const auto request = source.next()) all.push_back(*request);
  return all;
}

TEST(Poisson, HasTheRateAndTheSpreadOfItsProcess) {
  const auto requests = all_of(*source("{rate: 10 Hz, requests: 20000, input: 7, output: 3}"));
  ASSERT_EQ(requests.size(), 20000U);
  double last = 0, squares = 0;
  for (const Request& request : requests) {
    const double now = static_cast<double>(request.arrival) * 1e-12;
    EXPECT_GE(now, last);
    squares += (now - last) * (now - last);
    last = now;
  }
  // Gaps of 0.1 s: their sum has a deviation of 0.1 sqrt(20000), 0.7 %; the mean square of an
  // exponential gap is twice the square of its mean, with a deviation of sqrt(20 / 20000) of it.
  EXPECT_NEAR(last, 2000, 3 * 0.1 * std::sqrt(20000.0));
  EXPECT_NEAR(squares / 20000, 2 * 0.01, 3 * 0.02 * std::sqrt(5 / 20000.0));
  EXPECT_EQ(requests[5], (Request{5, requests[5].arrival, 7, 3}));
}

TEST(Poisson, SameSeedSameArrivals) {
  const auto times = [](const char* seed) {
    std::vector<Picoseconds> all;
    for (const Request& r : all_of(*source(std::string("{rate: 4 Hz, requests: 3, seed: ") + seed + "}")))
      all.push_back(r.arrival);
    return all;
  };
  EXPECT_EQ(times("1"), times("1"));
  EXPECT_NE(times("1"), times("2"));
  // By hand: gaps are -ln(u) / 4, u of SplitMix64 from seed 1.
  EXPECT_THAT(times("1"), ElementsAre(142042377596, 215372945637, 222729439355));
}

TEST(Poisson, RefusesARateOfNothing) {
  EXPECT_THROW(source("{rate: 0 Hz}"), config::ConfigError);
  EXPECT_THROW(source("{arrival: poison, rate: 1 Hz}"), config::ConfigError);
}

TEST(RoundRobin, TakesOneInstanceAfterTheOther) {
  const auto router = Routers::at("router", "round_robin")();
  const std::array<InstanceView, 3> instances{};
  std::vector<std::size_t> chosen;
  for (int i = 0; i < 4; ++i) chosen.push_back(router->choose({}, instances));
  EXPECT_THAT(chosen, ElementsAre(0, 1, 2, 0));
  EXPECT_THROW(Routers::at("router", "round_robbin"), config::KeyError);
}

Queue waiting(std::initializer_list<Request> requests) {
  Queue queue;
  for (const Request& request : requests) queue.waiting.push_back({request, 0, 0});
  return queue;
}

TEST(StaticBatch, RunsABatchToItsEndBeforeTheNext) {
  const auto engine = scheduler("{kind: static, max_num_seqs: 2}");
  Queue queue = waiting({{0, 0, 100, 1}, {1, 0, 50, 3}, {2, 0, 10, 1}});
  Batch batch;
  std::vector<Progress> finished;
  const auto step = [&] {
    engine->admit(queue, batch);
    const BatchShape shape = batch.shape(queue);
    const std::vector<Chunk> chunks(shape.chunks.begin(), shape.chunks.end());
    const BatchShape seen = shape;
    batch.ran(queue, finished);
    return std::tuple(chunks, seen.sequences, seen.context, seen.longest);
  };
  const std::vector<Chunk> prompts = {{100, 0, true}, {50, 0, true}};
  EXPECT_EQ(step(), std::tuple(prompts, 0, 0, 0));
  ASSERT_EQ(finished.size(), 1U);  // its only token is that of the prefill
  EXPECT_EQ(finished[0].request.id, 0);
  EXPECT_EQ(step(), std::tuple(std::vector<Chunk>(), 1, 50, 50));  // nobody joins
  EXPECT_EQ(step(), std::tuple(std::vector<Chunk>(), 1, 51, 51));
  ASSERT_EQ(finished.size(), 2U);
  EXPECT_EQ(finished[1].produced, 3);
  EXPECT_EQ(step(), std::tuple(std::vector<Chunk>{{10, 0, true}}, 0, 0, 0));
  engine->admit(queue, batch);
  EXPECT_EQ(batch.shape(queue).tokens(), 0);
}

TEST(Batch, APieceThatDoesNotEndItsPromptSamplesNothing) {
  Queue queue;
  queue.running = {{{0, 0, 100, 2}, 40, 0}, {{1, 0, 10, 5}, 12, 2}};
  Batch batch;
  batch.shares = {{0, 30}, {1, 1}};
  const BatchShape shape = batch.shape(queue);
  ASSERT_EQ(shape.chunks.size(), 1U);
  EXPECT_EQ(shape.chunks[0], (Chunk{30, 40, false}));
  EXPECT_EQ(shape.tokens(), 31);
  EXPECT_EQ(shape.longest, 12);
  std::vector<Progress> finished;
  batch.ran(queue, finished);
  EXPECT_EQ(queue.running[0].cached, 70);
  EXPECT_EQ(queue.running[0].produced, 0);
  EXPECT_EQ(queue.running[1].produced, 3);
}

}  // namespace
}  // namespace orrery
