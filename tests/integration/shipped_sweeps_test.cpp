// SPDX-License-Identifier: Apache-2.0
// Sweeps that answer a question say in their head what the answer is: the tables that they print.
// ORRERY_UPDATE_GOLDEN runs them whole and writes these anew.
#include <gmock/gmock.h>

#include <cstdlib>
#include <sstream>

#include "tests/integration/program.h"

namespace integration::shipped_sweeps_test {
namespace {

constexpr const char* kAnswer = "# Answer, as `orrery sweep run` prints it:\n";

struct ShippedSweep {
  std::string name;
  std::string where;  ///< what the test runs of it: the points of the answer and some beside them
};

/// The tables of a sweep, without what is said of this very run.
std::string tables_of(const std::string& printed) {
  std::istringstream lines(printed);
  std::string text, line;
  while (std::getline(lines, line)) {
    if (line.find(" points: ") != std::string::npos) break;
    text += line.empty() ? "#\n" : "# " + line + "\n";
  }
  while (text.ends_with("#\n#\n")) text.resize(text.size() - 2);
  return text;
}

std::string read(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

class ShippedSweepTest : public InFolder, public ::testing::WithParamInterface<ShippedSweep> {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("orrery_" + std::to_string(::getpid()) + "_" + GetParam().name);
    std::filesystem::create_directories(folder_);
  }
};

TEST_P(ShippedSweepTest, SaysInItsHeadWhatItPrints) {
  const std::string sweep = "configs/sweeps/" + GetParam().name + ".yaml";
  const std::filesystem::path file = std::filesystem::path(ORRERY_SOURCE_DIR) / sweep;
  const bool anew = std::getenv("ORRERY_UPDATE_GOLDEN") != nullptr;
  std::string arguments = "sweep run " + sweep + " --db " + path("store.db");
  if (!anew && !GetParam().where.empty()) arguments += " --where '" + GetParam().where + "'";
  const Outcome run = orrery(arguments, false);
  ASSERT_EQ(run.code, 0) << run.out;
  const std::string answer = tables_of(run.out);
  std::string text = read(file);
  const std::size_t begin = text.find(kAnswer);
  ASSERT_NE(begin, std::string::npos) << sweep << " has no answer in its head";
  const std::size_t from = begin + std::string(kAnswer).size();
  const std::size_t end = text.find("\nsweep:", begin) + 1;
  if (anew) std::ofstream(file) << text.replace(from, end - from, answer);
  EXPECT_EQ(text.substr(from, text.find("\nsweep:", begin) + 1 - from), answer);
}

INSTANTIATE_TEST_SUITE_P(
    Sweeps, ShippedSweepTest,
    ::testing::Values(ShippedSweep{"chip_decade", ""},
                      ShippedSweep{"equal_power_and_cost",
                                   "batch.micro <= 8 or batch.micro == 48 or batch.micro == 80 or "
                                   "batch.micro == 384"},
                      ShippedSweep{"gpt4_gpus", ""}, ShippedSweep{"gpu_generations", ""},
                      ShippedSweep{"memory_and_units", ""}, ShippedSweep{"one_user_70b", ""},
                      ShippedSweep{"plans_405b", "batch.micro == 1 and parallel.cp >= 2"},
                      ShippedSweep{"power_wall", ""}, ShippedSweep{"precision_ladder", ""},
                      ShippedSweep{
                          "scale_up_domain",
                          "batch.micro == 32 or batch.micro == 64 or batch.micro == 128 or "
                          "batch.micro == 256 or batch.micro == 320 or batch.micro == 384"}),
    [](const auto& shipped) { return shipped.param.name; });

}  // namespace
}  // namespace integration::shipped_sweeps_test
