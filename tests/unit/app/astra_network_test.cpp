// SPDX-License-Identifier: Apache-2.0
// Networks of ASTRA-sim as systems of ours: the same traces take the same times.
#include <unistd.h>

#include <gtest/gtest.h>

#include <fstream>

#include "sim/app/experiments/simulate.h"
#include "tests/unit/app/loaded_text.h"
#include "validation/importers/importer.h"

namespace orrery {
namespace {

/// Begin of the names of files and folders of this process.
const std::string kTemp = testing::TempDir() + std::to_string(::getpid()) + "_";

class AstraNetwork : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + name) << text;
  }
  /// Time of an all-reduce of 1 MiB over a ring of 8 in ASTRA-sim's settings, in ns.
  double all_reduce_ns(const std::string& id, const std::string& memory) const {
    write(id + ".yml",
          "topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n");
    write(id + ".json",
          R"({"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1,
              "preferred-dataset-splits": 4, "all-reduce-implementation": ["ring"])" +
              memory + "}");
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
                            ".yaml\ngraph: {path: " + folder_ + id + ".trace}\n"));
    return record.find("time_s")->value * 1e9;
  }

  std::string folder_ = kTemp + "astra_";
};

// By hand: 4 chunks x 14 steps x 510 ns = 28,560; 14/8 MiB over 50 x 2^30 B/s = 34,180; half of the
// bytes are summed, 3 x 7/8 MiB over 50 GB/s = 55,050: 117,790 ns. ASTRA-sim prints 117,780.
TEST_F(AstraNetwork, AnAllReduceOfTheTemplateTakesWhatAstraSimPrints) {
  const double time = all_reduce_ns("template", R"(, "local-mem-bw": 50)");
  EXPECT_NEAR(time, 117'790, 2);
  EXPECT_NEAR(time / 117'780, 1, 0.01);
}

TEST_F(AstraNetwork, SumsAreFreeWhereNoMemoryIsTold) {
  EXPECT_NEAR(all_reduce_ns("free", ""), 28'560 + 34'180, 2);
}

TEST_F(AstraNetwork, WhatHasNoCounterpartIsRefused) {
  write("switch.yml",
        "topology: [ Switch ]\nnpus_count: [ 8 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n");
  EXPECT_THROW(import_file("astra-network", folder_ + "switch.yml", {}), config::ConfigError);
  write(
      "two.yml",
      "topology: [ Ring, Ring ]\nnpus_count: [ 8, 2 ]\nbandwidth: [ 50, 5 ]\nlatency: [ 5, 5 ]\n");
  EXPECT_THROW(import_file("astra-network", folder_ + "two.yml", {}), config::ConfigError);
}

}  // namespace
}  // namespace orrery
