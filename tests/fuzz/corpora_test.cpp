// SPDX-License-Identifier: Apache-2.0
// What fuzzers found, and what they began with, once each.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"

namespace orrery {

/// What tests are called.
static void PrintTo(const FuzzTarget& target, std::ostream* out) { *out << target.name; }

}  // namespace orrery

namespace orrery::corpora_test {
namespace {

class Corpora : public testing::TestWithParam<FuzzTarget> {};

TEST_P(Corpora, AreReadOrRefused) {
  const std::filesystem::path folder =
      std::filesystem::path(ORRERY_SOURCE_DIR) / "tests/fuzz/corpora" / GetParam().name;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  EXPECT_GE(files.size(), 2U);
  for (const std::filesystem::path& path : files) {
    SCOPED_TRACE(path.filename().string());
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    GetParam().run(bytes);
    // Cut anywhere, too: what is read in parts has an end.
    for (std::size_t part = 1; part < 8; ++part)
      GetParam().run(bytes.substr(0, part * bytes.size() / 8));
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Corpora,
                         testing::ValuesIn(fuzz_targets().begin(), fuzz_targets().end()),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace orrery::corpora_test
