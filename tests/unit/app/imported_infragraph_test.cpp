// SPDX-License-Identifier: Apache-2.0
// A system that an InfraGraph becomes loads and runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "sim/app/cli/command_line.h"
#include "sim/app/experiments/core/simulate.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::imported_infragraph_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ImportedInfraGraph : public testing::Test {
 protected:
  ImportedInfraGraph() { fs::create_directories(folder_); }
  ~ImportedInfraGraph() override { fs::remove_all(folder_); }

  std::string import(const std::string& option, const std::string& value) const {
    const std::string file = (folder_ / "system.yaml").string();
    testing::internal::CaptureStdout();
    EXPECT_EQ(run_command_line({"import", "infragraph",
                                ORRERY_SOURCE_DIR "/tests/unit/importers/data/infragraph.yaml",
                                option, value, "-o", file}),
              ExitCode::kOk);
    EXPECT_EQ(run_command_line({"check", file}), ExitCode::kOk);
    testing::internal::GetCapturedStdout();
    return file;
  }

  fs::path folder_ =
      fs::temp_directory_path() / ("orrery_imported_infragraph_" + std::to_string(::getpid()));
};

double time_of(const std::string& system, const std::string& collective) {
  return simulate(test::load("experiment: collective\nsystem: " + system + "\ncollective: {" +
                             collective + "}\n"))
      .find("time_s")
      ->value;
}

TEST_F(ImportedInfraGraph, ItsLinksCarryCollectivesInsideAndBetweenServers) {
  const std::string system = import("--accelerator", "h100_sxm");
  // What a kernel takes to start is in all of them.
  const double near = time_of(system, "kind: send_receive, bytes: 50 MB, from: 0, to: 1");
  // Over one link and bridge of 100 GB/s or the other; between servers 50 GB/s and four links of
  // 625 ns more.
  const double far = time_of(system, "kind: send_receive, bytes: 50 MB, from: 0, to: 4");
  EXPECT_NEAR(far - near, 4 * 0.625e-6 + 50e6 / 50e9 - 50e6 / 200e9, 1e-12);
  // Four accelerators send 3 x 100 MB each over two links.
  const double all =
      time_of(system, "kind: all_gather, bytes: 400 MB, ranks: 4, algorithm: direct");
  EXPECT_NEAR(all - near, 3e8 / 200e9 - 50e6 / 200e9, 1e-12);
}

TEST_F(ImportedInfraGraph, AllElseIsOfTheSystemThatItExtends) {
  const std::string file = import("--system", "dgx_h100");
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_THAT(text, HasSubstr("extends: dgx_h100\n"));
  EXPECT_THAT(text, HasSubstr("extends: h100_sxm\n"));
  EXPECT_GT(time_of(file, "kind: all_reduce, bytes: 64 MiB, ranks: 8"),
            time_of("dgx_h100", "kind: all_reduce, bytes: 64 MiB, ranks: 8"));
}

}  // namespace
}  // namespace orrery::imported_infragraph_test
