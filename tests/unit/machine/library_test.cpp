// SPDX-License-Identifier: Apache-2.0
// The shipped library: every file loads, and the numbers fit together (sources: sources_test).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "models/topologies/graph_fabric.h"
#include "models/topologies/pcie_config.h"
#include "sim/config/load.h"
#include "sim/config/override.h"
#include "sim/machine/clock.h"
#include "sim/machine/system_config.h"
#include "sim/units/text.h"
#include "tests/unit/machine/shipped_library.h"

namespace orrery::library_test {
namespace {

const config::Library& library() { return shipped_library(); }

AcceleratorConfig accelerator(const std::string& name) { return shipped_accelerator(name); }

SystemConfig system_named(const std::string& name) {
  return config::load<SystemConfig>(library().locate("systems", name, ""), library(), "systems");
}

// Everything that is wrong with a file of the library, warnings included.
template <class T>
std::vector<std::string> flaws(const std::string& kind, const std::string& name) {
  config::Diagnostics diagnostics;
  const config::Node node = config::complete(
      config::load_file(library().locate(kind, name, ""), diagnostics, library(), kind),
      T::schema().record(), diagnostics, library());
  std::vector<std::string> found;
  for (const auto& diagnostic : diagnostics.all()) found.push_back(diagnostic.message);
  return found;
}

class Accelerators : public testing::TestWithParam<std::string> {};
class Systems : public testing::TestWithParam<std::string> {};

std::string readme_of(const std::string& kind) {
  std::ifstream file(std::string(ORRERY_SOURCE_DIR) + "/configs/" + kind + "/README.md");
  return {std::istreambuf_iterator<char>(file), {}};
}

// What configurations, documents and comparisons call the products: a name that the README of its
// folder has is one that users have, and a file that it has not is found by nobody.
TEST(Library, ReadmesNameEveryFile) {
  for (const std::string kind : {"accelerators", "systems"}) {
    const std::string readme = readme_of(kind);
    for (const std::string& name : library().names(kind)) {
      EXPECT_NE(readme.find("`" + name + "`"), readme.npos) << kind << ' ' << name;
    }
  }
}

TEST(Library, NamesInTheTablesOfReadmesAreFiles) {
  const std::regex quoted("`([a-z0-9_]+)`");
  for (const std::string kind : {"accelerators", "systems"}) {
    const std::vector<std::string> names = library().names(kind);
    std::istringstream lines(readme_of(kind));
    std::size_t found = 0;
    for (std::string line; std::getline(lines, line);) {
      if (found > 0 && line.empty()) break;  // tables of keys follow
      if (!line.starts_with("| `")) continue;
      const std::string cell = line.substr(1, line.find('|', 1) - 1);
      for (std::sregex_iterator match(cell.begin(), cell.end(), quoted), end; match != end;
           ++match) {
        const std::string name = (*match)[1];
        EXPECT_TRUE(std::binary_search(names.begin(), names.end(), name)) << kind << ' ' << name;
        ++found;
      }
    }
    EXPECT_GE(found, names.size()) << kind;
  }
}

// The name by which stores and messages call it is the one by which it is found.
TEST(Library, FilesHaveTheNameThatTheyGiveThemselves) {
  for (const std::string& name : library().names("accelerators"))
    EXPECT_EQ(accelerator(name).id, name);
  for (const std::string& name : library().names("systems")) EXPECT_EQ(system_named(name).id, name);
}

// Names of one product, as makers changed them: all that a result rests on is the same.
TEST(Library, ProductsWithTwoNamesAreTheSameParts) {
  const std::pair<const char*, const char*> names[] = {
      {"kyber_nvl144", "kyber_nvl576"}, {"vr_nvl72", "vr_nvl144"}, {"cm384", "atlas_900_a3"}};
  for (const auto& [one, other] : names) {
    const SystemConfig a = system_named(one), b = system_named(other);
    EXPECT_EQ(a.accelerator.id, b.accelerator.id) << other;
    EXPECT_EQ(a.ranks(), b.ranks()) << other;
    EXPECT_EQ(a.all_in_power->value, b.all_in_power->value) << other;
  }
}

TEST_P(Accelerators, LoadWithoutWarnings) {
  EXPECT_EQ(flaws<AcceleratorConfig>("accelerators", GetParam()), std::vector<std::string>{});
}

TEST_P(Systems, LoadWithoutWarnings) {
  EXPECT_EQ(flaws<SystemConfig>("systems", GetParam()), std::vector<std::string>{});
}

template <class T>
void expect_reason(const Fact<T>& fact) {
  if (!fact.nameplate) return;
  EXPECT_FALSE(fact.nameplate_source.empty());
  EXPECT_FALSE(fact.reason.empty());
}

TEST_P(Accelerators, NameplatesSayWhyTheyAreNotUsed) {
  const AcceleratorConfig a = accelerator(GetParam());
  for (const auto& [precision, rate] : a.compute.matrix) expect_reason(rate);
  expect_reason(a.compute.vector);
  expect_reason(a.memory.capacity);
  expect_reason(a.memory.bandwidth);
  expect_reason(a.scale_up.bandwidth);
  expect_reason(a.scale_out.bandwidth);
}

/// Power of a GEMM at its achievable rate with a tenth of the memory bandwidth in use, at the clock
/// at which units that issue 0.9 of their peak reach that rate.
double gemm_watts(const AcceleratorConfig& a, Precision precision) {
  const double achieved = a.kernel.matrix_efficiency.at(precision).value;
  const double issued = a.compute.boost_clock ? 0.9 : achieved;
  const double share = std::min(1.0, achieved * (a.compute.clock.value / boost_clock(a)) / issued);
  const FlopsPerSecond rate = a.compute.matrix.at(precision).value * achieved;
  const Watts power =
      a.power.floor() + busy_power(a, share) + rate * a.energy.matrix.at(precision).value +
      a.memory.bandwidth.value * 0.1 * (a.energy.memory.value + a.energy.transport.value);
  return power.base();
}

/// Power of the memory at its achievable rate with all units waiting for it, at their lowest
/// voltage.
double stream_watts(const AcceleratorConfig& a) {
  const Watts power = a.power.floor() + busy_power(a, floor_share(a)) +
                      a.memory.bandwidth.value * a.kernel.memory_efficiency.value *
                          (a.energy.memory.value + a.energy.transport.value);
  return power.base();
}

// Devices whose design power no product can draw: matrix units that are cut on a board that is not.
const std::set<std::string> kCutProducts = {"h20", "h20_141"};

// A full-rate GEMM runs at 85 to 100 % of the design power, and the cap lets the memory stream at
// its full rate, at lower clocks if need be.
TEST_P(Accelerators, FullLoadIsNearTheDesignPower) {
  const AcceleratorConfig a = accelerator(GetParam());
  double highest = 0;
  for (const auto& [precision, rate] : a.compute.matrix)
    highest = std::max(highest, gemm_watts(a, precision));
  EXPECT_LT(stream_watts(a), a.power.tdp.value.base());
  EXPECT_EQ(highest < 0.85 * a.power.tdp.value.base(), kCutProducts.contains(GetParam()));
  EXPECT_LT(highest, a.power.tdp.value.base());
}

TEST_P(Accelerators, VectorLanesAtFullRateStayBelowTheDesignPower) {
  const AcceleratorConfig a = accelerator(GetParam());
  EXPECT_LT((a.power.floor() + a.compute.vector.value * a.energy.vector.value).base(),
            a.power.tdp.value.base());
}

// Blackwell Ultra gave the area of int8 to NVFP4.
const std::set<std::string> kCutInt8 = {"b300_sxm", "gb300"};

// Halving the operand width never costs more energy a FLOP and never lowers the rate.
TEST_P(Accelerators, NarrowOperandsAreNoSlowerAndNoDearer) {
  const AcceleratorConfig a = accelerator(GetParam());
  for (const auto& [wide, wide_rate] : a.compute.matrix) {
    for (const auto& [narrow, narrow_rate] : a.compute.matrix) {
      if (element_bytes(narrow) >= element_bytes(wide)) continue;
      const bool cut = narrow == Precision::kInt8 && kCutInt8.contains(GetParam());
      EXPECT_EQ(narrow_rate.value < wide_rate.value, cut) << to_string(narrow);
      EXPECT_LE(a.energy.matrix.at(narrow).value, a.energy.matrix.at(wide).value);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Library, Accelerators, testing::ValuesIn(library().names("accelerators")),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(Library, Systems, testing::ValuesIn(library().names("systems")),
                         [](const auto& test) { return test.param; });

TEST(Library, H200IsAnH100WithOtherMemory) {
  const AcceleratorConfig h100 = accelerator("h100_sxm"), h200 = accelerator("h200_sxm");
  EXPECT_EQ(h200.compute.matrix.at(Precision::kFp8).value,
            h100.compute.matrix.at(Precision::kFp8).value);
  EXPECT_EQ(h200.scale_up.links.value, 18);
  EXPECT_EQ(h200.memory.kind, "HBM3e");
  EXPECT_DOUBLE_EQ(h200.memory.bandwidth.value.base(), 4.8e12);
  EXPECT_DOUBLE_EQ(h200.memory.capacity.value.base(), 143155.0 * 1048576);
  EXPECT_DOUBLE_EQ(h200.memory.capacity.published().base(), 141e9);
}

// CUDA reports less than nvidia-smi, 24,081 of 24,564 MiB of an RTX 4090: that is what can be
// allocated.
TEST(Library, UsableCapacitiesAreTheTotalsOfCuda) {
  const std::pair<const char*, double> totals[] = {
      {"a100_sxm", 81152},  {"h100_sxm", 81091}, {"h200_sxm", 143155},
      {"b200_sxm", 182630}, {"gb200", 188752},   {"b300_sxm", 274114},
      {"rtx_4090", 24081},  {"mi300x", 196592},  {"mi355x", 294896}};
  for (const auto& [name, mebibytes] : totals) {
    EXPECT_DOUBLE_EQ(accelerator(name).memory.capacity.value.base(), mebibytes * 1048576) << name;
  }
}

// One convention for all vendors: what drivers let programs allocate, or GiB. Decimal gigabytes of
// a data sheet are fewer bytes, but for cards that keep bytes for ECC (an L4 lets programs have
// 23.65 of 24 GB), and as many GiB are more than a driver leaves.
TEST_P(Accelerators, CapacitiesAreBytesThatFitAndNotDecimalGigabytes) {
  const AcceleratorConfig a = accelerator(GetParam());
  const double bytes = a.memory.capacity.value.base(), mebibyte = 1048576;
  if (!a.partition && bytes > 1e9) {
    EXPECT_EQ(std::fmod(bytes, mebibyte), 0) << print(a.memory.capacity.value);
  }
  if (!a.memory.capacity.nameplate) return;
  const double nameplate = a.memory.capacity.published().base();
  EXPECT_GE(bytes, nameplate * 0.98);
  EXPECT_LE(bytes, nameplate * 1.024 * 1.024 * 1.024 * 1.000001);
}

// Payload that a link of a torus carries: 45 of 50 and 90 of 100 GB/s (How to Scale Your Model,
// TPUs, 2025). The loss is in the file of the system, the line rate in that of the chip.
TEST(Library, LinksOfTpusAreDeratedOnce) {
  const std::map<std::string, double> payload = {{"tpu_v4_pod", 45e9},
                                                 {"tpu_v5e_pod", 45e9},
                                                 {"tpu_v5p_pod", 90e9},
                                                 {"tpu_v6e_pod", 90e9},
                                                 {"tpu_v7_pod", 90e9}};
  for (const auto& [name, rate] : payload) {
    const SystemConfig system = system_named(name);
    const PortConfig& port = system.accelerator.scale_up;
    EXPECT_NEAR(port.bandwidth.value.base() / port.links.value * system.scale_up.efficiency.value,
                rate, 1e-3 * rate)
        << name;
  }
}

// The slots of a box are those of its cards: what lanes and packets carry is the file's rate,
// within what links were found to lose.
TEST(Library, SlotsCarryWhatTheirCardsDo) {
  for (const std::string& name : library().names("systems")) {
    const SystemConfig system = system_named(name);
    if (system.scale_up.kind != "pcie") continue;
    const PcieConfig& pcie = dynamic_cast<const PcieTopology&>(*system.scale_up.keys).pcie;
    const PortConfig& link = system.accelerator.host_link;
    const int lanes = link.kind.ends_with(" x8") ? 8 : 16;  // boards may have fewer than cards
    const BytesPerSecond slot =
        pcie_rate(pcie.generation, lanes, pcie.payload.value, pcie.link_layer.value);
    const BytesPerSecond card = link.bandwidth.value;
    EXPECT_NEAR(slot.base() / card.base(), 1, 0.05) << name;
  }
}

// A box of four cards is one of fewer: nothing but the number is written, what shares an adapter
// follows it, and power is in proportion.
TEST(Library, BoxesOfFourCardsTakeOneToFour) {
  std::size_t boxes = 0;
  for (const std::string& name : library().names("systems")) {
    if (!name.ends_with("_4") || system_named(name).scale_up.kind != "pcie") continue;
    ++boxes;
    for (int cards = 1; cards <= 4; ++cards) {
      SCOPED_TRACE(name + " " + std::to_string(cards));
      config::Diagnostics diagnostics;
      config::Node node = config::load_file(library().locate("systems", name, ""), diagnostics,
                                            library(), "systems");
      config::apply_override(node, SystemConfig::schema().record(),
                             "accelerators=" + std::to_string(cards), diagnostics, library());
      const auto system = config::read<SystemConfig>(node, diagnostics, library());
      EXPECT_EQ(diagnostics.render(), "");
      EXPECT_EQ(system.ranks_per_node(), cards);
      EXPECT_LE(system.packages_per_nic(), cards);
      EXPECT_NEAR(system.all_in_power->value / system_named(name).all_in_power->value, cards / 4.0,
                  1e-3);
    }
  }
  EXPECT_GE(boxes, 12U);
}

// What a part adds to its sibling's design power costs the same share of host, network and cooling:
// 145 kW + 72 x 200 W x 145 / 132, and 17,360 W + 8 x 100 W x 17,360 / 14,300.
TEST(Library, AllInPowerOfBlackwellUltraIsThatOfItsSiblingAndItsOwnMore) {
  EXPECT_NEAR(system_named("gb300_nvl72").all_in_power->value.base(),
              145000 + 72 * 200 * 145.0 / 132, 50);
  EXPECT_NEAR(system_named("dgx_b300").all_in_power->value.base(),
              17360 + 8 * 100 * 17360.0 / 14300, 5);
}

TEST(Library, RanksAreDies) {
  const SystemConfig cm384 = system_named("cm384");
  EXPECT_EQ(cm384.ranks(), 768);          // 384 packages of 2 dies
  EXPECT_EQ(cm384.ranks_per_node(), 16);  // 8 packages
  const SystemConfig nvl72 = system_named("gb200_nvl72");
  EXPECT_EQ(nvl72.ranks(), 72);  // two dies that act as one device
  EXPECT_EQ(nvl72.ranks_per_node(), 4);
}

// NVIDIA DGX-1 with Tesla V100 system architecture, WP-08437: 6 links a GPU, 24 in all, and each
// GPU of a quad has a direct way to the other three and to one of the other quad.
TEST(Library, TheHybridCubeMeshUsesAllLinksOfAGpu) {
  const SystemConfig dgx_1 = system_named("dgx_1");
  std::map<std::string, int> links, neighbours;
  for (const WireConfig& wire : dynamic_cast<const WiredTopology&>(*dgx_1.scale_up.keys).wires) {
    for (const std::string& end : {wire.from, wire.to}) {
      links[end] += wire.links;
      ++neighbours[end];
    }
  }
  ASSERT_EQ(links.size(), 8U);
  for (const auto& [gpu, count] : links) {
    EXPECT_EQ(count, dgx_1.accelerator.scale_up.links.value) << gpu;
    EXPECT_EQ(neighbours[gpu], 4) << gpu;
  }
}

// NVSwitch 3 was the first that reduces (NVLS); the V100's and A100's do not, nor do meshes and the
// switches of others.
TEST(Library, SwitchesReduceSinceHopper) {
  for (const std::string& name : library().names("systems")) {
    const SystemConfig system = system_named(name);
    const std::string& fabric = system.accelerator.scale_up.kind;
    const bool reduces = system.scale_up.kind == "nvswitch" && fabric.starts_with("NVLink") &&
                         fabric != "NVLink 2" && fabric != "NVLink 3";
    EXPECT_EQ(system.scale_up.switch_reduction, reduces) << name;
  }
}

TEST(Library, BothValuesOfTheDisputedFiguresAreKept) {
  const SystemConfig cm384 = system_named("cm384");
  ASSERT_TRUE(cm384.all_in_power);
  EXPECT_EQ(cm384.all_in_power->value, Watts(559378));
  EXPECT_EQ(cm384.all_in_power->published(), Watts(599821));
  const auto& bf16 = cm384.accelerator.compute.matrix.at(Precision::kBf16);
  EXPECT_EQ(bf16.value, FlopsPerSecond(752e12));
  EXPECT_EQ(bf16.published(), FlopsPerSecond(780e12));
}

}  // namespace
}  // namespace orrery::library_test
