// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/machine/calibration.h"
#include "validation/calibration/calibrate.h"

namespace orrery::calibration_file_test {
namespace {

const config::Library& library() {
  static const config::Library shipped(std::string(ORRERY_SOURCE_DIR) + "/configs");
  return shipped;
}

std::string shipped(const std::string& name) { return library().locate("calibrations", name, ""); }

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(CalibrationFile, FitsThatAreReadWhenAskedAreThoseThatAreReadNow) {
  for (const std::string& name : library().names("calibrations")) {
    const Calibration now = load_calibration(shipped(name), library());
    const Calibration later = load_calibration(shipped(name), library(), FitsRead::kWhenAsked);
    ASSERT_EQ(later.fits.size(), now.fits.size()) << name;
    for (std::size_t i = 0; i < now.fits.size(); ++i) {
      EXPECT_FALSE(later.fits.is_read(i)) << name;
      EXPECT_EQ(later.fits.subject(i).precision, now.fits.subject(i).precision) << name;
      EXPECT_EQ(later.fits.subject(i).groups, now.fits.subject(i).groups) << name;
    }
    EXPECT_EQ(to_yaml(later), to_yaml(now)) << name;
  }
}

class Written : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  std::string write(const std::string& text) {
    std::ofstream(path_) << text;
    return path_.string();
  }
  std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) /
      (std::to_string(::getpid()) + "_" +
       testing::UnitTest::GetInstance()->current_test_info()->name() + ".yaml");
};
using CalibrationFileWritten = Written;

TEST_F(CalibrationFileWritten, AFaultInAFitIsSaidWithItsPlaceWhenTheFitIsUsed) {
  std::string text = text_of(shipped("a100_sxm"));
  const std::size_t value = text.find("{value: ", text.find("  - table: ", text.find("fits:")));
  text.insert(value + 8, "x");
  const auto line = 1 + std::count(text.begin(), text.begin() + std::ptrdiff_t(value), '\n');
  const std::string path = write(text);
  EXPECT_THROW(load_calibration(path, library()), config::ConfigError);
  const Calibration later = load_calibration(path, library(), FitsRead::kWhenAsked);
  try {
    later.fits.at(0);
    FAIL() << "a broken value passes";
  } catch (const config::ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(path + ":" + std::to_string(line) + ":"));
  }
}

TEST_F(CalibrationFileWritten, AnotherSpellingIsReadWhole) {
  std::string text = text_of(shipped("a100_sxm"));
  text.replace(text.find("fits:\n"), 6, "fits:  # by table\n");
  const Calibration other = load_calibration(write(text), library(), FitsRead::kWhenAsked);
  EXPECT_TRUE(other.fits.is_read(0));
  EXPECT_EQ(to_yaml(other), to_yaml(load_calibration(shipped("a100_sxm"), library())));
}

}  // namespace
}  // namespace orrery::calibration_file_test
