// SPDX-License-Identifier: Apache-2.0
// Files that a result rests on, edited one by one in a copy of the library.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/integration/program.h"

namespace identity_test {
namespace {

namespace fs = std::filesystem;
using integration::Outcome;
using integration::shell;

class IdentityOfFiles : public integration::InFolder {
 protected:
  void SetUp() override {
    InFolder::SetUp();
    library_ = folder_ / "library";
    fs::copy(fs::path(ORRERY_SOURCE_DIR) / "configs", library_, fs::copy_options::recursive);
  }

  std::string run(const std::string& experiment) const {
    const Outcome outcome = shell("ORRERY_CONFIGS=" + library_.string() + " " + ORRERY_BINARY +
                                      " run " + experiment + " --json",
                                  false);
    EXPECT_EQ(outcome.code, 0) << shell("ORRERY_CONFIGS=" + library_.string() + " " +
                                        ORRERY_BINARY + " run " + experiment)
                                      .out;
    return outcome.code == 0 ? nlohmann::json::parse(outcome.out).at("identity") : "";
  }

  /// The identity with a text of a file replaced, and the file as it was afterwards.
  std::string with(const std::string& experiment, const fs::path& file, const std::string& text,
                   const std::string& other) const {
    std::stringstream before;
    before << std::ifstream(file).rdbuf();
    std::string edited = before.str();
    const std::size_t at = edited.find(text);
    EXPECT_NE(at, std::string::npos) << file << " has no " << text;
    if (at == std::string::npos) return "";
    edited.replace(at, text.size(), other);
    std::ofstream(file) << edited;
    std::string identity = run(experiment);
    std::ofstream(file) << before.str();
    return identity;
  }

  fs::path library_;
};

TEST_F(IdentityOfFiles, EveryFileOfAnOperatorCountsAndNoOther) {
  write("table.csv",
        "system,precision,m,n,k,latency_us,source\nh100_sxm,bf16,512,512,512,7,a test\n");
  const std::string file = write("gemm.yaml",
                                 "experiment: operator\nsystem: dgx_h100\ncalibration: a100_sxm\n"
                                 "measured: [table.csv]\n"
                                 "operator: {kind: gemm, m: 512, n: 512, k: 512}\n");
  const std::string base = run(file);
  // The device that the calibration was fitted on is read to carry its parameters over.
  const fs::path fitted_on = library_ / "accelerators/nvidia/a100_sxm.yaml";
  EXPECT_NE(base, with(file, fitted_on, "units: ", "units: 90 #"));
  EXPECT_EQ(base, with(file, fitted_on, "units: ", "units:  ")) << "its values count, not its text";
  EXPECT_NE(base, with(file, library_ / "calibrations/a100_sxm.yaml",
                       "made_with: ", "made_with: again "));
  EXPECT_NE(base,
            with(file, library_ / "accelerators/nvidia/h100_sxm.yaml", "units: ", "units: 90 #"));
  EXPECT_NE(base, with(file, library_ / "systems/nvidia/dgx_h100.yaml",
                       "links_per_switch: [5, 4, 4, 5]", "links_per_switch: [4, 5, 5, 4]"));
  EXPECT_NE(base, with(file, folder_ / "table.csv", ",7,", ",8,"));
  EXPECT_EQ(base, with(file, library_ / "calibrations/h100_sxm.yaml",
                       "made_with: ", "made_with: again "));
  EXPECT_EQ(base, with(file, library_ / "network_calibrations/dgx_h100.yaml",
                       "made_with: ", "made_with: again "));
  EXPECT_EQ(base, run(file));
}

TEST_F(IdentityOfFiles, EveryFileOfACollectiveCountsAndNoOther) {
  write("parts.csv", "0,1e6\n2e6,0\n");
  const std::string parts = write("parts.yaml",
                                  "experiment: collective\nsystem: dgx_h100\n"
                                  "collective: {kind: all_to_all, matrix_file: parts.csv}\n");
  const std::string of_parts = run(parts);
  EXPECT_NE(of_parts, with(parts, folder_ / "parts.csv", "2e6", "3e6"));
  const std::string chain =
      write("chain.yaml",
            "experiment: collective\nsystem: dgx_h100\n"
            "collective: {kind: broadcast, bytes: 1 MiB, ranks: 3, algorithm: ./mine.yaml}\n");
  write("mine.yaml",
        "collective: broadcast\nranks: 3\nchunks: 1\nsteps:\n"
        "  - - {from: 0, to: 1, chunk: 0}\n  - - {from: 1, to: 2, chunk: 0}\n");
  const std::string base = run(chain);
  EXPECT_NE(base,
            with(chain, folder_ / "mine.yaml", "  - - {from: 1, to: 2", "    - {from: 0, to: 2"));
  EXPECT_NE(base, with(chain, library_ / "network_calibrations/dgx_h100.yaml",
                       "made_with: ", "made_with: again "));
  EXPECT_NE(base,
            with(chain, library_ / "protocols/nccl_hopper.yaml", "channels: ", "channels: 3 # "));
  EXPECT_EQ(base, with(chain, library_ / "calibrations/h100_sxm.yaml",
                       "made_with: ", "made_with: again "))
      << "no kernel is priced";
}

TEST_F(IdentityOfFiles, EveryFileOfAModelCountsAndNoOther) {
  const std::string file =
      write("step.yaml",
            "experiment: inference\nsystem: dgx_h100\nmodel: llama_3_1_8b\nphase: decode\n"
            "kv_length: 1024\nparallel: {tp: 8}\nbatch: {micro: 4}\nprecision: bf16\n");
  const std::string base = run(file);
  const fs::path hf = library_ / "models/hf/llama_3_1_8b.json";
  EXPECT_NE(base, with(file, hf, "\"vocab_size\": 128256", "\"vocab_size\": 128512"));
  EXPECT_NE(base, with(file, library_ / "calibrations/h100_sxm.yaml",
                       "made_with: ", "made_with: again "));
  EXPECT_NE(base, with(file, library_ / "network_calibrations/dgx_h100.yaml",
                       "made_with: ", "made_with: again "));
  EXPECT_NE(base, with(file, file, "kv_length: 1024", "kv_length: 1025"));
  EXPECT_EQ(base,
            with(file, library_ / "accelerators/nvidia/gb200.yaml", "units: ", "units: 90 #"));
  EXPECT_EQ(base, with(file, library_ / "calibrations/a100_sxm.yaml",
                       "made_with: ", "made_with: again "));
}

}  // namespace
}  // namespace identity_test
