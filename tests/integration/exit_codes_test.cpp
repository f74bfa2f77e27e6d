// SPDX-License-Identifier: Apache-2.0
// Inputs and machines that cannot be: no exit code 1, and nothing left lying about.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/integration/program.h"

namespace exit_codes_test {
namespace {

namespace fs = std::filesystem;
using integration::orrery;
using integration::Outcome;
using integration::shell;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ExitCodes : public integration::InFolder {
 protected:
  std::string collective() const {
    return write("ar.yaml",
                 "experiment: collective\nsystem: dgx_h100\n"
                 "collective: {kind: all_reduce, bytes: 1 GiB}\n");
  }
  std::string step() const {
    return write("step.yaml",
                 "experiment: inference\nsystem: dgx_h100\nmodel: llama_3_1_8b\nphase: decode\n"
                 "kv_length: 1024\nparallel: {tp: 8}\nbatch: {micro: 4}\nprecision: bf16\n");
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_))
      names.push_back(entry.path().filename().string());
    return names;
  }
};

TEST_F(ExitCodes, WhatTakesLongerThanSimulatedTimeIsInfeasibleNotABug) {
  const std::string file = write("gemm.yaml",
                                 "experiment: operator\nsystem: dgx_h100\n"
                                 "operator: {kind: gemm, m: 1e9, n: 1e9, k: 1e9}\n");
  const Outcome run = orrery("run " + file);
  EXPECT_EQ(run.code, 5) << run.out;
  EXPECT_THAT(run.out, HasSubstr("is longer than simulated time can count (106 days)"));
}

TEST_F(ExitCodes, AFileAboveTheLimitIsAResourceAndLeavesNoTrace) {
  const std::string command = ORRERY_BINARY " run " + step() + " --trace " + path("t.pftrace");
  const Outcome run = shell("cd " ORRERY_SOURCE_DIR " && ulimit -f 8 && " + command);
  EXPECT_EQ(run.code, 6) << run.out;
  EXPECT_THAT(run.out, HasSubstr("File too large"));
  EXPECT_THAT(files(), ::testing::ElementsAre("step.yaml"));
}

TEST_F(ExitCodes, ADeviceIsWrittenToNotReplaced) {
  // By a link of the test's own, so that no mistake can replace the device itself.
  fs::create_symlink("/dev/full", path("full"));
  const Outcome full = orrery("run " + step() + " --trace " + path("full"));
  EXPECT_EQ(full.code, 6) << full.out;
  EXPECT_TRUE(fs::is_symlink(path("full")));
  EXPECT_THAT(files(), ::testing::UnorderedElementsAre("full", "step.yaml"));
}

TEST_F(ExitCodes, AStoreAboveTheLimitIsAResource) {
  const Outcome run = shell("cd " ORRERY_SOURCE_DIR " && ulimit -f 8 && " ORRERY_BINARY " run " +
                            collective() + " --db " + path("r.db"));
  EXPECT_EQ(run.code, 6) << run.out;
  EXPECT_THAT(run.out, AllOf(HasSubstr("error: "), HasSubstr("bus_bytes_per_s")))
      << "the result is printed anyway";
}

TEST_F(ExitCodes, TooFewFileHandlesAreAResource) {
  const std::string file = collective();
  // From what the loader of the program itself needs on: at some number each step fails first.
  int few = 0;
  for (int handles = 4; handles <= 9; ++handles) {
    // The parentheses, because the shell itself needs handles to redirect.
    const Outcome run = shell("(cd " ORRERY_SOURCE_DIR " && ulimit -n " + std::to_string(handles) +
                              " && " ORRERY_BINARY " run " + file + " --db " + path("r.db") + ")");
    if (run.code == 127) continue;  // too few for the loader, of what the caller has open
    few += run.code == 6 ? 1 : 0;
    EXPECT_TRUE(run.code == 6 || run.code == 0) << handles << " handles: " << run.out;
  }
  EXPECT_GT(few, 0);
}

TEST_F(ExitCodes, ALockedStoreSaysSoAndTheResultIsPrintedAnyway) {
  const std::string command = "run " + collective() + " --db " + path("r.db");
  ASSERT_EQ(orrery(command).code, 0);
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path("r.db").c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  const Outcome run = orrery(command);
  sqlite3_close(database);
  EXPECT_EQ(run.code, 6);
  EXPECT_THAT(run.out, AllOf(HasSubstr("the store is locked by another process"),
                             HasSubstr("the result will not be in the store"),
                             HasSubstr("bus_bytes_per_s")));
}

TEST_F(ExitCodes, AStoreThatLostItsEndIsLeftAsItIs) {
  const std::string command = "run " + collective() + " --db " + path("r.db");
  ASSERT_EQ(orrery(command).code, 0);
  for (const int lost : {100, 4096, 20'000}) {
    fs::copy_file(path("r.db"), path("cut.db"), fs::copy_options::overwrite_existing);
    fs::resize_file(path("cut.db"), fs::file_size(path("r.db")) - static_cast<unsigned>(lost));
    const auto content = [this] {
      std::stringstream bytes;
      bytes << std::ifstream(path("cut.db"), std::ios::binary).rdbuf();
      return bytes.str();
    };
    const std::string before = content();
    const Outcome run = orrery("run " + collective() + " --db " + path("cut.db"));
    EXPECT_EQ(run.code, 6) << run.out;
    EXPECT_THAT(run.out, HasSubstr("cut.db: the file has lost its end"));
    EXPECT_TRUE(before == content());
    EXPECT_FALSE(fs::exists(path("cut.db-wal")));
  }
}

}  // namespace
}  // namespace exit_codes_test
