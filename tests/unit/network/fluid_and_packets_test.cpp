// SPDX-License-Identifier: Apache-2.0
// The fluid model against packets.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "tests/unit/network/packet_cases.h"

namespace orrery::fluid_and_packets_test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

struct Differences {
  std::vector<double> flows;      ///< errors of the time of each flow, fluid over packets, less 1
  std::vector<double> makespans;  ///< errors of the longest flow of each case, likewise
  std::vector<double> alone;      ///< errors of the first flow of each case, without the others
};

/// Time of each flow, fluid over packets, less 1.
std::vector<double> compare_flows(const PacketCase& c, const std::vector<Picoseconds>& fluid,
                                  const std::vector<Picoseconds>& packets) {
  std::vector<double> differences;
  for (std::size_t f = 0; f < c.flows.size(); ++f) {
    const auto start = static_cast<double>(c.flows[f].start);
    const double ratio =
        (static_cast<double>(fluid[f]) - start) / (static_cast<double>(packets[f]) - start);
    differences.push_back(ratio - 1);
  }
  return differences;
}

Differences compare(int first, int cases, std::uint64_t least, std::uint64_t most) {
  Differences differences;
  for (int seed = first; seed < first + cases; ++seed) {
    PacketCase c = random_packet_case(static_cast<std::uint64_t>(seed), least, most);
    const std::vector<Picoseconds> fluid = fluid_ends(c);
    const std::vector<Picoseconds> packets = PacketNetwork(c.links, c.flows, c.options).run();
    for (const double difference : compare_flows(c, fluid, packets)) {
      differences.flows.push_back(difference);
    }
    const auto last = [](const std::vector<Picoseconds>& ends) {
      return static_cast<double>(*std::max_element(ends.begin(), ends.end()));
    };
    differences.makespans.push_back(last(fluid) / last(packets) - 1);
    c.flows.resize(1);
    differences.alone.push_back(
        compare_flows(c, fluid_ends(c), PacketNetwork(c.links, c.flows, c.options).run())[0]);
  }
  return differences;
}

double worst(const std::vector<double>& differences) {
  double result = 0;
  for (const double difference : differences) {
    result = std::max(result, std::abs(difference));
  }
  return result;
}

double mean(const std::vector<double>& differences) {
  double sum = 0;
  for (const double difference : differences) {
    sum += difference;
  }
  return sum / static_cast<double>(differences.size());
}

/// In four parts of 50 cases, which may run side by side.
class FluidAndPacketsOfAPart : public testing::TestWithParam<int> {};

TEST_P(FluidAndPacketsOfAPart, AgreeWithin3PercentFromOneMiBOn) {
  const Differences differences = compare(50 * GetParam(), 50, kMiB, 4 * kMiB);
  std::printf("worst message %.2f %%, worst whole %.2f %%\n", 100 * worst(differences.flows),
              100 * worst(differences.makespans));
  EXPECT_LE(worst(differences.makespans), 0.03);
  EXPECT_LE(worst(differences.flows), 0.03);
}

INSTANTIATE_TEST_SUITE_P(Parts, FluidAndPacketsOfAPart, testing::Range(0, 4));

/// Prints a table by the size of messages (sim/network/README.md).
TEST(FluidAndPackets, DifferMoreTheSmallerTheMessages) {
  double before = 0;
  std::printf("| message | alone, worst | shared, mean | shared, worst flow | worst makespan |\n");
  for (const std::uint64_t size : {kMiB, kMiB / 8, kMiB / 64, kMiB / 512}) {
    const Differences d = compare(0, 200, size, size);
    std::printf("| %.0f KiB | %.2f %% | %+.2f %% | %.1f %% | %.1f %% |\n",
                static_cast<double>(size) / 1024, 100 * worst(d.alone), 100 * mean(d.flows),
                100 * worst(d.flows), 100 * worst(d.makespans));
    EXPECT_GT(worst(d.alone), before);
    before = worst(d.alone);
  }
}

}  // namespace
}  // namespace orrery::fluid_and_packets_test
