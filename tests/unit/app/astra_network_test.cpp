// SPDX-License-Identifier: Apache-2.0
// Networks of ASTRA-sim as systems of ours: the same traces take the same times.
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/app/experiments/core/simulate.h"
#include "tests/unit/app/loaded_text.h"
#include "validation/importers/importer.h"

namespace orrery::astra_network_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class AstraNetwork : public testing::Test {
 protected:
  AstraNetwork() { std::filesystem::create_directories(folder_); }
  ~AstraNetwork() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + name) << text;
  }
  /// Time of an all-reduce of 1 MiB among 8 in ASTRA-sim's settings, in ns.
  double all_reduce_ns(const std::string& id, const std::string& network,
                       const std::string& algorithm, const std::string& memory = "",
                       const std::string& replay = "algorithm: torus\n") const {
    write(id + ".yml", "topology: [ " + network +
                           " ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n");
    return collective_ns(id, "[\"" + algorithm + "\"]" + memory, replay);
  }
  /// The same on the network ID.yml, by the algorithms of the system and what else it says.
  double collective_ns(const std::string& id, const std::string& system, const std::string& replay,
                       const std::string& node = R"("comm_type": 0)") const {
    write(id + ".json",
          R"({"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1,
              "preferred-dataset-splits": 4, "all-reduce-implementation": )" +
              system + "}");
    ImportOptions options;
    options.system = folder_ + id + ".json";
    write(id + ".yaml", import_file("astra-network", folder_ + id + ".yml", options).document);
    for (int rank = 0; rank < 8; ++rank) {
      write(id + ".trace." + std::to_string(rank) + ".et",
            R"({"workload_graph": [{"Id": 0, "Name": "ar", "NodeType": 7, "comm_size": 1048576, )" +
                node + "}]}");
    }
    const RunRecord record = simulate(test::load(
        "experiment: replay\nsystem: " + folder_ + id + ".yaml\ngraph: {path: " + folder_ + id +
        ".trace, dimensions: {dim0: 4, dim1: 2}}\n" + replay));
    return record.find("time_s")->value * 1e9;
  }
  std::string refusal(const std::string& network, const std::string& system) const {
    write("refused.yml", network);
    write("refused.json", system);
    ImportOptions options;
    options.system = folder_ + "refused.json";
    try {
      import_file("astra-network", folder_ + "refused.yml", options);
    } catch (const config::ConfigError& error) {
      return error.what();
    }
    return {};
  }

  std::string folder_ = testing::TempDir() + std::to_string(::getpid()) + "_astra/";
};

constexpr const char* kDimensions = "algorithm: dimensions\n";
constexpr const char* kMemory = R"(, "local-mem-bw": 50)";

// By hand: 4 chunks x 14 steps x 510 ns = 28,560; 14/8 MiB over 50 x 2^30 B/s = 34,180; half of the
// bytes are summed, 3 x 7/8 MiB over 50 GB/s = 55,050: 117,790 ns. ASTRA-sim prints 117,780.
TEST_F(AstraNetwork, AnAllReduceOfTheTemplateTakesWhatAstraSimPrints) {
  const double time = all_reduce_ns("template", "Ring", "ring", kMemory);
  EXPECT_NEAR(time, 117'790, 2);
  EXPECT_NEAR(time / 117'780, 1, 0.01);
}

TEST_F(AstraNetwork, SumsAreFreeWhereNoMemoryIsTold) {
  EXPECT_NEAR(all_reduce_ns("free", "Ring", "ring"), 28'560 + 34'180, 2);
}

// A ring goes from each rank to the next: over one link where all are linked, over two and the
// switch between them, 4 x 14 x (2 x 500 + 10) ns.
TEST_F(AstraNetwork, RingsTakeOneLinkOfAFullMeshAndTwoOfASwitch) {
  EXPECT_NEAR(all_reduce_ns("full", "FullyConnected", "oneRing"), 28'560 + 34'180, 2);
  EXPECT_NEAR(all_reduce_ns("switch", "Switch", "ring"), 56'560 + 34'180, 2);
  EXPECT_NEAR(all_reduce_ns("summed", "Switch", "ring", kMemory), 56'560 + 34'180 + 55'050, 2);
}

// 4 chunks x 2 steps x 510 ns, and 1/8 MiB twice over each link: 4,080 + 4,883 ns.
TEST_F(AstraNetwork, DirectCollectivesTakeALinkForEachPair) {
  EXPECT_NEAR(all_reduce_ns("direct", "FullyConnected", "direct", "", "algorithm: direct\n"),
              4'080 + 4'883, 2);
}

// 4 chunks x 6 steps x 1,010 or 510 ns; bytes as of a ring.
TEST_F(AstraNetwork, HalvingAndDoublingTakesTwoStepsForEachPowerOfTwo) {
  const std::string named = "algorithm: recursive\n";
  EXPECT_NEAR(all_reduce_ns("halving", "Switch", "halvingDoubling", "", named), 24'240 + 34'180, 2);
  EXPECT_NEAR(all_reduce_ns("half_sum", "Switch", "halvingDoubling", kMemory, named),
              24'240 + 34'180 + 55'050, 2);
  EXPECT_NEAR(all_reduce_ns("half_full", "FullyConnected", "halvingDoubling", "", named),
              12'240 + 34'180, 2);
}

// Sums of seven messages at once, each with the whole memory, as ASTRA-sim has it: of a chunk
// 10 + 2 x 510 ns, 1/8 twice over a link, 3 x 32 KiB over 50 GB/s.
TEST_F(AstraNetwork, DirectSumsOfAllRanksAreAtOnce) {
  EXPECT_NEAR(all_reduce_ns("direct_sum", "FullyConnected", "direct", kMemory, kDimensions),
              4 * (10 + 1'020 + 1'220.7 + 1'966.1), 2);
}

// A chunk of 256 KiB: twice 1,010 ns through a switch and 7 x 32 KiB over one port, 4,272.5 ns; on
// a ring twice 10 + 4 x 500 ns and 16 links of 32 KiB over two ways, 4,882.8 ns.
TEST_F(AstraNetwork, MessagesThatGoThroughOnePortShareIt) {
  EXPECT_NEAR(all_reduce_ns("direct_switch", "Switch", "direct", "", kDimensions),
              4 * (10 + 2 * (1'010 + 4'272.5)), 2);
  EXPECT_NEAR(all_reduce_ns("direct_ring", "Ring", "direct", "", kDimensions),
              4 * (10 + 2 * (2'010 + 4'882.8)), 2);
  ImportOptions options;
  options.system = folder_ + "direct_ring.json";
  EXPECT_THAT(import_file("astra-network", folder_ + "direct_ring.yml", options).notes,
              testing::Contains(HasSubstr("share links of this Ring")));
  // Two have one message each, and a link for it.
  write("direct_ring.yml",
        "topology: [ Switch ]\nnpus_count: [ 2 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n");
  EXPECT_THAT(import_file("astra-network", folder_ + "direct_ring.yml", options).notes,
              testing::Not(testing::Contains(HasSubstr("share links"))));
}

/// Rings of 4 across pairs behind switches.
constexpr const char* kRingsAndSwitches =
    "topology: [ Ring, Switch ]\nnpus_count: [ 4, 2 ]\nbandwidth: [ 50.0, 25.0 ]\n"
    "latency: [ 500, 1000 ]\n";
constexpr const char* kRings = R"(["ring", "ring"], "collective-optimization": "localBWAware")";

// A chunk of 256 KiB in a ring: 10 + 3 x 510 ns and 192 KiB over 50 x 2^30 B/s, 5,202.1 ns, and
// 3 x 192 KiB over 50 GB/s where it is summed, 11,796.5. Between pairs 10 + 2 x 2,010 ns, 64 KiB
// over 25 x 2^30 B/s, 3 x 32 KiB over 50 GB/s: 8,437.5 ns, hidden behind the rings.
TEST_F(AstraNetwork, ChunksGoThroughTwoDimensionsInAPipeline) {
  write("two.yml", kRingsAndSwitches);
  EXPECT_NEAR(collective_ns("two", std::string(kRings) + kMemory, kDimensions),
              4 * (5'202.1 + 11'796.5 + 5'202.1), 2);
  // Without sums 6,471.4 between pairs, still hidden.
  EXPECT_NEAR(collective_ns("two", kRings, kDimensions), 8 * 5'202.1, 2);
}

// The whole 256 KiB in each: 10 + 6 x 510 + 2 x 3,662.1 = 10,394.2 ns in the rings, 10 + 4,020 +
// 256 KiB over 25 x 2^30 B/s = 13,795.6 between pairs.
TEST_F(AstraNetwork, BaselineReducesTheWholeBufferInEachDimension) {
  write("base.yml", kRingsAndSwitches);
  EXPECT_NEAR(collective_ns("base", R"(["ring", "ring"], "collective-optimization": "baseline")",
                            kDimensions),
              10'394.2 + 4 * 13'795.6, 2);
}

TEST_F(AstraNetwork, InvolvedDimensionsAloneAreUsed) {
  write("first.yml", kRingsAndSwitches);
  write("second.yml", kRingsAndSwitches);
  const std::string along = R"("comm_type": 0, "involved_dim": )";
  EXPECT_NEAR(collective_ns("first", kRings, kDimensions, along + "[true, false]"), 4 * 10'394.2,
              2);
  EXPECT_NEAR(collective_ns("second", kRings, kDimensions, along + "[false, true]"), 4 * 13'795.6,
              2);
}

// Direct in pairs: 10 + 510 ns and 128 KiB over 100 x 2^30 B/s = 1,740.7. Halving and doubling of
// the 128 KiB that are left, among 4 behind a switch of 1 us: 10 + 4 x 2,010 ns, 192 KiB over
// 25 x 2^30 B/s: 15,374.2.
TEST_F(AstraNetwork, DimensionsHaveAlgorithmsOfTheirOwn) {
  write("own.yml",
        "topology: [ FullyConnected, Switch ]\nnpus_count: [ 2, 4 ]\n"
        "bandwidth: [ 100, 25 ]\nlatency: [ 500, 1000 ]\n");
  EXPECT_NEAR(collective_ns("own",
                            R"(["direct", "halvingDoubling"],
                               "collective-optimization": "localBWAware")",
                            kDimensions),
              1'740.7 + 4 * 15'374.2 + 1'740.7, 2);
}

TEST_F(AstraNetwork, WhatSeveralDimensionsHaveNotIsRefusedWhereItStands) {
  const std::string network = kRingsAndSwitches;
  EXPECT_THAT(refusal(network, R"({"all-reduce-implementation": ["oneRing", "oneRing"]})"),
              AllOf(HasSubstr("refused.json:1:2: all-reduce-implementation"),
                    HasSubstr("\"oneRing\" has none")));
  EXPECT_THAT(refusal(network, R"({"all-reduce-implementation": ["ring"]})"),
              HasSubstr("an algorithm for each of the 2 dimensions"));
  EXPECT_THAT(refusal(network, R"({"inter-dimension-scheduling": "offlineGreedy"})"),
              HasSubstr("refused.json:1:2: inter-dimension-scheduling"));
  EXPECT_THAT(refusal(network + "x: [", "{}"), HasSubstr("refused.yml:5"));
  EXPECT_THAT(refusal("topology: [Ring, Torus2D]\nnpus_count: [4, 2]\nbandwidth: [5, 5]\n"
                      "latency: [5, 5]\n",
                      "{}"),
              HasSubstr("refused.yml:1:18: topology: "));
}

TEST_F(AstraNetwork, DimensionsOfOneRankDoNotCount) {
  write("one.yml",
        "topology: [Switch, Ring]\nnpus_count: [1, 4]\nbandwidth: [5, 50]\nlatency: [5, 500]\n");
  const ImportedTable table = import_file("astra-network", folder_ + "one.yml", {});
  EXPECT_THAT(table.document, HasSubstr("ASTRA-sim Ring of 4"));
}

TEST_F(AstraNetwork, WhatHasNoCounterpartIsRefusedByName) {
  const auto network = [](const std::string& shape, int ranks = 8) {
    return "topology: [" + shape + "]\nnpus_count: [" + std::to_string(ranks) +
           "]\nbandwidth: [50]\nlatency: [500]\n";
  };
  const auto by = [](const std::string& algorithm, const std::string& more = "") {
    return R"({"all-reduce-implementation": [")" + algorithm + "\"]" + more + "}";
  };
  EXPECT_THAT(refusal(network("Torus2D"), "{}"), HasSubstr("'Torus2D' has none"));
  EXPECT_THAT(
      refusal("topology: [Ring, Ring]\nnpus_count: [8]\nbandwidth: [5]\nlatency: [5]\n", "{}"),
      HasSubstr("lists of different lengths"));
  EXPECT_THAT(refusal(network("Ring"), by("doubleBinaryTree")),
              HasSubstr("\"doubleBinaryTree\" has none"));
  EXPECT_THAT(refusal(network("Ring"), R"({"all-reduce-implementation": ["ring", "ring"]})"),
              HasSubstr("for each of the 1 dimensions"));
  EXPECT_THAT(refusal(network("Switch", 6), by("halvingDoubling")), HasSubstr("a power of two"));
  EXPECT_THAT(
      refusal(network("Ring"), by("ring", R"(, "all-gather-implementation": ["halvingDoubling"])")),
      HasSubstr("has one for all"));
}

}  // namespace
}  // namespace orrery::astra_network_test
