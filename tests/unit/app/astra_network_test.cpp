// SPDX-License-Identifier: Apache-2.0
// Networks of ASTRA-sim as systems of ours: the same traces take the same times.
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sim/app/experiments/simulate.h"
#include "tests/unit/app/loaded_text.h"
#include "validation/importers/importer.h"

namespace orrery {
namespace {

using testing::HasSubstr;

/// Begin of the names of files and folders of this process.
const std::string kTemp = testing::TempDir() + std::to_string(::getpid()) + "_";

class AstraNetwork : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + name) << text;
  }
  /// Time of an all-reduce of 1 MiB among 8 in ASTRA-sim's settings, in ns.
  double all_reduce_ns(const std::string& id, const std::string& network,
                       const std::string& algorithm, const std::string& memory = "",
                       const std::string& replay = "algorithm: torus\n") const {
    write(id + ".yml", "topology: [ " + network +
                           " ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n");
    write(id + ".json",
          R"({"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1,
              "preferred-dataset-splits": 4, "all-reduce-implementation": [")" +
              algorithm + "\"]" + memory + "}");
    ImportOptions options;
    options.system = folder_ + id + ".json";
    write(id + ".yaml", import_file("astra-network", folder_ + id + ".yml", options).document);
    for (int rank = 0; rank < 8; ++rank) {
      write(id + ".trace." + std::to_string(rank) + ".et",
            R"({"workload_graph": [{"Id": 0, "Name": "ar", "NodeType": 7, "comm_type": 0,
                "comm_size": 1048576}]})");
    }
    const RunRecord record =
        simulate(test::load("experiment: replay\nsystem: " + folder_ + id +
                            ".yaml\ngraph: {path: " + folder_ + id + ".trace}\n" + replay));
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

  std::string folder_ = kTemp + "astra_";
};

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
  EXPECT_THAT(refusal("topology: [Ring, Switch]\nnpus_count: [8, 2]\nbandwidth: [50, 5]\n"
                      "latency: [5, 5]\n",
                      "{}"),
              HasSubstr("the product Ring x Switch has no counterpart"));
  EXPECT_THAT(
      refusal("topology: [Ring, Ring]\nnpus_count: [8]\nbandwidth: [5]\nlatency: [5]\n", "{}"),
      HasSubstr("lists of different lengths"));
  EXPECT_THAT(refusal(network("Ring"), by("doubleBinaryTree")),
              HasSubstr("doubleBinaryTree has none"));
  EXPECT_THAT(refusal(network("Ring"), R"({"all-reduce-implementation": ["ring", "ring"]})"),
              HasSubstr("has none"));
  EXPECT_THAT(refusal(network("Switch"), by("direct")), HasSubstr("direct on a Switch"));
  EXPECT_THAT(refusal(network("FullyConnected"), by("direct", kMemory)),
              HasSubstr("direct with local-mem-bw"));
  EXPECT_THAT(refusal(network("Ring"), by("halvingDoubling")),
              HasSubstr("halvingDoubling on a Ring"));
  EXPECT_THAT(refusal(network("Switch", 6), by("halvingDoubling")), HasSubstr("a power of two"));
  EXPECT_THAT(
      refusal(network("Ring"), by("ring", R"(, "all-gather-implementation": ["halvingDoubling"])")),
      HasSubstr("has one for all"));
}

}  // namespace
}  // namespace orrery
