// SPDX-License-Identifier: Apache-2.0
// Collectives of one's own in steps of models, in served fleets and in replays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/app/cli/command_line.h"
#include "sim/app/experiments/core/simulate.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::own_algorithms_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kModel =
    "model: {dimensions: {layers: 2, hidden: 1024, heads: 8, vocabulary: 8192}}";
const std::string kGather = ORRERY_SOURCE_DIR "/configs/collectives/put_all_gather_8.json";

/// An all-reduce of four ranks by way of the first: slow, so that it shows.
const std::string kThroughTheFirst =
    "collective: all_reduce\nranks: 4\nchunks: 1\nsteps:\n"
    "  - - {from: 1, to: 0, chunk: 0, op: reduce}\n    - {from: 2, to: 0, chunk: 0, op: reduce}\n"
    "    - {from: 3, to: 0, chunk: 0, op: reduce}\n"
    "  - - {from: 0, to: 1, chunk: 0}\n    - {from: 0, to: 2, chunk: 0}\n"
    "    - {from: 0, to: 3, chunk: 0}\n";

class OwnAlgorithms : public testing::Test {
 protected:
  OwnAlgorithms() { fs::create_directories(folder_); }
  ~OwnAlgorithms() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    return path;
  }
  fs::path folder_ =
      fs::temp_directory_path() / ("orrery_own_algorithms_" + std::to_string(::getpid()));
};

std::string step(const std::string& kind, const std::string& more) {
  return "experiment: " + kind + "\nsystem: dgx_h100\n" + kModel + "\n" + more;
}
std::string decode(int tp, const std::string& algorithms) {
  return step("inference", "phase: decode\nkv_length: 512\nbatch: {micro: 8}\nparallel: {tp: " +
                               std::to_string(tp) + "}\n" + algorithms);
}

double time_of(const std::string& file) {
  return simulate(load_experiment(file, {})).find("step_time_s")->value;
}

TEST_F(OwnAlgorithms, AStepTakesThoseOfItsFileForGroupsOfTheirSizeAndAutoForOthers) {
  write("mine.yaml", kThroughTheFirst);
  const std::string key = "algorithms: [./mine.yaml]\n";
  EXPECT_GT(time_of(write("own.yaml", decode(4, key))), time_of(write("auto.yaml", decode(4, ""))));
  EXPECT_EQ(time_of(write("eight.yaml", decode(8, key))),
            time_of(write("eight_auto.yaml", decode(8, ""))));
}

TEST_F(OwnAlgorithms, TheyGoBeforeTheKernelsOfAnEngine) {
  write("mine.yaml", kThroughTheFirst);
  const std::string engine = "engine: {kind: vllm, version: \"0.19\"}\n";
  EXPECT_GT(time_of(write("own.yaml", decode(4, engine + "algorithms: [./mine.yaml]\n"))),
            time_of(write("auto.yaml", decode(4, engine))));
}

TEST_F(OwnAlgorithms, TrainingTakesAPlanForItsGathers) {
  const std::string sharded =
      "parallel: {dp: 8, zero: 3}\nbatch: {global: 8, sequence: 256}\nalgorithms: [";
  EXPECT_NE(time_of(write("own.yaml", step("training", sharded + "\"" + kGather + "\"]\n"))),
            time_of(write("auto.yaml", step("training", sharded + "]\n"))));
}

TEST_F(OwnAlgorithms, TheFirstThatServesIsTaken) {
  write("mine.yaml", kThroughTheFirst);
  EXPECT_EQ(time_of(write("a.yaml", decode(4, "algorithms: [one_shot, ./mine.yaml]\n"))),
            time_of(write("b.yaml", decode(4, "algorithms: [one_shot]\n"))));
  EXPECT_EQ(time_of(write("c.yaml", decode(4, "algorithms: [./mine.yaml, one_shot]\n"))),
            time_of(write("d.yaml", decode(4, "algorithms: [./mine.yaml]\n"))));
}

TEST_F(OwnAlgorithms, AServedGroupTakesThem) {
  write("mine.yaml", kThroughTheFirst);
  const auto end = [&](const std::string& name, const std::string& algorithms) {
    const std::string file = write(
        name, "experiment: serving\n" + kModel +
                  "\nserving: {workload: {concurrency: 4, requests: 4, input: 64, output: 4}, "
                  "fleet: [{system: dgx_h100, parallel: {tp: 4}, engine: {kind: vllm}" +
                  algorithms + "}]}\n");
    return simulate(load_experiment(file, {})).find("mean_e2el_ms")->value;
  };
  EXPECT_GT(end("own.yaml", ", algorithms: [mine.yaml]"), end("auto.yaml", ""));
}

TEST_F(OwnAlgorithms, IdentitiesRestOnTheirBytesAndTheirOrderNotOnTheirPlace) {
  write("mine.yaml", kThroughTheFirst);
  write("same.yaml", kThroughTheFirst);
  write("other.yaml", kThroughTheFirst + "remarks: another\n");
  const auto identity = [&](const std::string& algorithms) {
    return load_experiment(write("step.yaml", decode(4, algorithms)), {}).identity;
  };
  const std::string base = identity("algorithms: [mine.yaml]\n");
  EXPECT_EQ(identity("algorithms: [same.yaml]\n"), base);
  EXPECT_NE(identity("algorithms: [other.yaml]\n"), base);
  EXPECT_NE(identity(""), base);
  EXPECT_NE(identity("algorithms: [mine.yaml, other.yaml]\n"),
            identity("algorithms: [other.yaml, mine.yaml]\n"));
}

TEST_F(OwnAlgorithms, MistakesAreShownInTheirPlace) {
  const auto error = [&](const std::string& algorithms) {
    try {
      load_experiment(write("step.yaml", decode(4, algorithms)), {});
    } catch (const config::ConfigError& problem) {
      return std::string(problem.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(error("algorithms: [rnig]\n"),
              AllOf(HasSubstr("step.yaml:8:14: error: unknown collective algorithm 'rnig'"),
                    HasSubstr("did you mean 'ring'?")));
  EXPECT_THAT(error("algorithms: [./none.yaml]\n"), HasSubstr("none.yaml"));
  write("wrong.yaml",
        "collective: broadcast\nranks: 3\nchunks: 1\nsteps:\n"
        "  - - {from: 0, to: 1, chunk: 0}\n    - {from: 1, to: 2, chunk: 0}\n");
  EXPECT_THAT(error("algorithms: [wrong.yaml]\n"),
              HasSubstr("wrong.yaml:6:7: error: step 0: rank 1 sends chunk 0 before it has it"));
}

TEST_F(OwnAlgorithms, PartsOfAPlanWithoutAnEqualAreNamed) {
  const LoadedExperiment loaded =
      load_experiment(write("gather.yaml",
                            "experiment: collective\nsystem: dgx_h100\ncollective: {kind: "
                            "all_gather, bytes: 64 MiB, algorithm: \"" +
                                kGather + "\"}\n"),
                      {});
  EXPECT_THAT(loaded.warnings, AllOf(HasSubstr("gather.yaml:3:"),
                                     HasSubstr("put_all_gather_8.json are not modelled"),
                                     HasSubstr("signals, barriers")));
  EXPECT_THAT(load_experiment(write("step.yaml", decode(4, "algorithms: [ring]\n")), {}).warnings,
              Not(HasSubstr("not modelled")));
}

TEST_F(OwnAlgorithms, APlanIsPricedAsAKernelOnTheMemoryOfPeers) {
  const auto time = [&](const std::string& algorithm) {
    const std::string file =
        write("gather.yaml",
              "experiment: collective\nsystem: dgx_h100\ncollective: {kind: all_gather, "
              "bytes: 64 MiB, algorithm: \"" +
                  algorithm + "\"}\n");
    return simulate(load_experiment(file, {})).find("time_s")->value;
  };
  // Each rank writes its share to each other one, as `direct` does.
  EXPECT_DOUBLE_EQ(time(kGather), time("direct"));
}

TEST_F(OwnAlgorithms, LinksThatFailDuringAPlanLeaveItTheKernelThatItIs) {
  const auto time = [&](const std::string& algorithm) {
    const std::string file =
        write("gather.yaml",
              "experiment: collective\nsystem: dgx_h100\nfaults: [{link: "
              "accelerator->nvswitches, at: 50 us, capacity: 0.5}]\ncollective: {kind: "
              "all_gather, bytes: 64 MiB, algorithm: \"" +
                  algorithm + "\"}\n");
    return simulate(load_experiment(file, {})).find("time_s")->value;
  };
  EXPECT_DOUBLE_EQ(time(kGather), time("direct"));
}

TEST_F(OwnAlgorithms, AStepIsReproducedWithItsFile) {
  write("mine.yaml", kThroughTheFirst);
  const std::string file = write("step.yaml", decode(4, "algorithms: [mine.yaml]\n"));
  const std::string store = (folder_ / "points.db").string();
  const std::string again = (folder_ / "again.yaml").string();
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_command_line({"run", file, "--db", store}), ExitCode::kOk);
  const std::string identity = load_experiment(file, {}).identity;
  EXPECT_EQ(run_command_line({"export", store, "--reproduce", identity, "-o", again}),
            ExitCode::kOk);
  testing::internal::GetCapturedStdout();
  EXPECT_EQ(load_experiment(again, {}).identity, identity);
}

}  // namespace
}  // namespace orrery::own_algorithms_test
