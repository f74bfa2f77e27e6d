// SPDX-License-Identifier: Apache-2.0
// The program as a user runs it, in a folder of the test's own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace integration {

struct Outcome {
  int code = -1;
  std::string out;
};

/// Runs a shell command; standard error joins standard output where `both` is set.
inline Outcome shell(const std::string& command, bool both = true) {
  Outcome outcome;
  FILE* pipe = ::popen((command + (both ? " 2>&1" : " 2>/dev/null")).c_str(), "r");
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    outcome.out.append(buffer.data(), n);
  const int status = ::pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

/// Runs the program at the root of the source tree.
inline Outcome orrery(const std::string& arguments, bool both = true) {
  return shell("cd " + std::string(ORRERY_SOURCE_DIR) + " && " ORRERY_BINARY " " + arguments, both);
}

class InFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("orrery_" + std::to_string(::getpid()) + "_" + test->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return path(name);
  }

  std::filesystem::path folder_;
};

}  // namespace integration
