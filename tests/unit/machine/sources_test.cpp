// SPDX-License-Identifier: Apache-2.0
// Every value of every shipped accelerator and system names a document that others can find, or
// says that it is an estimate.
#include "tests/unit/machine/sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/machine/shipped_library.h"

namespace orrery::sources_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
std::vector<std::string> faults_of(const std::string& folder, const std::string& name) {
  const config::Library& library = shipped_library();
  config::Diagnostics diagnostics;
  const config::Node node = config::complete(
      config::load_file(library.locate(folder, name, ""), diagnostics, library, folder),
      T::schema().record(), diagnostics, library);
  diagnostics.throw_if_errors();
  SourceCheck check(folder);
  check.walk(config::type_of<T>(), node, "");
  return check.faults;
}

class AcceleratorSources : public testing::TestWithParam<std::string> {};
class SystemSources : public testing::TestWithParam<std::string> {};

TEST_P(AcceleratorSources, EveryValueNamesADocumentAndItsYearOrIsAnEstimate) {
  EXPECT_THAT(faults_of<AcceleratorConfig>("accelerators", GetParam()), ElementsAre());
}

TEST_P(SystemSources, EveryValueNamesADocumentAndItsYearOrIsAnEstimate) {
  EXPECT_THAT(faults_of<SystemConfig>("systems", GetParam()), ElementsAre());
}

INSTANTIATE_TEST_SUITE_P(Library, AcceleratorSources,
                         testing::ValuesIn(shipped_library().names("accelerators")),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(Library, SystemSources,
                         testing::ValuesIn(shipped_library().names("systems")),
                         [](const auto& test) { return test.param; });

TEST(Sources, AYearStandsAtAParenthesis) {
  for (const char* found : {"NVIDIA H100 datasheet (2023)", "JESD238 (2022): 16 channels a stack",
                            "SemiAnalysis, CloudMatrix 384 (2025-04-16)",
                            "prior: 794.5 TFLOP/s (Bekman, ML Engineering, 744d01e, 2026)"})
    EXPECT_EQ(source_fault(found), "") << found;
  for (const char* lost : {"NVIDIA H100 datasheet", "152 SMs x 2032 MHz", "arXiv 2005.14165",
                           "(2023)", "the driver reports 2024 MiB (nvidia-smi)"})
    EXPECT_NE(source_fault(lost), "") << lost;
}

TEST(Sources, AnEstimateHasItsReasoning) {
  EXPECT_EQ(source_fault("estimate: as the A100, the same process"), "");
  EXPECT_EQ(source_fault("prior, estimate: as bf16; no published measurement"), "");
  EXPECT_NE(source_fault("estimate"), "");
  EXPECT_NE(source_fault("prior, estimate"), "");
  EXPECT_THAT(source_fault("estimate: analysts' 800 to 880 W"), HasSubstr("nobody can look up"));
}

// What a source lacks is told with its place: shown by what extends the file, too.
TEST(Sources, AFaultHasFileLineAndKey) {
  config::Diagnostics diagnostics;
  const config::Node node = config::parse_yaml(
      "tdp: {value: 700 W, source: NVIDIA H100 datasheet (2023)}\n"
      "idle:\n  value: 75 W\n  source: NVIDIA\n"
      "limit: 500 W\n",
      "/configs/accelerators/test.yaml", diagnostics);
  SourceCheck check("accelerators");
  check.walk(config::type_of<PowerConfig>(), node, "power");
  ASSERT_EQ(check.faults.size(), 2U);
  EXPECT_THAT(check.faults[0],
              HasSubstr("accelerators/test.yaml:4: power.idle.source needs a doc"));
  EXPECT_THAT(check.faults[1], HasSubstr("accelerators/test.yaml:5: power.limit has no source"));
}

}  // namespace
}  // namespace orrery::sources_test
