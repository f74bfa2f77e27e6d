// SPDX-License-Identifier: Apache-2.0
// Machines of the library as NCCL and RCCL would dump them: the system that such a file becomes is
// as fast as the one that was described by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "sim/app/cli/command_line.h"
#include "sim/app/experiments/core/simulate.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::imported_topologies_test {
namespace {

namespace fs = std::filesystem;

/// Links of a GPU: elements below <gpu>.
using Links = std::function<std::string(int gpu)>;

struct Machine {
  std::string system;
  int gpus = 8;
  std::string vendor, device;
  std::string gpu;  ///< further attributes of <gpu>
  Links links{};
  int hosts = 1;
};
std::ostream& operator<<(std::ostream& out, const Machine& machine) {
  return out << machine.system << " " << machine.gpus;
}

std::string two_digits(int number) {
  constexpr const char* kDigits = "0123456789abcdef";
  return {kDigits[number / 16], kDigits[number % 16]};
}
std::string bus_of(int gpu) { return "0000:" + two_digits(16 + 4 * gpu) + ":00.0"; }

std::string link(const std::string& kind, const std::string& target, int count,
                 const std::string& type) {
  return "<" + kind + " target=\"" + target + "\" count=\"" + std::to_string(count) +
         "\" tclass=\"" + type + "\"/>\n";
}

/// So many links to each of the NVSwitches of a board.
Links to_switches(const std::vector<int>& counts, int gpus_of_board = 1 << 20) {
  return [=](int gpu) {
    std::string text;
    const int first = 0xa0 + gpu / gpus_of_board * static_cast<int>(counts.size());
    for (std::size_t i = 0; i < counts.size(); ++i) {
      text += link("nvlink", "0000:" + two_digits(first + static_cast<int>(i)) + ":00.0", counts[i],
                   "0x068000");
    }
    return text;
  };
}

/// The switches of a rack, which its trays do not see.
Links to_unseen_switches(int count) {
  return [=](int /*gpu*/) { return link("nvlink", "fffffff:ffff:ff", count, "0x068000"); };
}

Links to_all_others(int gpus) {
  return [=](int gpu) {
    std::string text;
    for (int other = 0; other < gpus; ++other) {
      if (other != gpu) text += link("xgmi", bus_of(other), 1, "0x120000");
    }
    return text;
  };
}

/// The hybrid cube mesh of a DGX-1 (WP-08437): each quad a square with its diagonals, and a double
/// link to the other quad.
std::string cube_mesh(int gpu) {
  struct Edge {
    int from, to, count;
  };
  constexpr Edge kEdges[] = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {1, 2, 2}, {1, 3, 1}, {2, 3, 1},
                             {4, 5, 1}, {4, 6, 1}, {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 1},
                             {0, 4, 2}, {1, 5, 2}, {2, 6, 2}, {3, 7, 2}};
  std::string text;
  for (const Edge& edge : kEdges) {
    if (edge.from == gpu) text += link("nvlink", bus_of(edge.to), edge.count, "0x030200");
    if (edge.to == gpu) text += link("nvlink", bus_of(edge.from), edge.count, "0x030200");
  }
  return text;
}

std::string pci(const std::string& bus, const std::string& type, const std::string& ids,
                const std::string& inner) {
  return "<pci busid=\"" + bus + "\" class=\"" + type + "\" " + ids +
         " link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n" + inner + "</pci>\n";
}

/// Two CPUs a host; a bridge with a GPU and a NIC below it for each GPU.
std::string dump_of(const Machine& machine) {
  const int of_host = machine.gpus / machine.hosts;
  std::string text = "<system version=\"1\">\n";
  for (int cpu = 0; cpu < 2 * machine.hosts; ++cpu) {
    text += "<cpu host_hash=\"0x" + two_digits(cpu / 2) + "\" numaid=\"" + std::to_string(cpu % 2) +
            "\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">\n";
    for (int i = 0; i < of_host / 2; ++i) {
      const int local = cpu % 2 * (of_host / 2) + i;
      const std::string gpu = "<gpu dev=\"" + std::to_string(local) + "\" " + machine.gpu +
                              " rank=\"" + std::to_string(cpu / 2 * of_host + local) +
                              "\" gdr=\"1\">\n" + machine.links(local) + "</gpu>\n";
      const std::string bus = bus_of(local).substr(0, 7);
      text += pci(bus + "01:00.0", "0x060400", "vendor=\"0x1000\" device=\"0xc010\"",
                  pci(bus_of(local), machine.vendor == "0x1002" ? "0x120000" : "0x030200",
                      "vendor=\"" + machine.vendor + "\" device=\"" + machine.device + "\"", gpu) +
                      pci(bus + "02:00.0", "0x020700", "vendor=\"0x15b3\" device=\"0x1021\"",
                          "<nic><net name=\"mlx5\" dev=\"0\" speed=\"400000\" port=\"1\"/></nic>"));
    }
    text += "</cpu>\n";
  }
  return text + "</system>\n";
}

struct AllReduce {
  double time = 0;
  std::string algorithm;
};

AllReduce all_reduce(const std::string& system, int ranks) {
  const RunRecord record = simulate(test::load(
      "experiment: collective\nsystem: " + system +
      "\ncollective: {kind: all_reduce, bytes: 8 GiB, ranks: " + std::to_string(ranks) + "}\n"));
  AllReduce result{record.find("time_s")->value, {}};
  for (const Label& label : record.labels) {
    if (label.name == "algorithm") result.algorithm = label.value;
  }
  return result;
}

class ImportedMachines : public testing::TestWithParam<Machine> {
 protected:
  ImportedMachines() { fs::create_directories(folder_); }
  ~ImportedMachines() override { fs::remove_all(folder_); }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }

 private:
  fs::path folder_ =
      fs::temp_directory_path() / ("orrery_imported_machines_" + std::to_string(::getpid()));
};

TEST_P(ImportedMachines, ReduceAsFastAsThoseOfTheLibrary) {
  const Machine& machine = GetParam();
  std::ofstream(file("topology.xml")) << dump_of(machine);
  testing::internal::CaptureStdout();
  const ExitCode imported = run_command_line(
      {"import", "nccl-topology", file("topology.xml"), "-o", file("imported.yaml")});
  const ExitCode checked = run_command_line({"check", file("imported.yaml")});
  testing::internal::GetCapturedStdout();
  ASSERT_EQ(imported, ExitCode::kOk);
  EXPECT_EQ(checked, ExitCode::kOk);
  std::ifstream yaml(file("imported.yaml"));
  const std::string text{std::istreambuf_iterator<char>(yaml), {}};
  EXPECT_NE(text.find("extends: " + machine.system + "\n"), std::string::npos);
  const AllReduce library = all_reduce(machine.system, machine.gpus);
  const AllReduce ours = all_reduce(file("imported.yaml"), machine.gpus);
  EXPECT_NEAR(ours.time, library.time, 0.1 * library.time);
  // In the switches, where those can (NVLS). Four GPUs of eight are not all of a system.
  if (machine.gpus >= 8) {
    EXPECT_EQ(ours.algorithm, library.algorithm);
  }
}

const std::string kNvidia = "0x10de", kAmd = "0x1002";

const auto kMachines = testing::Values(
    Machine{"dgx_1", 8, kNvidia, "0x1db1", "sm=\"70\"", cube_mesh},
    Machine{"dgx_2", 16, kNvidia, "0x1db8", "sm=\"70\"", to_switches({1, 1, 1, 1, 1, 1}, 8)},
    Machine{"dgx_a100", 8, kNvidia, "0x20b2", "sm=\"80\"", to_switches({2, 2, 2, 2, 2, 2})},
    Machine{"dgx_a100_40", 8, kNvidia, "0x20b0", "sm=\"80\"", to_switches({2, 2, 2, 2, 2, 2})},
    Machine{"dgx_h100", 8, kNvidia, "0x2330", "sm=\"90\"", to_switches({5, 4, 4, 5})},
    Machine{"dgx_h100", 4, kNvidia, "0x2330", "sm=\"90\"", to_switches({5, 4, 4, 5})},
    Machine{"dgx_h100", 8, kNvidia, "0x2330", "sm=\"90\"", to_unseen_switches(18)},
    Machine{"dgx_h200", 8, kNvidia, "0x2335", "sm=\"90\"", to_switches({5, 4, 4, 5})},
    Machine{"dgx_h800", 8, kNvidia, "0x2324", "sm=\"90\"", to_switches({2, 2, 2, 2})},
    Machine{"hgx_h20", 8, kNvidia, "0x2329", "sm=\"90\"", to_switches({5, 4, 4, 5})},
    Machine{"dgx_b200", 8, kNvidia, "0x2901", "sm=\"100\"", to_switches({9, 9})},
    Machine{"dgx_b300", 8, kNvidia, "0x3182", "sm=\"103\"", to_switches({9, 9})},
    Machine{"gb200_nvl72", 4, kNvidia, "0x2941", "sm=\"100\"", to_unseen_switches(18)},
    Machine{"gb200_nvl72", 72, kNvidia, "0x2941", "sm=\"100\"", to_unseen_switches(18), 18},
    Machine{"gb300_nvl72", 4, kNvidia, "0x31c2", "sm=\"103\"", to_unseen_switches(18)},
    Machine{"mi300x_platform", 8, kAmd, "0x74a1", "sm=\"304\" gcn=\"gfx942\" arch=\"38911\"",
            to_all_others(8)},
    Machine{"mi355x_platform", 8, kAmd, "0x75a3", "sm=\"256\" gcn=\"gfx950\" arch=\"38911\"",
            to_all_others(8)});
INSTANTIATE_TEST_SUITE_P(Library, ImportedMachines, kMachines, [](const auto& tested) {
  return tested.param.system + "_" + std::to_string(tested.param.gpus) + "_" +
         std::to_string(tested.index);
});

}  // namespace
}  // namespace orrery::imported_topologies_test
