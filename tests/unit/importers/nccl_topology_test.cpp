// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "sim/config/diagnostics.h"
#include "tests/unit/importers/samples.h"
#include "tests/unit/importers/scratch.h"

namespace orrery {
namespace {

std::string text_of_sample() {
  std::ifstream stream(sample("nccl_topology.xml"));
  return {std::istreambuf_iterator<char>(stream), {}};
}

class NcclTopology : public Scratch {
 protected:
  ImportedTable read(const std::string& text, const std::string& system = "") {
    return import_file("nccl-topology", write("topology.xml", text), {system, ""});
  }
  std::string error(std::string text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    try {
      read(text);
    } catch (const config::ConfigError& problem) {
      return problem.what();
    }
    return "no error";
  }
};

TEST_F(NcclTopology, GpusAreJoinedToSwitchesByTheirCountsAndToTheHostByPci) {
  const ImportedTable table = read(text_of_sample());
  std::map<std::string, int> links;  // by the ends
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    links[cell(table, row, "from") + " " + cell(table, row, "to")] =
        std::stoi(cell(table, row, "links"));
  }
  for (int gpu = 0; gpu < 4; ++gpu) {
    const std::string name = "accelerator" + std::to_string(gpu);
    EXPECT_EQ(links[name + " nvswitch0"], 5);
    EXPECT_EQ(links[name + " nvswitch1"], 4);
    EXPECT_EQ(links["pci" + std::to_string(gpu) + " " + name], 1);
    EXPECT_EQ(links["pci" + std::to_string(gpu) + " nic" + std::to_string(gpu)], 1);
  }
  EXPECT_EQ(links["cpu0 cpu1"], 1);
  EXPECT_EQ(links["cpu1 pci3"], 1);
}

TEST_F(NcclTopology, RatesAreThoseOfTheLinks) {
  const ImportedTable table = read(text_of_sample());
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const double rate = std::stod(cell(table, row, "bytes_per_s"));
    if (cell(table, row, "kind") == "scale_up") {
      EXPECT_EQ(rate, 25e9);
    } else if (cell(table, row, "to") != "cpu1") {
      EXPECT_NEAR(rate, 32e9 / 8 * 16 * 128 / 130, 1);
    }
  }
}

TEST_F(NcclTopology, ItBecomesASystemThatExtendsOneOfTheLibrary) {
  const std::string yaml = read(text_of_sample()).document;
  EXPECT_NE(yaml.find("extends: dgx_h100\n"), std::string::npos);
  EXPECT_NE(yaml.find("kind: graph\n"), std::string::npos);
  EXPECT_NE(yaml.find("{from: accelerator0, to: nvswitch0, kind: scale_up, links: 5, "
                      "bandwidth: 25 GB/s}"),
            std::string::npos)
      << yaml;
  EXPECT_NE(read(text_of_sample(), "dgx_h200").document.find("extends: dgx_h200"),
            std::string::npos);
}

TEST_F(NcclTopology, ErrorsNameTheirPlace) {
  const std::string text = text_of_sample();
  EXPECT_NE(error(text, "count=\"5\"", "count=\"five\"").find("topology.xml:6:"), std::string::npos)
      << error(text, "count=\"5\"", "count=\"five\"");
  EXPECT_NE(error(text, "</cpu>", "</cup>").find("topology.xml:"), std::string::npos);
  EXPECT_NE(error(text, "tclass=\"0x068000\"", "tclass=\"0x030200\"")
                .find("no GPU on bus '0000:50:00.0'"),
            std::string::npos);
  EXPECT_NE(error(text, "sm=\"90\"", "sm=\"91\"").find("sm 91"), std::string::npos);
}

TEST_F(NcclTopology, AnotherFileIsNoTopology) {
  EXPECT_THROW(read("<html/>"), config::ConfigError);
  EXPECT_THROW(read("size,time\n1,2\n"), config::ConfigError);
  EXPECT_THROW(read("<system><cpu/></system>"), config::ConfigError);
}

}  // namespace
}  // namespace orrery
