// SPDX-License-Identifier: Apache-2.0
// Collectives that go through the dimensions of a network in chunks, against times by hand.
#include "models/transfers/dimension_price.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "models/topologies/dimensions.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::dimension_price_test {
namespace {

using namespace orrery::fixtures;
using enum DimensionShape;

constexpr double kMicro = 1e-6;

NetworkDimensionsConfig& network_of(SystemConfig& system) {
  return fabric_keys<DimensionsTopology>(system).dimensions;
}

/// Rings of 4 of 100 GB/s and 1 us a link, across pairs behind switches of 2 us a link. A step
/// takes 0.5 us beside its links.
SystemConfig rings_and_switches(BytesPerSecond behind_switches, int chunks = 2) {
  SystemConfig system = with_dimensions(
      {dimension(kRing, 4, 100_GBps, 1_us), dimension(kSwitch, 2, behind_switches, 2_us)});
  system.scale_up.latency.value = 0.5_us;
  network_of(system).chunks = chunks;
  return system;
}

double microseconds(const SystemConfig& system, TransferKind kind, Bytes bytes,
                    std::vector<std::vector<int>> groups = {{0, 1, 2, 3, 4, 5, 6, 7}}) {
  const FlowModel network(system, 1, "dimensions");
  const PricedTransfer priced = network.price(transfer(kind, bytes, std::move(groups)));
  EXPECT_EQ(priced.algorithm, "dimensions");
  // What the replay makes of latency and loads.
  double slowest = 0;
  for (const LinkLoad& load : priced.cost.loads)
    slowest = std::max(slowest, load.bytes / network.capacities()[load.link].base());
  const double time = static_cast<double>(priced.cost.latency) * 1e-12 + slowest;
  EXPECT_NEAR(priced.isolated_time.base(), time, 1e-12);
  return time / kMicro;
}

// A chunk of 4 MB: a reduce-scatter of 3 x 1.5 us and 3 MB over 100 GB/s, 34.5 us, an all-gather
// as long; between them an all-reduce of 1 MB in pairs, 2 x (4.5 us + 0.5 MB over 50 GB/s) = 29 us.
// The rings work all the time: 4 x 34.5.
TEST(DimensionPrice, TheDimensionThatIsAlwaysBusySetsTheTime) {
  EXPECT_NEAR(microseconds(rings_and_switches(50_GBps), TransferKind::kAllReduce, 8_MB), 138, 1e-6);
}

// At 5 GB/s the pairs take 2 x (4.5 + 100) = 209 us a chunk; the rings before the first chunk and
// behind the last are not hidden.
TEST(DimensionPrice, PhasesBeforeTheFirstAndBehindTheLastChunkAreNotHidden) {
  EXPECT_NEAR(microseconds(rings_and_switches(5_GBps), TransferKind::kAllReduce, 8_MB),
              34.5 + 2 * 209 + 34.5, 1e-6);
  // One chunk of 8 MB: 64.5 us, 2 x (4.5 + 200), 64.5.
  EXPECT_NEAR(microseconds(rings_and_switches(5_GBps, 1), TransferKind::kAllReduce, 8_MB),
              64.5 + 409 + 64.5, 1e-6);
}

// Reduce-scatter: 34.5 and 14.5 us a chunk; an all-gather is the same backwards.
TEST(DimensionPrice, AGatherIsAScatterBackwards) {
  const SystemConfig system = rings_and_switches(50_GBps);
  EXPECT_NEAR(microseconds(system, TransferKind::kReduceScatter, 8_MB), 2 * 34.5 + 14.5, 1e-6);
  EXPECT_NEAR(microseconds(system, TransferKind::kAllGather, 8_MB), 14.5 + 2 * 34.5, 1e-6);
}

// In the whole buffer's order the pairs all-reduce 4 MB a chunk: 2 x (4.5 + 2 MB over 50 GB/s) =
// 89; the rings, before them, 69.
TEST(DimensionPrice, WholeAllReducesInEachDimensionCarryTheWholeBuffer) {
  SystemConfig system = rings_and_switches(50_GBps);
  network_of(system).all_reduce = AllReduceOrder::kEachDimension;
  EXPECT_NEAR(microseconds(system, TransferKind::kAllReduce, 8_MB), 69 + 2 * 89, 1e-6);
}

TEST(DimensionPrice, GroupsAlongOneDimensionUseItsLinksAlone) {
  const SystemConfig system = rings_and_switches(50_GBps);
  // Chunks of 4 MB one after the other: 69 us in rings, 89 us in pairs.
  EXPECT_NEAR(microseconds(system, TransferKind::kAllReduce, 8_MB, {{0, 1, 2, 3}, {4, 5, 6, 7}}),
              2 * 69, 1e-6);
  EXPECT_NEAR(microseconds(system, TransferKind::kAllReduce, 8_MB, {{1, 5}}), 2 * 89, 1e-6);
  const FlowModel network(system, 1, "dimensions");
  const DimensionGrid& grid = *network.fabric().dimensions();
  for (const auto& [group, dimension] :
       {std::pair{std::vector<int>{4, 5, 6, 7}, 0}, {std::vector<int>{2, 6}, 1}}) {
    const PricedTransfer priced = network.price(transfer(TransferKind::kAllReduce, 1_MB, {group}));
    for (const LinkLoad& load : priced.cost.loads)
      EXPECT_EQ(grid.dimension_of(load.link), dimension);
  }
}

// Other groups go as elsewhere, over the links that lie between, with their latencies.
TEST(DimensionPrice, PartsOfALineAreLeftToOtherAlgorithms) {
  const FlowModel network(rings_and_switches(50_GBps), 1, "dimensions");
  EXPECT_NE(network.price(transfer(TransferKind::kAllReduce, 1_MB, {{0, 1, 2}})).algorithm,
            "dimensions");
  // 0.5 us, two links of the ring, two to the switch and from it; 1 MB over 50 GB/s.
  const PricedTransfer message =
      network.price(transfer(TransferKind::kSendReceive, 1_MB, {{0, 6}}));
  EXPECT_NEAR(message.isolated_time.base(), (0.5 + 2 * 1 + 2 * 2 + 20) * kMicro, 1e-12);
}

// The start comes once a phase, sums once a scatter: 3 MB over 30 GB/s of each chunk in the rings.
TEST(DimensionPrice, StartsAndSumsAreAdded) {
  SystemConfig system = rings_and_switches(50_GBps, 1);
  const double before = microseconds(system, TransferKind::kAllReduce, 4_MB);
  network_of(system).start.value = 2_us;
  EXPECT_NEAR(microseconds(system, TransferKind::kAllReduce, 4_MB), before + 3 * 2, 1e-6);
  network_of(system).axes[0].sum_rate.value = 30_GBps;
  EXPECT_NEAR(microseconds(system, TransferKind::kAllReduce, 4_MB), before + 6 + 100, 1e-6);
}

// Direct: 1 MB to each of three others over a link of its own. Halving and doubling: two steps,
// 2 MB and 1 MB over the port.
TEST(DimensionPrice, LinesHaveTheStepsAndBytesOfTheirAlgorithm) {
  SystemConfig mesh =
      with_dimensions({dimension(kMesh, 4, 100_GBps, 1_us, LineAlgorithm::kDirect)});
  EXPECT_NEAR(microseconds(mesh, TransferKind::kReduceScatter, 4_MB, {range(0, 4)}), 2 + 10, 1e-6);
  SystemConfig halves =
      with_dimensions({dimension(kSwitch, 4, 100_GBps, 1_us, LineAlgorithm::kHalvingDoubling)});
  EXPECT_NEAR(microseconds(halves, TransferKind::kReduceScatter, 4_MB, {range(0, 4)}), 2 * 3 + 30,
              1e-6);
}

// Of a ring of eight, with 1 MB to each: 16 links to the others, 4 the farthest, so 8 MB over each
// of two ways. Halving: 4, 2, 1 MB to partners 1, 2 and 4 links apart; 4 MB cross the link between
// the first two, 2 x 2 MB the middle of four, 4 x 1 MB, half each way, that of eight.
// A step takes 1 us beside its links.
TEST(DimensionPrice, PartnersThatAreApartOnARingShareItsLinks) {
  const auto scatter = [](int ranks, LineAlgorithm algorithm) {
    const SystemConfig ring = with_dimensions({dimension(kRing, ranks, 100_GBps, 1_us, algorithm)});
    return microseconds(ring, TransferKind::kReduceScatter, 1_MB * ranks, {range(0, ranks)});
  };
  EXPECT_NEAR(scatter(8, LineAlgorithm::kDirect), 1 + 4 + 80, 1e-6);
  EXPECT_NEAR(scatter(8, LineAlgorithm::kHalvingDoubling), 3 + (1 + 2 + 4) + (40 + 40 + 20), 1e-6);
  EXPECT_NEAR(scatter(5, LineAlgorithm::kDirect), 1 + 2 + 30, 1e-6);
  // A ring of two is one link.
  EXPECT_NEAR(scatter(2, LineAlgorithm::kDirect), 1 + 1 + 10, 1e-6);
  EXPECT_NEAR(scatter(2, LineAlgorithm::kHalvingDoubling), 1 + 1 + 10, 1e-6);
}

/// A network of `count` dimensions with shapes, sizes and links drawn at random.
SystemConfig drawn_network(std::mt19937& random, int count) {
  const auto draw = [&](int most) {
    return static_cast<int>(random() % static_cast<unsigned>(most));
  };
  std::vector<DimensionConfig> dimensions;
  for (int i = 0; i < count; ++i) {
    const DimensionShape shape =
        std::array{kRing, kMesh, kSwitch}[static_cast<std::size_t>(draw(3))];
    const LineAlgorithm other =
        draw(2) == 0 ? LineAlgorithm::kDirect : LineAlgorithm::kHalvingDoubling;
    dimensions.push_back(dimension(
        shape, draw(2) == 0 ? 2 : 4, 100_GBps / static_cast<double>(1 + draw(20)),
        1_us * static_cast<double>(draw(4)), draw(2) == 0 ? LineAlgorithm::kRing : other));
  }
  SystemConfig system = with_dimensions(dimensions);
  network_of(system).chunks = 1 + draw(8);
  return system;
}

// Of n ranks each sends 2 (n-1)/n S, however many dimensions they are in.
TEST(DimensionPrice, AllReducesSendAsManyBytesAsInOneRing) {
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp)
  for (int i = 0; i < 50; ++i) {
    const SystemConfig system = drawn_network(random, 1 + i % 3);
    const FlowModel network(system, 1);
    const std::vector<int> all = range(0, system.ranks());
    const Transfer reduce = transfer(TransferKind::kAllReduce, 8_MB, {all});
    const Collective collective = network.collective(reduce, reduce.groups.front());
    RecordingSink sink;
    AlgorithmRegistry::at("collective", "dimensions")->run(collective, sink);
    const double n = system.ranks();
    for (const int rank : all) {
      EXPECT_NEAR(sink.sent(rank), 2 * (n - 1) / n * 8e6, 1e-3);
      EXPECT_NEAR(sink.received(rank), 2 * (n - 1) / n * 8e6, 1e-3);
    }
  }
}

// No shorter than a chunk through all phases and than the busiest dimension, no longer than all
// chunks one after the other.
TEST(DimensionPrice, APipelineIsBetweenItsLongestPartAndAllOfThem) {
  std::mt19937 random(2);  // NOLINT(cert-msc51-cpp)
  for (int i = 0; i < 500; ++i) {
    std::vector<PhaseTime> phases;
    for (std::size_t p = 0; p < 2 + random() % 5; ++p)
      phases.push_back({random() % 3, 1_us * static_cast<double>(1 + random() % 9)});
    const int chunks = 1 + static_cast<int>(random() % 6);
    const PipelineTimes times = pipeline_times(phases, 3, chunks);
    const Seconds chunk =
        std::accumulate(phases.begin(), phases.end(), Seconds(0),
                        [](Seconds sum, const PhaseTime& p) { return sum + p.time; });
    const Seconds busiest = *std::max_element(times.busy.begin(), times.busy.end());
    EXPECT_GE(times.end.base(), std::max(chunk, busiest).base() * (1 - 1e-12));
    EXPECT_LE(times.end.base(), chunk.base() * chunks * (1 + 1e-12));
    const Seconds work = std::accumulate(times.busy.begin(), times.busy.end(), Seconds(0));
    EXPECT_NEAR(work.base(), chunk.base() * chunks, 1e-15);
  }
}

// Two dimensions, where no chunk passes another one.
TEST(DimensionPrice, FasterLinksAreNeverSlower) {
  std::mt19937 random(3);  // NOLINT(cert-msc51-cpp)
  for (int i = 0; i < 100; ++i) {
    SystemConfig system = drawn_network(random, 2);
    const std::vector<std::vector<int>> all = {range(0, system.ranks())};
    const double before = microseconds(system, TransferKind::kAllReduce, 8_MB, all);
    network_of(system).axes[random() % 2].bandwidth.value *= 1.5;
    system.accelerator.scale_up.bandwidth.value *= 1.5;
    EXPECT_LE(microseconds(system, TransferKind::kAllReduce, 8_MB, all), before * (1 + 1e-9));
  }
}

TEST(DimensionPrice, ADegradedLinkTakesAsMuchLonger) {
  const SystemConfig system = rings_and_switches(50_GBps);
  const FlowModel whole(system, 1, "dimensions");
  const Transfer reduce = transfer(TransferKind::kAllReduce, 8_MB, {range(0, 8)});
  const std::vector<LinkFault> faults = {{*whole.price(reduce).bottleneck, 0.5}};
  const FlowModel degraded(system, 1, "dimensions", "auto", faults);
  EXPECT_NEAR(degraded.price(reduce).isolated_time.base(), 2 * 138 * kMicro, 1e-12);
}

TEST(DimensionGrid, KnowsTheBoxesThatGroupsFill) {
  NetworkDimensionsConfig network;
  network.axes = {dimension(kRing, 4, 1_GBps), dimension(kSwitch, 1, 1_GBps),
                  dimension(kMesh, 2, 1_GBps), dimension(kRing, 3, 1_GBps)};
  const DimensionGrid grid(network, 24);
  EXPECT_EQ(grid.filled_by(range(0, 24)), (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(grid.filled_by(range(8, 4)), std::vector<int>{0});
  EXPECT_EQ(grid.filled_by(std::vector<int>{1, 9, 17}), std::vector<int>{3});
  EXPECT_EQ(grid.filled_by(std::vector<int>{2, 6, 10, 14, 18, 22}), (std::vector<int>{2, 3}));
  EXPECT_TRUE(grid.filled_by(range(0, 3)).empty());
  EXPECT_TRUE(grid.filled_by(std::vector<int>{0, 1, 2, 7}).empty());
  EXPECT_TRUE(grid.filled_by(std::vector<int>{3, 2, 1, 0}).empty());
}

}  // namespace
}  // namespace orrery::dimension_price_test
