// SPDX-License-Identifier: Apache-2.0
// What holds for every program, on random ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "sim/graph/verify.h"
#include "sim/replay/critical_path.h"
#include "sim/replay/replay.h"
#include "tests/unit/replay/program_builder.h"

namespace orrery::replay_properties_test {
namespace {

using namespace literals;

/// Kernels and collectives of random roles, issued in one global order (so nothing deadlocks) with
/// random dependencies on what the role issued before; each role calls its block several times.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed) : random_(seed), b_({"compute", "tp", "dp"}) {
    graphs_.resize(1 + random_() % 5);
    for (std::size_t l = 0; l < 1 + random_() % 6; ++l) {
      b_.link(BytesPerSecond(1e9 * static_cast<double>(1 + random_() % 3)));
    }
    for (int step = 0; step < 60; ++step) {
      if (random_() % 3 == 0) {
        add_collective();
      } else {
        const KernelId kernel = b_.kernel(random_() % 3'000'000, random_() % 1000);
        const auto stream = static_cast<StreamId>(random_() % 8 == 0 ? 1 : 0);
        add(random_() % graphs_.size(),
            TestProgramBuilder::compute(kernel, Category::kCompute, stream));
      }
    }
    for (const OperatorGraph& graph : graphs_) {
      b_.role(std::vector<BlockId>(kCalls, b_.block(graph)));
    }
  }

  static constexpr std::size_t kCalls = 4;
  const Program& program() const { return b_.program; }
  const Costs& costs() const { return b_.costs; }

 private:
  void add(std::size_t role, const Operator& op) {
    OperatorGraph& graph = graphs_[role];
    const OperatorId id = graph.add(op);
    for (int edges = 0; id > 0 && edges < 2; ++edges) {
      graph.depends(id, static_cast<OperatorId>(random_() % id));
    }
  }

  void add_collective() {
    std::vector<std::size_t> members;
    for (std::size_t role = 0; role < graphs_.size(); ++role) {
      if (random_() % 2 == 0) {
        members.push_back(role);
      }
    }
    if (members.empty()) {
      return;
    }
    TransferCost cost{random_() % 1'000'000, {}};
    for (std::uint32_t link = 0; link < b_.costs.links.size(); ++link) {
      if (random_() % 2 == 0) {
        cost.loads.push_back({link, static_cast<double>(random_() % 5000)});
      }
    }
    cost.device.units = static_cast<std::int64_t>(b_.costs.transfers.size() % 4) * 20;
    const TransferId transfer = b_.transfer("t", static_cast<int>(members.size()), std::move(cost));
    for (const std::size_t role : members) {
      add(role, TestProgramBuilder::collective(transfer, static_cast<StreamId>(1 + transfer % 2)));
    }
  }

  std::mt19937_64 random_;
  TestProgramBuilder b_;
  std::vector<OperatorGraph> graphs_;
};

/// Kernels take 1 % longer for each SM that is taken, every third takes no notice.
class ByUnits final : public SlowdownModel {
 public:
  double slowdown(KernelId kernel, const DeviceLoad& taken) override {
    return kernel % 3 == 0 ? 1 : 1 + static_cast<double>(taken.units) / 100;
  }
};

ReplayResult replay_slowed(const Program& program, const Costs& costs) {
  ByUnits slowdowns;
  return replay(program, costs, {nullptr, &slowdowns});
}

class ReplayProperties : public testing::TestWithParam<std::uint64_t> {
 protected:
  RandomProgram random_{GetParam()};
  const Program& program_ = random_.program();
  const Costs& costs_ = random_.costs();
};

TEST_P(ReplayProperties, ASoundProgramFinishesWithAllItsOperators) {
  ASSERT_THAT(verify(program_), testing::IsEmpty());
  std::size_t operators = 0;
  for (const OperatorGraph& graph : program_.blocks) {
    operators += graph.size() * RandomProgram::kCalls;
  }
  EXPECT_EQ(replay(program_, costs_).operators, operators);
}

TEST_P(ReplayProperties, TheBreakdownOfEachRoleAddsUpToTheEnd) {
  const ReplayResult result = replay(program_, costs_);
  Picoseconds last = 0;
  for (const RoleResult& role : result.roles) {
    const TimeBreakdown& b = role.breakdown;
    EXPECT_EQ(b.compute + b.contention + b.exposed_communication + b.bubble + b.optimizer + b.host +
                  b.idle,
              result.end);
    last = std::max(last, role.end);
  }
  EXPECT_EQ(last, result.end);
  EXPECT_EQ(result.roles[static_cast<std::size_t>(result.last_role)].end, result.end);
}

/// Steps of the critical path follow each other from 0 to the end, slowed kernels or not, and
/// kernels and transfers on it take what they cost.
TEST_P(ReplayProperties, TheCriticalPathIsWithoutGapsAndAddsUpToTheEnd) {
  ByUnits slowdowns;
  for (const bool slowed : {false, true}) {
    CriticalPath path;
    ReplayOptions options;
    options.path = &path;
    if (slowed) options.slowdowns = &slowdowns;
    const ReplayResult result = replay(program_, costs_, options);
    Picoseconds now = 0;
    for (const PathStep& step : path.steps()) {
      EXPECT_EQ(step.begin, now);
      if (step.kind == OperatorKind::kCompute)
        EXPECT_GE(step.end - step.begin, costs_.kernels[step.work].duration + step.longer);
      else
        EXPECT_GE(step.end - step.begin, costs_.transfers[step.work].latency);
      now = step.end;
    }
    EXPECT_EQ(now, result.end);
  }
}

TEST_P(ReplayProperties, NoStreamEndsBeforeItsKernelsAndNoLinkBeforeItsBytes) {
  const ReplayResult result = replay(program_, costs_);
  std::vector<double> bytes(costs_.links.size(), 0);
  std::vector<bool> counted(costs_.transfers.size(), false);
  for (std::size_t r = 0; r < program_.roles.size(); ++r) {
    Picoseconds busy = 0;
    const OperatorGraph& graph = program_.blocks[r];
    for (OperatorId id = 0; id < graph.size(); ++id) {
      const Operator& op = graph[id];
      if (op.kind == OperatorKind::kCompute) {
        busy += op.stream == 0 ? costs_.kernels[op.work].duration : 0;
      } else if (!counted[op.work]) {
        counted[op.work] = true;
        for (const LinkLoad& load : costs_.transfers[op.work].loads) {
          bytes[load.link] += load.bytes * static_cast<double>(RandomProgram::kCalls);
        }
      }
    }
    EXPECT_GE(result.roles[r].end, busy * RandomProgram::kCalls);
  }
  EXPECT_EQ(result.link_bytes, bytes);  // integers: exact whatever the order of the sum
  for (std::size_t l = 0; l < bytes.size(); ++l) {
    // Each end is rounded to the nearest picosecond, at most 240 of them in a row.
    EXPECT_GE(static_cast<double>(result.end) + 240, bytes[l] / costs_.links[l].base() * 1e12);
  }
}

TEST_P(ReplayProperties, TwoRunsAreEqual) {
  const ReplayResult a = replay(program_, costs_);
  const ReplayResult b = replay(program_, costs_);
  EXPECT_EQ(a.end, b.end);
  EXPECT_EQ(a.events, b.events);
  for (std::size_t r = 0; r < a.roles.size(); ++r) {
    EXPECT_EQ(a.roles[r].end, b.roles[r].end);
    EXPECT_EQ(a.roles[r].breakdown.bubble, b.roles[r].breakdown.bubble);
  }
}

TEST_P(ReplayProperties, TwiceTheWorkTakesTwiceTheTime) {
  Costs twice = costs_;
  for (KernelCost& kernel : twice.kernels) {
    kernel.duration *= 2;
  }
  for (TransferCost& transfer : twice.transfers) {
    transfer.latency *= 2;
    transfer.loads.change([](LinkLoad& load) { load.bytes *= 2; });
  }
  // Up to a picosecond for each end that is rounded, at most 240 in a row.
  EXPECT_NEAR(static_cast<double>(replay(program_, twice).end),
              2.0 * static_cast<double>(replay(program_, costs_).end), 240.0);
}

TEST_P(ReplayProperties, SlowedKernelsMoveTheSameBytesAndTheirBreakdownAddsUp) {
  const ReplayResult plain = replay(program_, costs_);
  const ReplayResult slowed = replay_slowed(program_, costs_);
  EXPECT_EQ(slowed.operators, plain.operators);
  EXPECT_EQ(slowed.link_bytes, plain.link_bytes);
  for (std::size_t r = 0; r < slowed.roles.size(); ++r) {
    const TimeBreakdown& b = slowed.roles[r].breakdown;
    EXPECT_EQ(b.compute + b.contention + b.exposed_communication + b.bubble + b.optimizer + b.host +
                  b.idle,
              slowed.end);
  }
  const ReplayResult again = replay_slowed(program_, costs_);
  EXPECT_EQ(again.end, slowed.end);
  EXPECT_EQ(again.events, slowed.events);
}

TEST_P(ReplayProperties, WithoutLoadsOnDevicesNothingChanges) {
  Costs free = costs_;
  for (TransferCost& transfer : free.transfers) transfer.device = {};
  const ReplayResult plain = replay(program_, free);
  const ReplayResult slowed = replay_slowed(program_, free);
  EXPECT_EQ(slowed.end, plain.end);
  EXPECT_EQ(slowed.events, plain.events);
  for (std::size_t r = 0; r < plain.roles.size(); ++r) {
    EXPECT_EQ(slowed.roles[r].end, plain.roles[r].end);
    EXPECT_EQ(slowed.roles[r].breakdown.host, plain.roles[r].breakdown.host);
    EXPECT_EQ(slowed.roles[r].breakdown.bubble, plain.roles[r].breakdown.bubble);
  }
}

class Watcher final : public UseObserver {
 public:
  void kernel_ran(std::uint32_t, KernelId, Picoseconds, Picoseconds) override {}
  void transfer_ran(std::uint32_t, TransferId, Picoseconds, Picoseconds) override {}
};

void expect_same(const RoleResult& a, const RoleResult& b) {
  EXPECT_EQ(a.end, b.end);
  EXPECT_EQ(a.block_time, b.block_time);
  EXPECT_EQ(a.breakdown.compute, b.breakdown.compute);
  EXPECT_EQ(a.breakdown.contention, b.breakdown.contention);
  EXPECT_EQ(a.breakdown.exposed_communication, b.breakdown.exposed_communication);
  EXPECT_EQ(a.breakdown.bubble, b.breakdown.bubble);
  EXPECT_EQ(a.breakdown.host, b.breakdown.host);
}

// Who watches sees each kernel end in its turn; else those that follow one another end together.
TEST_P(ReplayProperties, KernelsThatFollowOneAnotherEndAsWhereEachIsWatched) {
  Costs costs = costs_;
  costs.enqueue = GetParam() % 3 * 400'000;
  for (std::size_t k = 0; k < costs.kernels.size(); ++k) {
    costs.kernels[k].host_waits = k % 7 == GetParam() % 7;
    if (k % 5 == 0) costs.kernels[k].issue = 1'500'000;
    if (k % 11 == 0) costs.kernels[k].duration = costs.kernels[k].launch = 0;
  }
  ByUnits slowdowns;
  Watcher observer;
  ReplayOptions options;
  options.slowdowns = &slowdowns;
  const ReplayResult together = replay(program_, costs, options);
  options.observer = &observer;
  const ReplayResult watched = replay(program_, costs, options);
  EXPECT_EQ(together.end, watched.end);
  EXPECT_EQ(together.events, watched.events);
  EXPECT_EQ(together.operators, watched.operators);
  EXPECT_EQ(together.link_bytes, watched.link_bytes);
  for (std::size_t r = 0; r < watched.roles.size(); ++r)
    expect_same(together.roles[r], watched.roles[r]);
}

TEST(ReplayBounds, AStepTakesFromTheLongerToTheSumOfComputeAndCommunicationAndItsSlowdown) {
  for (const std::int64_t units : {0, 20, 100}) {
    for (const Picoseconds transfer :
         std::initializer_list<Picoseconds>{10'000, 500'000, 3'000'000}) {
      TestProgramBuilder b;
      OperatorGraph graph;
      b.kernel(0);  // the first takes no notice of transfers
      const KernelId kernel = b.kernel(100'000);
      for (int i = 0; i < 10; ++i) {
        const OperatorId compute = graph.add(TestProgramBuilder::compute(kernel));
        const TransferId t = b.transfer("t" + std::to_string(i), 1, {transfer, {}, {}, {units, 0}});
        const OperatorId collective = graph.add(TestProgramBuilder::collective(t));
        if (i % 3 == 0) graph.depends(collective, compute);
      }
      b.role({b.block(graph)});
      ByUnits slowdowns;
      const ReplayResult result = replay(b.program, b.costs, {nullptr, &slowdowns});
      const Picoseconds compute = 1'000'000, communication = 10 * transfer;
      const Picoseconds contention = result.roles[0].breakdown.contention;
      EXPECT_GE(result.end, std::max(compute + contention, communication));
      EXPECT_LE(result.end, compute + communication + contention);
      EXPECT_EQ(contention > 0, units > 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Random, ReplayProperties, testing::Range<std::uint64_t>(0, 40));

TEST(ReplayMonotonicity, AFasterLinkNeverSlowsAChainOfTransfers) {
  Picoseconds before = kMaxTime;
  for (const BytesPerSecond bandwidth : {1_GBps, 2_GBps, 5_GBps, 100_GBps}) {
    TestProgramBuilder b;
    const auto link = b.link(bandwidth);
    const TransferId t = b.transfer("t", 1, {1000, {{link, 12'345}}});
    const Operator compute = TestProgramBuilder::compute(b.kernel(5000));
    const BlockId block = b.chain({compute, TestProgramBuilder::collective(t), compute});
    b.role({block, block});
    const Picoseconds end = replay(b.program, b.costs).end;
    EXPECT_LT(end, before);
    before = end;
  }
}

}  // namespace
}  // namespace orrery::replay_properties_test
