// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "sim/config/diagnostics.h"
#include "tests/unit/importers/samples.h"
#include "tests/unit/importers/scratch.h"

namespace orrery::nccl_topology_test {
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
  EXPECT_NE(error(text, "count=\"4\"", "count=\"0\"").find("'count' must be a number between 1"),
            std::string::npos);
  EXPECT_NE(error(text, "sm=\"90\"", "sm=\"91\"").find("another GPU than the first one"),
            std::string::npos);
  EXPECT_NE(error(text, "0000:11:00.0", "0000:10:00.0").find("no error"), std::string::npos);
  EXPECT_NE(error(text, "\"0000:12:00.0\"", "\"0000:14:00.0\"").find("a second GPU on bus"),
            std::string::npos);
}

/// A host of GPUs below one CPU, each with these attributes of its PCI device and elements below.
std::string host(const std::string& attributes, const std::vector<std::string>& gpus,
                 const std::string& hash = "0x1", const std::string& further = "") {
  std::string text = "<cpu host_hash=\"" + hash + "\" numaid=\"0\" arch=\"x86_64\">\n";
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const std::string bus = "0000:" + std::to_string(10 + i) + ":00.0";
    text += "<pci busid=\"" + bus + "\" class=\"0x030200\" " + attributes +
            " link_speed=\"16 GT/s\" link_width=\"16\">" + gpus[i] + "</pci>\n";
  }
  return text + further + "</cpu>\n";
}
std::string system_of(const std::string& hosts) {
  return "<system version=\"1\">\n" + hosts + "</system>\n";
}
const char* const kH100 = "vendor=\"0x10de\" device=\"0x2330\"";

TEST_F(NcclTopology, ThePciDeviceNamesThePart) {
  const auto base = [&](const std::string& device, const std::string& vendor = "0x10de") {
    const std::string text = system_of(host("vendor=\"" + vendor + "\" device=\"" + device + "\"",
                                            {"<gpu dev=\"0\" sm=\"90\"/>"}));
    const std::string problem = message_of([&] { read(text); });
    if (!problem.empty()) return problem;
    const std::string yaml = read(text).document;
    const std::size_t start = yaml.find("extends: ") + 9;
    return yaml.substr(start, yaml.find('\n', start) - start);
  };
  EXPECT_EQ(base("0x2330"), "dgx_h100");
  EXPECT_EQ(base("0x2335"), "dgx_h200");
  EXPECT_EQ(base("0x20b0"), "dgx_a100_40");
  EXPECT_EQ(base("0x2901"), "dgx_b200");
  EXPECT_EQ(base("0x31c2"), "gb300_nvl72");
  EXPECT_EQ(base("0x74a1", "0x1002"), "mi300x_platform");
  EXPECT_EQ(base("0x2331"), "h100_pcie_8");
  EXPECT_EQ(base("0x2684"), "rtx_4090_8");
  EXPECT_NE(base("0x1db4").find("the library has no system of NVIDIA V100 PCIe 16GB (PCI device "
                                "10de:1db4); name one with --system"),
            std::string::npos);
  EXPECT_NE(base("0x1234").find("a GPU that is not known (PCI device 10de:1234)"),
            std::string::npos);
  EXPECT_NE(base("0x55b7", "0x1d94").find("a Hygon DCU (PCI device 1d94:55b7)"), std::string::npos);
}

/// Two processors with two cards each, behind a switch or not.
std::string cards(const std::string& device, bool switches, const std::string& speed = "16 GT/s",
                  const std::string& gpu = "") {
  std::string text;
  const std::string slot = " link_speed=\"" + speed + "\" link_width=\"16\">";
  for (int cpu = 0; cpu < 2; ++cpu) {
    text += "<cpu host_hash=\"0x1\" numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\">\n";
    if (switches) {
      text += "<pci busid=\"0000:0" + std::to_string(cpu) + ":00.0\" class=\"0x060400\"" + slot;
    }
    for (int i = 0; i < 2; ++i) {
      const std::string rank = std::to_string(2 * cpu + i);
      text += "<pci busid=\"0000:1" + rank +
              ":00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"" + device + "\"" + slot +
              "<gpu dev=\"" + rank + "\" rank=\"" + rank + "\" sm=\"89\">" + gpu + "</gpu></pci>\n";
    }
    if (switches) text += "</pci>\n";
    text += "</cpu>\n";
  }
  return system_of(text);
}

TEST_F(NcclTopology, CardsWithNothingButSlotsAreAPcieBox) {
  const std::string yaml = read(cards("0x26b9", true)).document;
  EXPECT_NE(yaml.find("extends: l40s_8\n"), std::string::npos);
  EXPECT_NE(yaml.find("kind: pcie\n  pcie:\n    generation: 4\n    lanes: 16\n    "
                      "packages_per_switch: 2\n    uplink_lanes: 16\n    switch_lanes: 0\n    "
                      "sockets: 2\n    bridge: 0\n    socket_link: {value: 10 GB/s,"),
            std::string::npos)
      << yaml;
  const std::string direct = read(cards("0x2684", false)).document;
  EXPECT_NE(direct.find("packages_per_switch: 0\n"), std::string::npos) << direct;
}

// A card that sleeps tells 2.5 GT/s, and a switch of NVLink is no bridge.
TEST_F(NcclTopology, WhatIsNoRegularBoxStaysAGraph) {
  EXPECT_NE(read(cards("0x26b9", true, "2.5 GT/s")).document.find("kind: graph"),
            std::string::npos);
  const std::string link = "<nvlink target=\"0000:a0:00.0\" count=\"2\" tclass=\"0x068000\"/>";
  EXPECT_NE(read(cards("0x26b9", true, "16 GT/s", link)).document.find("kind: graph"),
            std::string::npos);
  EXPECT_NE(read(cards("0x26b9", true), "dgx_h100").document.find("kind: graph"),
            std::string::npos);
}

TEST_F(NcclTopology, APartThatDiffersFromItsSystemIsWritten) {
  const std::string yaml =
      read(system_of(host("vendor=\"0x10de\" device=\"0x1db5\"", {"<gpu dev=\"0\" sm=\"70\"/>"})))
          .document;
  EXPECT_NE(yaml.find("extends: dgx_1\n"), std::string::npos);
  EXPECT_NE(yaml.find("accelerator: v100_sxm_32\n"), std::string::npos);
}

TEST_F(NcclTopology, WithoutPciIdentityOnlyTheLinksOfNvidiaTellAndThatIsSaid) {
  const std::string linked =
      "<gpu dev=\"0\" sm=\"80\"><nvlink target=\"0000:a0:00.0\" count=\"12\" "
      "tclass=\"0x068000\"/></gpu>";
  const ImportedTable table = read(system_of(host("", {linked})));
  EXPECT_NE(table.document.find("extends: dgx_a100\n"), std::string::npos);
  ASSERT_EQ(table.notes.size(), 1U);
  EXPECT_NE(table.notes[0].find("tells no PCI device of its GPUs; sm 80 is taken for dgx_a100"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              read(system_of(host("", {"<gpu dev=\"0\" sm=\"90\"/>"})));
            }).find("a GPU that is not known (sm 90)"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              read(system_of(host("", {"<gpu dev=\"0\" sm=\"90\" gcn=\"21943\"/>"})));
            }).find("(gcn 21943)"),
            std::string::npos);
}

TEST_F(NcclTopology, FabricLinksOfAmdJoinTheGpusWhicheverTellsThem) {
  const std::string ids = "vendor=\"0x1002\" device=\"0x74a1\"";
  const ImportedTable table = read(
      system_of(host(ids, {"<gpu dev=\"0\" sm=\"304\" gcn=\"gfx942\"/>",
                           "<gpu dev=\"1\" sm=\"304\" gcn=\"gfx942\"><xgmi target=\"0000:10:00\" "
                           "count=\"1\" tclass=\"0x120000\"/></gpu>"})));
  const std::size_t last = table.rows.size() - 1;
  EXPECT_EQ(cell(table, last, "from"), "accelerator0");
  EXPECT_EQ(cell(table, last, "to"), "accelerator1");
  EXPECT_EQ(cell(table, last, "bytes_per_s"), "64000000000");
  ASSERT_EQ(table.notes.size(), 1U);
  EXPECT_NE(table.notes[0].find("accelerator0 tells 0 links to accelerator1, and that one 1"),
            std::string::npos);
}

TEST_F(NcclTopology, LinksToNowhereAreLeftOutAndCounted) {
  const std::string gpu =
      "<gpu dev=\"0\" sm=\"90\"><nvlink target=\"0000:10:00.0\" count=\"12\" "
      "tclass=\"0x030200\"/><nvlink target=\"0000:77:00.0\" count=\"2\" tclass=\"0x030200\"/>"
      "</gpu>";
  const ImportedTable table = read(system_of(host(kH100, {gpu})));
  EXPECT_EQ(table.rows.size(), 1U);
  ASSERT_EQ(table.notes.size(), 2U);
  EXPECT_NE(table.notes[0].find("left out 12 links of GPUs to themselves"), std::string::npos);
  EXPECT_NE(table.notes[1].find("left out 2 links to GPUs that are not in the file"),
            std::string::npos);
}

TEST_F(NcclTopology, TraysOfARackShareTheSwitchesThatTheyDoNotSee) {
  const auto gpu = [](int rank) {
    return "<gpu dev=\"0\" sm=\"100\" rank=\"" + std::to_string(rank) +
           "\"><nvlink target=\"fffffff:ffff:ff\" count=\"18\" tclass=\"0x068000\"/>"
           "<c2c bw=\"44712\" count=\"10\"/></gpu>";
  };
  const std::string ids = "vendor=\"0x10de\" device=\"0x2941\"";
  const ImportedTable table =
      read(system_of(host(ids, {gpu(1)}, "0x1") + host(ids, {gpu(0)}, "0x2")));
  EXPECT_NE(table.document.find("accelerators: {value: 2,"), std::string::npos);
  EXPECT_NE(table.document.find("accelerators_per_node: 1\n"), std::string::npos);
  int to_switch = 0;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    to_switch += cell(table, row, "to") == "nvswitch0" ? 1 : 0;
    EXPECT_NE(cell(table, row, "to"), "cpu1");  // CPUs of other hosts are not joined
  }
  EXPECT_EQ(to_switch, 2);
  EXPECT_EQ(cell(table, 0, "to"), "accelerator1");  // ranks count, not places in the file
}

TEST_F(NcclTopology, NicsBelowACpuAreThere) {
  const ImportedTable table = read(system_of(
      host(kH100, {"<gpu dev=\"0\" sm=\"90\"/>"}, "0x1",
           "<nic><net name=\"eth0\" speed=\"10000\"/></nic><nic><net name=\"x\"/></nic>")));
  EXPECT_EQ(cell(table, 1, "from"), "cpu0");
  EXPECT_EQ(cell(table, 1, "to"), "nic0");
  EXPECT_EQ(cell(table, 1, "bytes_per_s"), "1250000000");  // 10 Gb/s
  ASSERT_EQ(table.notes.size(), 1U);
  EXPECT_NE(table.notes[0].find("nic1 below cpu0 tells no speed"), std::string::npos);
}

TEST_F(NcclTopology, StubsHaveTheLinksOfTheSystemThatIsNamed) {
  const std::string text = system_of(host(kH100, {"", ""}));
  EXPECT_NE(message_of([&] { read(text); })
                .find("there is no <gpu>, so that the links between the GPUs are not known; name "
                      "the system that has them with --system, such as dgx_h100"),
            std::string::npos);
  const ImportedTable table = read(text, "dgx_h100");
  EXPECT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.document.find("scale_up"), std::string::npos);
  EXPECT_NE(table.document.find("accelerators: {value: 2,"), std::string::npos);
}

TEST_F(NcclTopology, OnlyASystemCanBeExtended) {
  EXPECT_NE(message_of([&] { read(text_of_sample(), "h200_sxm"); })
                .find("--system h200_sxm: this is an accelerator, and a topology extends a system, "
                      "such as aws_p5e"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              read(text_of_sample(), "dgx_h10");
            }).find("the library has no such system; did you mean 'dgx_h100'?"),
            std::string::npos);
  const ImportedTable table = read(text_of_sample(), "dgx_h200");
  ASSERT_EQ(table.notes.size(), 1U);
  EXPECT_NE(table.notes[0].find("the file's GPUs are NVIDIA H100 SXM5 80GB"), std::string::npos);
}

TEST_F(NcclTopology, AnotherFileIsNoTopology) {
  EXPECT_THROW(read("<html/>"), config::ConfigError);
  EXPECT_THROW(read("size,time\n1,2\n"), config::ConfigError);
  EXPECT_THROW(read("<system><cpu/></system>"), config::ConfigError);
}

}  // namespace
}  // namespace orrery::nccl_topology_test
