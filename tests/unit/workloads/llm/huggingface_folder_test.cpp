// SPDX-License-Identifier: Apache-2.0
// Real configurations, where a folder of them lies beside the source tree: each must build or be
// refused as unsupported with its reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "workloads/llm/huggingface.h"

namespace orrery {
namespace {

std::string outcome(const std::filesystem::path& path) {
  try {
    const LlmConfig model = load_huggingface(path);
    std::string text = std::to_string(count_parameters(model).total) + " parameters";
    for (const std::string& warning : model.warnings) text += "; " + warning;
    return text;
  } catch (const UnsupportedModel& error) {
    const std::string text = error.what();
    return text.substr(text.find("unsupported: "));
  } catch (const std::exception& error) {
    return std::string("FAILED ") + error.what();
  }
}

TEST(HuggingFaceFolder, EveryRealConfigurationBuildsOrNamesWhyNot) {
  const std::filesystem::path folder = ORRERY_SOURCE_DIR "/../shared/hf-configs";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no folder of configurations";
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  ASSERT_FALSE(paths.empty());
  int built = 0;
  for (const auto& path : paths) {
    const std::string result = outcome(path);
    std::cout << path.stem().string() << ": " << result << '\n';
    EXPECT_NE(result.rfind("FAILED", 0), 0U) << path << ": " << result;
    if (result.find("parameters") != std::string::npos) ++built;
  }
  std::cout << built << " of " << paths.size() << " build\n";
  EXPECT_GT(built, static_cast<int>(paths.size()) / 2);
}

}  // namespace
}  // namespace orrery
