// SPDX-License-Identifier: Apache-2.0
// The shipped library: every file loads, every number has a source, and the numbers fit together.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/load.h"
#include "sim/machine/system_config.h"
#include "tests/unit/machine/shipped_library.h"

namespace orrery {
namespace {

const config::Library& library() { return shipped_library(); }

AcceleratorConfig accelerator(const std::string& name) { return shipped_accelerator(name); }

SystemConfig system_named(const std::string& name) {
  return config::load<SystemConfig>(library().locate("systems", name, ""), library(), "systems");
}

// Paths of the Facts below `node` without a source. Defaults are no Facts of the file.
void find_unsourced(const config::Type& type, const config::Node& node, const std::string& path,
                    std::vector<std::string>& found) {
  if (node.origin().kind == config::Origin::Kind::kDefault) return;
  if (type.kind == config::TypeKind::kFact) {
    const config::Node* source = node.find("source");
    if (!source || source->text().size() < 8) found.push_back(path + " has no source");
  } else if (type.kind == config::TypeKind::kMap) {
    for (const auto& entry : node.entries()) {
      find_unsourced(*type.element, entry.value, path + "." + entry.key, found);
    }
  } else if (type.kind == config::TypeKind::kRecord) {
    for (const config::Field& field : type.record().fields()) {
      const config::Node* value = node.find(field.key);
      if (value) find_unsourced(*field.type, *value, path + "." + field.key, found);
    }
  }
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
  find_unsourced(config::type_of<T>(), node, name, found);
  return found;
}

TEST(Library, AMissingSourceIsFound) {
  config::Diagnostics diagnostics;
  const config::Node node = config::parse_yaml(
      "{tdp: {value: 700 W, source: NVIDIA H100 datasheet}, idle: 75 W}", "test", diagnostics);
  std::vector<std::string> found;
  find_unsourced(config::type_of<PowerConfig>(), node, "power", found);
  EXPECT_EQ(found, std::vector<std::string>{"power.idle has no source"});
}

class Accelerators : public testing::TestWithParam<std::string> {};
class Systems : public testing::TestWithParam<std::string> {};

TEST(Library, HasTheMainParts) {
  const auto accelerators = library().names("accelerators");
  for (const char* name :
       {"a100_sxm", "h100_sxm", "h200_sxm", "b200_sxm", "gb200", "rubin_r200", "ascend_910c",
        "v100_sxm", "tpu_v5p", "iphone_11", "stm32f746", "h100_1g"}) {
    EXPECT_TRUE(std::find(accelerators.begin(), accelerators.end(), name) != accelerators.end())
        << name;
  }
  const auto systems = library().names("systems");
  for (const char* name : {"dgx_a100", "dgx_h100", "gb200_nvl72", "vr_nvl72", "cm384", "h100_1g",
                           "iphone_11", "stm32f746"}) {
    EXPECT_TRUE(std::find(systems.begin(), systems.end(), name) != systems.end()) << name;
  }
}

TEST_P(Accelerators, LoadWithoutWarningsAndWithSources) {
  EXPECT_EQ(flaws<AcceleratorConfig>("accelerators", GetParam()), std::vector<std::string>{});
}

TEST_P(Systems, LoadWithoutWarningsAndWithSources) {
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

// Power of a GEMM at its achievable rate, with `stream` of the memory bandwidth in use.
double gemm_watts(const AcceleratorConfig& a, Precision precision, double stream) {
  const FlopsPerSecond rate =
      a.compute.matrix.at(precision).value * a.kernel.matrix_efficiency.at(precision).value;
  const Watts power = a.power.idle.value + rate * a.energy.matrix.at(precision).value +
                      a.memory.bandwidth.value * stream * a.energy.memory.value;
  return power.base();
}

// A full-rate GEMM runs at 85 to 100 % of the design power, and even with the memory streaming
// beside it (which no kernel of the model does, as both take their time) it stays below 1.1 of it.
TEST_P(Accelerators, FullLoadIsNearTheDesignPower) {
  const AcceleratorConfig a = accelerator(GetParam());
  double highest = 0;
  for (const auto& [precision, rate] : a.compute.matrix) {
    EXPECT_LT(gemm_watts(a, precision, a.kernel.memory_efficiency.value),
              1.1 * a.power.tdp.value.base())
        << to_string(precision);
    highest = std::max(highest, gemm_watts(a, precision, 0.1));
  }
  EXPECT_GT(highest, 0.85 * a.power.tdp.value.base());
  EXPECT_LT(highest, a.power.tdp.value.base());
}

TEST_P(Accelerators, VectorLanesAtFullRateStayBelowTheDesignPower) {
  const AcceleratorConfig a = accelerator(GetParam());
  EXPECT_LT((a.power.idle.value + a.compute.vector.value * a.energy.vector.value).base(),
            a.power.tdp.value.base());
}

// Halving the operand width never costs more energy a FLOP and never lowers the rate.
TEST_P(Accelerators, NarrowOperandsAreNoSlowerAndNoDearer) {
  const AcceleratorConfig a = accelerator(GetParam());
  for (const auto& [wide, wide_rate] : a.compute.matrix) {
    for (const auto& [narrow, narrow_rate] : a.compute.matrix) {
      if (element_bytes(narrow) >= element_bytes(wide)) continue;
      EXPECT_GE(narrow_rate.value, wide_rate.value);
      EXPECT_LE(a.energy.matrix.at(narrow).value, a.energy.matrix.at(wide).value);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Library, Accelerators, testing::ValuesIn(library().names("accelerators")),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(Library, Systems, testing::ValuesIn(library().names("systems")),
                         [](const auto& test) { return test.param; });

TEST(Library, LinksHaveTheSpeedOfTheirGeneration) {
  const std::pair<const char*, double> links[] = {
      {"a100_sxm", 25e9},   {"h100_sxm", 25e9},    {"b200_sxm", 50e9}, {"gb200", 50e9},
      {"rubin_r200", 50e9}, {"ascend_910c", 28e9}, {"v100_sxm", 25e9}, {"tpu_v5p", 90e9}};
  for (const auto& [name, bandwidth] : links) {
    const PortConfig port = accelerator(name).scale_up;
    EXPECT_DOUBLE_EQ(port.bandwidth.value.base() / port.links.value, bandwidth) << name;
  }
}

TEST(Library, H200IsAnH100WithOtherMemory) {
  const AcceleratorConfig h100 = accelerator("h100_sxm"), h200 = accelerator("h200_sxm");
  EXPECT_EQ(h200.compute.matrix.at(Precision::kFp8).value,
            h100.compute.matrix.at(Precision::kFp8).value);
  EXPECT_EQ(h200.scale_up.links.value, 18);
  EXPECT_EQ(h200.memory.kind, "HBM3e");
  EXPECT_DOUBLE_EQ(h200.memory.bandwidth.value.base(), 4.8e12);
  EXPECT_DOUBLE_EQ(h200.memory.capacity.value.base(), 143771.0 * 1048576);
  EXPECT_DOUBLE_EQ(h200.memory.capacity.published().base(), 141e9);
}

// The driver reports MiB totals that are above the GB of the data sheet and below as many GiB.
TEST(Library, UsableCapacitiesAreTheDriversTotals) {
  const std::pair<const char*, double> totals[] = {{"a100_sxm", 81920},
                                                   {"h100_sxm", 81559},
                                                   {"h200_sxm", 143771},
                                                   {"b200_sxm", 183359},
                                                   {"gb200", 189471}};
  for (const auto& [name, mebibytes] : totals) {
    EXPECT_DOUBLE_EQ(accelerator(name).memory.capacity.value.base(), mebibytes * 1048576) << name;
  }
}

TEST(Library, RanksAreDies) {
  const SystemConfig cm384 = system_named("cm384");
  EXPECT_EQ(cm384.ranks(), 768);          // 384 packages of 2 dies
  EXPECT_EQ(cm384.ranks_per_node(), 16);  // 8 packages
  const SystemConfig nvl72 = system_named("gb200_nvl72");
  EXPECT_EQ(nvl72.ranks(), 72);  // two dies that act as one device
  EXPECT_EQ(nvl72.ranks_per_node(), 4);
}

TEST(Library, BothValuesOfTheDisputedFiguresAreKept) {
  const SystemConfig cm384 = system_named("cm384");
  EXPECT_EQ(cm384.all_in_power.value, Watts(559378));
  EXPECT_EQ(cm384.all_in_power.published(), Watts(599821));
  const auto& bf16 = cm384.accelerator.compute.matrix.at(Precision::kBf16);
  EXPECT_EQ(bf16.value, FlopsPerSecond(752e12));
  EXPECT_EQ(bf16.published(), FlopsPerSecond(780e12));
}

}  // namespace
}  // namespace orrery
