// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "sim/serving/autoscaler.h"
#include "tests/unit/serving/fixture.h"

namespace orrery::autoscaler_test {
namespace {

constexpr Picoseconds kSecond = 1'000'000'000'000;

/// Four instances, one of which always runs; each is to have two requests.
class Scaled : public ::testing::Test {
 protected:
  Scaled()
      : engine_(test::read_of<SchedulerConfig>("{kind: vllm}")),
        pricer_([](const BatchShape&) { return Picoseconds{1}; }) {
    for (int i = 0; i < 4; ++i)
      instances.emplace_back(*engine_.object, pricer_, InstanceRules{.kv = {16, 1000}});
    rules.most = 4;
    rules.requests = 2;
    rules.interval = Seconds(10);
    rules.start = Seconds(30);
    rules.cool_down = Seconds(60);
  }
  void add(std::size_t instance, int count) {
    for (int i = 0; i < count; ++i) {
      const Request request{.id = i, .prompt = 8, .output = 1};
      instances[instance].expect(request);
      instances[instance].add(request, 0);
    }
  }
  /// Answers all that an instance has.
  void answer(std::size_t instance) {
    ServingLog log;
    Instance::Ended ended;
    while (const auto begun = instances[instance].begin(1))
      instances[instance].end(begun->lane, log, ended);
  }
  int taking(const Autoscaler& scaler, Picoseconds now) const {
    int count = 0;
    for (std::size_t i = 0; i < instances.size(); ++i)
      count += scaler.takes(i, instances, now) ? 1 : 0;
    return count;
  }

  config::OneOf<SchedulerConfig> engine_;
  test::PricedBy pricer_;
  std::vector<Instance> instances;
  ScaleRules rules;
};

TEST_F(Scaled, AsManyRunAsRequestsNeedOnceTheyHaveStarted) {
  Autoscaler scaler({rules});
  EXPECT_EQ(taking(scaler, 0), 1);
  add(0, 5);
  EXPECT_EQ(scaler.look(instances, kSecond), 11 * kSecond);
  EXPECT_EQ(taking(scaler, kSecond), 1);
  scaler.look(instances, 30 * kSecond);
  EXPECT_EQ(taking(scaler, 30 * kSecond), 1);  // a second before they are ready
  scaler.look(instances, 31 * kSecond);
  EXPECT_EQ(taking(scaler, 31 * kSecond), 3);  // five over two, rounded up
}

TEST_F(Scaled, NoMoreThanThereAre) {
  Autoscaler scaler({rules});
  add(0, 50);
  scaler.look(instances, 0);
  scaler.look(instances, 40 * kSecond);
  EXPECT_EQ(taking(scaler, 40 * kSecond), 4);
}

TEST_F(Scaled, OneEndsWhenFewerHaveDoneForLong) {
  Autoscaler scaler({rules});
  add(0, 4);
  scaler.look(instances, 0);
  scaler.look(instances, 30 * kSecond);
  EXPECT_EQ(taking(scaler, 30 * kSecond), 2);
  add(1, 1);
  answer(0);
  scaler.look(instances, 40 * kSecond);
  scaler.look(instances, 80 * kSecond);
  EXPECT_EQ(taking(scaler, 80 * kSecond), 2);
  scaler.look(instances, 90 * kSecond);  // 60 s after the last time that two were needed
  EXPECT_EQ(taking(scaler, 90 * kSecond), 1);
  // It is held until its last request is answered.
  EXPECT_EQ(scaler.held(1, 95 * kSecond), 95 * kSecond);
  answer(1);
  scaler.look(instances, 100 * kSecond);
  EXPECT_EQ(scaler.held(1, 200 * kSecond), 100 * kSecond);
  EXPECT_EQ(scaler.held(0, 200 * kSecond), 200 * kSecond);
  EXPECT_EQ(scaler.held(3, 200 * kSecond), 0U);
}

// Held at the start, ended at 100 s, needed again from 200 s on.
TEST_F(Scaled, PeriodsSayWhenAnInstanceIsHeld) {
  Autoscaler scaler({rules});
  add(0, 4);
  scaler.look(instances, 0);
  scaler.look(instances, 30 * kSecond);
  answer(0);
  scaler.look(instances, 40 * kSecond);
  scaler.look(instances, 100 * kSecond);
  scaler.look(instances, 110 * kSecond);
  add(0, 4);
  scaler.look(instances, 200 * kSecond);
  const std::vector<HeldPeriod> periods = scaler.periods(1, 250 * kSecond);
  ASSERT_EQ(periods.size(), 2U);
  EXPECT_EQ(periods[0].begin, 0U);
  EXPECT_EQ(periods[0].end, 110 * kSecond);
  EXPECT_EQ(periods[1].begin, 200 * kSecond);
  EXPECT_EQ(periods[1].end, 250 * kSecond);
  EXPECT_EQ(scaler.held(1, 250 * kSecond), 160 * kSecond);
  EXPECT_TRUE(scaler.periods(3, 250 * kSecond).empty());
}

TEST_F(Scaled, ANewOneGetsItsShareOfTheRamp) {
  rules.ramp = Seconds(100);
  Autoscaler scaler({rules});
  add(0, 4);
  scaler.look(instances, 0);
  scaler.look(instances, 30 * kSecond);
  add(1, 1);
  EXPECT_FALSE(scaler.takes(1, instances, 50 * kSecond));  // 1 of 0.2 x 4
  EXPECT_TRUE(scaler.takes(1, instances, 60 * kSecond));   // 1 of 0.3 x 4
  EXPECT_TRUE(scaler.takes(0, instances, 50 * kSecond));
}

TEST_F(Scaled, WithoutAnIntervalAllRunAlways) {
  rules.interval = {};
  Autoscaler scaler({rules});
  EXPECT_EQ(taking(scaler, 0), 4);
  EXPECT_EQ(scaler.look(instances, 0), kNever);
}

}  // namespace
}  // namespace orrery::autoscaler_test
