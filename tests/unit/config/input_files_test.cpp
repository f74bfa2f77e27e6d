// SPDX-License-Identifier: Apache-2.0
#include "sim/config/input_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "sim/units/sha256.h"

namespace orrery::config::input_files_test {
namespace {

namespace fs = std::filesystem;

class InputFilesTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    const fs::path path = fs::path(testing::TempDir()) / (std::to_string(::getpid()) + name);
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
};

TEST_F(InputFilesTest, AFileIsReadWholeAndItsHashIsThatOfItsBytes) {
  InputFiles files;
  std::string bytes(200'000, 'x');
  bytes[70'000] = '\0';
  const std::string path = write("whole", bytes);
  const FileText read = files.read(path);
  EXPECT_EQ(read.text, bytes);
  EXPECT_EQ(read.sha256, sha256_hex(bytes));
  EXPECT_EQ(files.sha256(path), read.sha256);
  EXPECT_EQ(files.hashes().size(), 1U);
}

TEST_F(InputFilesTest, AFileThatCannotBeReadSaysWhyAndIsNotCounted) {
  InputFiles files;
  EXPECT_EQ(files.read("/no/such/file").fault, "no such file");
  EXPECT_EQ(files.read(testing::TempDir()).fault, "is a directory, not a file");
  EXPECT_EQ(
      files.read(write("large", std::string(InputFiles::kMebibyte + 1, 'x')), InputFiles::kMebibyte)
          .fault,
      "larger than 1 MiB");
  EXPECT_TRUE(
      files.read(write("fits", std::string(InputFiles::kMebibyte, 'x')), InputFiles::kMebibyte)
          .fault.empty());
  EXPECT_EQ(files.hashes().size(), 1U);
}

TEST_F(InputFilesTest, APipeCanBeReadAgain) {
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "once", 4), 4);
  ::close(ends[1]);
  InputFiles files;
  const std::string path = "/dev/fd/" + std::to_string(ends[0]);
  EXPECT_EQ(files.read(path).text, "once");
  EXPECT_EQ(files.read(path).text, "once");
  ::close(ends[0]);
}

TEST_F(InputFilesTest, TooFewFileHandlesAreTheMachinesFaultNotThePaths) {
  const std::string path = write("there", "x");
  InputFiles files;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_THROW(files.read(path), std::system_error);
  setrlimit(RLIMIT_NOFILE, &before);
}

/// Whether a source file opens what runs of sweeps leave for each other (locks, logs, signs of
/// life, lists of tasks) or what the kernel tells of processes. None of it is an input.
bool is_of_runs(const std::string& name) {
  const std::vector<std::string> of_runs = {"process_memory", "task_guards",   "heartbeat",
                                            "task_folder",    "child_program", "command_executor"};
  return std::any_of(of_runs.begin(), of_runs.end(), [&name](const std::string& file) {
    return name == "sim/app/sweeps/executors/" + file + ".cpp" ||
           name == "sim/app/sweeps/workers/" + file + ".cpp";
  });
}

/// What would read behind the back of InputFiles. Stores are results, not inputs.
TEST_F(InputFilesTest, NothingElseInTheSimulatorOpensFilesToReadThem) {
  const std::vector<std::string> opens = {"ifstream", "std::fstream",   "fopen(", "gzopen(",
                                          "::open(",  "file_to_string", "mmap("};
  const auto is_opening = [&opens](const std::string& line) {
    // Pages without a file are none.
    return line.find("ResultStore::open(") == std::string::npos &&
           line.find("::mmap(nullptr, ") == std::string::npos &&
           std::any_of(opens.begin(), opens.end(), [&line](const std::string& call) {
             return line.find(call) != std::string::npos;
           });
  };
  std::string found;
  int read = 0;
  for (const char* folder : {"sim", "models", "workloads", "validation/importers",
                             "validation/calibration", "validation/checks"}) {
    for (const auto& entry :
         fs::recursive_directory_iterator(fs::path(ORRERY_SOURCE_DIR) / folder)) {
      const std::string name = fs::relative(entry.path(), ORRERY_SOURCE_DIR).string();
      const std::string ending = entry.path().extension().string();
      if ((ending != ".cpp" && ending != ".h") || name == "sim/config/input_files.cpp" ||
          name == "sim/config/byte_source.cpp" || name.starts_with("sim/store/") ||
          name.starts_with("sim/trace/") || is_of_runs(name))
        continue;
      ++read;
      std::stringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      for (std::string line; std::getline(text, line);)
        if (is_opening(line)) found += name + ": " + line + "\n";
    }
  }
  EXPECT_GT(read, 300);
  EXPECT_EQ(found, "");
}

}  // namespace
}  // namespace orrery::config::input_files_test
