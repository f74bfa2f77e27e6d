// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "sim/config/diagnostics.h"
#include "tests/unit/importers/samples.h"
#include "tests/unit/importers/scratch.h"

namespace orrery::infragraph_test {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::string text_of_sample() {
  std::ifstream stream(sample("infragraph.yaml"));
  return {std::istreambuf_iterator<char>(stream), {}};
}

class InfraGraphs : public Scratch {
 protected:
  ImportedTable read(const std::string& text, const std::string& accelerator = "h100_sxm") const {
    ImportOptions options;
    options.accelerator = accelerator;
    return import_file("infragraph", write("infra.yaml", text), options);
  }
  std::string error(const std::string& from, const std::string& to,
                    const std::string& accelerator = "h100_sxm") const {
    std::string text = text_of_sample();
    text.replace(text.find(from), from.size(), to);
    return message_of([&] { read(text, accelerator); });
  }
};

/// "links x bytes/s" by kind and ends.
std::map<std::string, std::string> wires(const ImportedTable& table) {
  std::map<std::string, std::string> found;
  for (std::size_t row = 0; row < table.rows.size(); ++row)
    found[cell(table, row, "kind") + " " + cell(table, row, "from") + " " +
          cell(table, row, "to")] =
        cell(table, row, "links") + " x " + cell(table, row, "bytes_per_s");
  return found;
}

TEST_F(InfraGraphs, AcceleratorsAreJoinedByTheirEdgesInTheOrderOfInstances) {
  const ImportedTable table = read(text_of_sample());
  const auto found = wires(table);
  EXPECT_EQ(found.at("scale_up accelerator0 host.0.bridge.1"), "1 x 100000000000");
  EXPECT_EQ(found.at("scale_up accelerator7 host.1.bridge.0"), "1 x 100000000000");
  EXPECT_EQ(found.at("host accelerator5 host.1.nic.1"), "1 x 50000000000");
  EXPECT_EQ(found.at("host host.0.nic.3 host.0.cpu.0"), "1 x 50000000000");
  EXPECT_EQ(found.at("scale_out host.1.nic.3 tor.0.port.7"), "1 x 50000000000");
  // 16 to bridges, 8 to NICs, 8 from NICs to processors, 8 cables, 8 inside the leaf.
  EXPECT_EQ(table.rows.size(), 48U);
}

TEST_F(InfraGraphs, PortsCarryWhatTheirLinksBringWhereNoBandwidthIsTold) {
  const ImportedTable table = read(text_of_sample());
  EXPECT_EQ(wires(table).at("scale_out tor.0.asic.0 tor.0.port.0"), "1 x 50000000000");
  EXPECT_THAT(table.notes, Contains(HasSubstr("no bandwidth: 8 edges, which have that of")));
}

TEST_F(InfraGraphs, ASystemTakesItsLatenciesFromTheNearestAndTheFarthestAccelerators) {
  const std::string text = read(text_of_sample()).document;
  // Two links of 250 ns; far ones 0.5 + 1 + 1 + 0.5 us over six links, four more.
  EXPECT_THAT(text, HasSubstr("  latency: {value: 500 ns,"));
  EXPECT_THAT(text, HasSubstr("  hop_latency: {value: 625 ns,"));
  EXPECT_THAT(text, HasSubstr("accelerators: {value: 8,"));
  EXPECT_THAT(text, HasSubstr("accelerators_per_node: 4\n"));
  EXPECT_THAT(text, HasSubstr("extends: h100_sxm\n"));
  EXPECT_THAT(text, HasSubstr("bandwidth: {value: 200 GB/s,"));
}

TEST_F(InfraGraphs, EdgesWithoutBandwidthShareThePortsOfTheAccelerator) {
  std::string text = text_of_sample();
  const std::string told =
      "            bandwidth: {choice: gigabytes_per_second, "
      "gigabytes_per_second: 100}\n";
  text.erase(text.find(told), told.size());
  const ImportedTable table = read(text);
  EXPECT_EQ(wires(table).at("scale_up accelerator0 host.0.bridge.1"), "1 x 225000000000");
  EXPECT_THAT(table.document, HasSubstr("accelerator: h100_sxm\n"));  // with its own ports
}

TEST_F(InfraGraphs, JsonSaysTheSame) {
  const ImportedTable table = read(R"({"devices": [{"name": "box", "components": [
      {"name": "xpu", "count": 3, "choice": "xpu"}], "links": [{"name": "l", "physical":
      {"bandwidth": {"gigabits_per_second": 80}}}], "edges": [{"ep1": {"component": "xpu"},
      "ep2": {"component": "xpu"}, "scheme": "ring", "link": "l"}]}],
      "instances": [{"name": "box", "device": "box", "count": 1}], "edges": []})");
  const auto found = wires(table);
  EXPECT_EQ(found.size(), 3U);
  EXPECT_EQ(found.at("scale_up accelerator0 accelerator1"), "1 x 10000000000");
  EXPECT_EQ(found.at("scale_up accelerator2 accelerator0"), "1 x 10000000000");
  EXPECT_THAT(
      table.notes,
      Contains(HasSubstr("no latency between the nearest xpus: a step takes 2 us (estimate)")));
}

TEST_F(InfraGraphs, DevicesMayBePartsOfDevices) {
  std::string text = text_of_sample();
  const auto change = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  change("{name: nic, count: 4, choice: nic}", "{name: card, count: 4, choice: device}");
  change("ep2: {component: \"nic[:]\"}", "ep2: {component: \"card[0:4].nic[0]\"}");
  change("ep1: {component: nic}, ep2: {component: \"cpu[0]\"}",
         "ep1: {device: card, component: nic}, ep2: {component: cpu}");
  change("    - name: leaf\n",
         "    - name: card\n      components: [{name: nic, count: 1, choice: nic}]\n"
         "      links: []\n      edges: []\n    - name: leaf\n");
  change("instance: \"host[0]\", component: nic}", "instance: \"host[0]\", component: card.nic}");
  change("instance: \"host[1]\", component: nic}", "instance: \"host[1]\", component: card.nic}");
  EXPECT_EQ(wires(read(text)).at("scale_out host.1.card.3.nic.0 tor.0.port.7"), "1 x 50000000000");
}

TEST_F(InfraGraphs, PartsWithoutAnEqualAreNamedOncePerKind) {
  std::string text = text_of_sample() + "  annotations: {nodes: []}\n";
  const std::string told = "gigabytes_per_second, gigabytes_per_second: 50}";
  text.replace(text.find(told), told.size(),
               "gigatransfers_per_second, gigatransfers_per_second: 32}");
  const ImportedTable table = read(text);
  EXPECT_THAT(table.notes, Contains(HasSubstr("annotations: ranks are numbered")));
  EXPECT_THAT(table.notes, Contains(HasSubstr("transfers a second: 1 links, whose lanes")));
}

TEST_F(InfraGraphs, MistakesAreShownInTheirPlace) {
  EXPECT_THAT(error("link: cable", "link: cabel"),
              AllOf(HasSubstr("infra.yaml:44:13: error: there is no link 'cabel'"),
                    HasSubstr("did you mean 'cable'?")));
  EXPECT_THAT(error("instance: \"host[1]\"", "instance: \"host[2]\""),
              HasSubstr("'host[2]' is out of range: there are 2"));
  EXPECT_THAT(error("component: bridge}", "component: brigde}"),
              HasSubstr("device 'server' has no component 'brigde'"));
  EXPECT_THAT(error("scheme: many2many", "scheme: many2one"), HasSubstr("unknown scheme"));
  EXPECT_THAT(error("device: server", "device: sever"), HasSubstr("there is no device 'sever'"));
  EXPECT_THAT(error("count: 4, choice: xpu", "count: 4000, choice: xpu"),
              HasSubstr("more than 2048 components"));
  EXPECT_THAT(error("choice: ns, ns: 250", "choice: fs, ns: 250"), HasSubstr("unknown unit 'fs'"));
  EXPECT_THAT(error("choice: xpu", "choice: cpu"), HasSubstr("no component of type xpu"));
}

TEST_F(InfraGraphs, AcceleratorsThatNoEdgesJoinAreRefused) {
  EXPECT_THAT(
      error("instance: \"host[1]\", component: nic", "instance: \"host[0]\", component: nic"),
      HasSubstr("no edges lead from host.0.xpu.0 to host.1.xpu.0"));
}

TEST_F(InfraGraphs, TheAcceleratorHasToBeNamed) {
  EXPECT_THAT(error("x", "x", ""), HasSubstr("name one with --accelerator"));
}

}  // namespace
}  // namespace orrery::infragraph_test
