// SPDX-License-Identifier: Apache-2.0
// Real configurations: each must build or be refused as unsupported with its reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "workloads/models/huggingface/huggingface.h"

namespace orrery::huggingface_folder_test {
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

/// The files of the library, or those of a folder that ORRERY_HF_CONFIGS names.
TEST(HuggingFaceFolder, EveryConfigurationBuildsOrNamesWhyNot) {
  const char* other = std::getenv("ORRERY_HF_CONFIGS");
  const std::filesystem::path folder =
      other != nullptr ? other : ORRERY_SOURCE_DIR "/configs/models/hf";
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  ASSERT_FALSE(paths.empty());
  std::size_t built = 0;
  for (const auto& path : paths) {
    const std::string result = outcome(path);
    std::cout << path.stem().string() << ": " << result << '\n';
    EXPECT_NE(result.rfind("FAILED", 0), 0U) << path << ": " << result;
    if (result.find("parameters") != std::string::npos) ++built;
  }
  std::cout << built << " of " << paths.size() << " build\n";
  if (other == nullptr) {
    EXPECT_EQ(built, paths.size());
  }
}

}  // namespace
}  // namespace orrery::huggingface_folder_test
