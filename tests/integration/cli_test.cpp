// SPDX-License-Identifier: Apache-2.0
// The program as a user runs it: exit codes, messages, what is left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/integration/program.h"

namespace cli_test {
namespace {

using namespace integration;
namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class Cli : public InFolder {
 protected:
  /// A decode step of a small model on one node: milliseconds to simulate.
  std::string small_experiment() const {
    return write("small.yaml",
                 "experiment: inference\n"
                 "name: small\n"
                 "system: dgx_h100\n"
                 "model: llama_3_1_8b\n"
                 "phase: decode\n"
                 "kv_length: 1024\n"
                 "parallel: {tp: 8}\n"
                 "batch: {micro: 4}\n"
                 "precision: bf16\n");
  }
};

TEST_F(Cli, RunPrintsJsonOnStandardOutputAlone) {
  const Outcome run = orrery("run " + small_experiment() + " --json", false);
  ASSERT_EQ(run.code, 0) << run.out;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json.at("schema"), "orrery.run/1");
  EXPECT_EQ(json.at("experiment"), "inference");
  for (const char* name :
       {"step_time_s", "tokens_per_s", "model_flops_utilization", "peak_memory_bytes", "energy_j",
        "average_power_w", "tokens_per_joule", "simulated_time_s", "wall_time_s", "events"}) {
    EXPECT_TRUE(json.at("metrics").contains(name)) << name;
    EXPECT_TRUE(json.at("units").contains(name)) << name;
    EXPECT_TRUE(json.at("intervals").contains(name)) << name;
  }
  EXPECT_LT(json.at("intervals").at("step_time_s").at(0), json.at("metrics").at("step_time_s"));
  EXPECT_TRUE(json.at("intervals").at("peak_memory_bytes").is_null());
}

TEST_F(Cli, BreakdownAddsUpToTheStep) {
  const auto json =
      nlohmann::json::parse(orrery("run " + small_experiment() + " --json", false).out);
  const auto& metrics = json.at("metrics");
  double sum = 0;
  for (const char* part :
       {"compute", "exposed_communication", "bubble", "optimizer", "host", "idle"}) {
    sum += metrics.at("breakdown." + std::string(part) + "_s").get<double>();
  }
  EXPECT_NEAR(sum, metrics.at("step_time_s").get<double>(), 1e-11);
  EXPECT_EQ(metrics.at("breakdown.stage"), "pp 0");  // whose parts these are
}

TEST_F(Cli, EveryNodeIsAComponentWithItsShare) {
  const auto json = nlohmann::json::parse(
      orrery("run " + small_experiment() + " --json --set nodes=3", false).out);
  const auto& components = json.at("components");
  ASSERT_EQ(components.size(), 3U);
  // The plan uses the eight ranks of the first node; the others idle.
  EXPECT_EQ(components[0].at("name"), "system0/node0");
  EXPECT_GT(components[0].at("busy_share"), 0.5);
  EXPECT_LE(components[0].at("busy_share"), 1.0);
  EXPECT_GT(components[0].at("sent_bytes"), 0.0);
  EXPECT_EQ(components[2].at("busy_share"), 0.0);
  EXPECT_EQ(components[2].at("sent_bytes"), 0.0);
}

TEST_F(Cli, ResultsDoNotDependOnTheWorkingDirectoryOrTheEnvironment) {
  const std::string file = small_experiment();
  const auto run = [&](const std::string& prefix) {
    const Outcome outcome = shell(prefix + " " ORRERY_BINARY " run " + file + " --json", false);
    auto json = nlohmann::ordered_json::parse(outcome.out);
    json["metrics"].erase("wall_time_s");
    json.erase("parameters");  // their origins are paths, relative where they can be
    return json.dump();
  };
  const std::string here = run("cd " + std::string(ORRERY_SOURCE_DIR) + " &&");
  EXPECT_EQ(here, run("cd / &&"));
  EXPECT_EQ(here, run("LC_ALL=de_DE.UTF-8 LANG=de_DE.UTF-8 OMP_NUM_THREADS=7"));
  EXPECT_EQ(here, run("setarch -R"));  // no address space randomisation
}

TEST_F(Cli, TheSamePointGivesTheSameBytes) {
  const std::string file = small_experiment();
  const auto run = [&] {
    auto json = nlohmann::ordered_json::parse(orrery("run " + file + " --json", false).out);
    json["metrics"].erase("wall_time_s");
    return json.dump();
  };
  EXPECT_EQ(run(), run());
}

TEST_F(Cli, AStoreKeepsOneRowAPoint) {
  const std::string file = small_experiment();
  const std::string store = path("s.db");
  ASSERT_EQ(orrery("run " + file + " --db " + store).code, 0);
  ASSERT_EQ(orrery("run " + file + " --db " + store + " --set name=again").code, 0);
  ASSERT_EQ(orrery("run " + file + " --db " + store + " --set batch.micro=8").code, 0);
  EXPECT_EQ(shell("sqlite3 " + store + " 'SELECT count(*) FROM points'").out, "2\n");
}

TEST_F(Cli, WrongInputIsExitCode2WithAPlaceAndLeavesNoStore) {
  const std::string store = path("s.db");
  const std::string file = write("bad.yaml", "experiment: training\nsystm: dgx_h100\n");
  const Outcome run = orrery("run " + file + " --db " + store);
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.out, HasSubstr("bad.yaml:2:1: error: unknown key 'systm'"));
  EXPECT_THAT(run.out, HasSubstr("did you mean 'system'?"));
  EXPECT_FALSE(fs::exists(store));
}

TEST_F(Cli, EveryKindOfWrongInputIsExitCode2) {
  const std::string file = small_experiment();
  const std::string store = path("s.db");
  const std::vector<std::string> commands = {
      "run /nonexistent.yaml",
      "run " + file + " --set system.acelerator.dies=1",
      "run " + file + " --set 'system.accelerator.memory.bandwidth=4'",
      "run " + file + " --set 'system.accelerator.memory.bandwidth=4 GB'",
      "run " + file + " --set system=dgx_h10",
      "run " + file + " --set parallel.tp=7",
      "run " + file + " --set precision=fp7",
      "run " + file + " --set precision=int4",
      "run " + file + " --set batch.micro=0",
      "run " + file + " --set model=llama_9",
      "run " + file + " --set parallel.tp=16",
      "run " + file + " --nonsense",
      "nonsense",
      "run"};
  for (const std::string& arguments : commands) {
    const Outcome run =
        orrery(arguments + (arguments.find(".yaml") == std::string::npos ? "" : " --db " + store));
    EXPECT_EQ(run.code, 2) << arguments << "\n" << run.out;
    EXPECT_FALSE(fs::exists(store)) << arguments;
  }
}

TEST_F(Cli, AllErrorsOfAFileAreReportedAtOnce) {
  const std::string file = write("bad.yaml",
                                 "experiment: inference\n"
                                 "system: dgx_h10\n"
                                 "model: llama_3_1_8b\n"
                                 "paralel: {tp: 8}\n"
                                 "precision: bf61\n"
                                 "memory_reserve: 2\n");
  const Outcome run = orrery("run " + file);
  EXPECT_EQ(run.code, 2);
  for (const char* place : {"bad.yaml:2:9: error", "bad.yaml:4:1: error", "bad.yaml:5:12: error",
                            "bad.yaml:6:17: error"}) {
    EXPECT_THAT(run.out, HasSubstr(place));
  }
  for (const char* meant : {"'dgx_h100'?", "'parallel'?", "'bf16'?"})
    EXPECT_THAT(run.out, HasSubstr(meant));
}

TEST_F(Cli, AWrongCommandOrKindOfFileIsAnsweredWithTheRightOne) {
  EXPECT_THAT(orrery("rnu x.yaml").out, HasSubstr("did you mean 'run'?"));
  EXPECT_THAT(orrery("sweep run " + small_experiment()).out,
              HasSubstr("this is an experiment; try: orrery run"));
  EXPECT_THAT(orrery("run configs/sweeps/supernodes.yaml").out,
              HasSubstr("this is a sweep; try: orrery sweep run"));
}

TEST_F(Cli, AFileThatIsNoStoreIsTheUsersChoice) {
  const std::string other = write("notes.txt", "hello");
  EXPECT_EQ(orrery("run " + small_experiment() + " --db " + other).code, 2);
  EXPECT_EQ(orrery("run " + small_experiment() + " --db /nonexistent/folder/s.db").code, 2);
  EXPECT_EQ(shell("cat " + other).out, "hello");
}

TEST_F(Cli, WhatDoesNotFitIsExitCode5WithTheShortfallAndARow) {
  const std::string store = path("s.db");
  const Outcome run = orrery(
      "run configs/experiments/llama_405b_training.yaml --set system=dgx_h100 --set nodes=9 --db " +
      store);
  EXPECT_EQ(run.code, 5) << run.out;
  EXPECT_THAT(run.out, HasSubstr("does not fit"));
  EXPECT_THAT(run.out, HasSubstr("too much"));
  EXPECT_EQ(shell("sqlite3 " + store + " 'SELECT status FROM points'").out, "infeasible\n");
}

TEST_F(Cli, AStepThatDoesNotFitIsTimedWhereMemoryIsIgnored) {
  const std::string step =
      "run configs/experiments/llama_405b_training.yaml --set system=dgx_h100 --set nodes=9";
  EXPECT_THAT(orrery(step).out, testing::Not(HasSubstr("step_time_s")));
  const Outcome run = orrery(step + " --ignore-memory");
  EXPECT_EQ(run.code, 5) << run.out;
  EXPECT_THAT(run.out, HasSubstr("does not fit"));
  EXPECT_THAT(run.out, HasSubstr("step_time_s"));
}

TEST_F(Cli, ShippedFilesPassCheck) {
  const Outcome check = orrery(
      "check configs/experiments/*.yaml configs/sweeps/*.yaml configs/systems/*/*.yaml "
      "configs/accelerators/*/*.yaml configs/models/*.yaml configs/collectives/*.yaml "
      "validation/published/*/*.yaml");
  EXPECT_EQ(check.code, 0) << check.out;
}

TEST_F(Cli, AChipOfOnesOwnIsTenLines) {
  write("my_chip.yaml",
        "accelerator: my_chip\n"
        "extends: h100_sxm\n"
        "name: H100 with twice the bandwidth\n"
        "memory: {bandwidth: 6.7 TB/s}\n");
  const std::string own = write("own.yaml",
                                "extends: ./small.yaml\n"
                                "system: {extends: dgx_h100, accelerator: ./my_chip.yaml}\n");
  const auto time = [](const Outcome& run) {
    return nlohmann::json::parse(run.out).at("metrics").at("step_time_s").get<double>();
  };
  const double base = time(orrery("run " + small_experiment() + " --json", false));
  const Outcome run = orrery("run " + own + " --json", false);
  ASSERT_EQ(run.code, 0) << orrery("run " + own).out;
  EXPECT_LT(time(run), base);
  EXPECT_EQ(orrery("check " + path("my_chip.yaml")).code, 0)
      << orrery("check " + path("my_chip.yaml")).out;
}

TEST_F(Cli, ExplainNamesTheOriginOfEveryValueAndIdleInputs) {
  const Outcome run =
      orrery("explain " + small_experiment() + " --set memory_reserve=0.2 --json", false);
  ASSERT_EQ(run.code, 0);
  const auto json = nlohmann::json::parse(run.out);
  std::map<std::string, std::string> origins;
  for (const auto& row : json.at("configuration")) origins[row.at("path")] = row.at("origin");
  EXPECT_THAT(origins.at("batch.micro"), HasSubstr("small.yaml:8:16"));
  EXPECT_THAT(origins.at("system.accelerator.memory.bandwidth"), HasSubstr("h100_sxm.yaml:"));
  EXPECT_EQ(origins.at("memory_reserve"), "--set");
  EXPECT_EQ(origins.at("seed"), "default");
  // A small model fits whatever is left free.
  EXPECT_THAT(json.at("no_effect"), testing::Contains("memory_reserve"));
  EXPECT_FALSE(json.at("kernels").empty());
}

TEST_F(Cli, TraceWritesATimeline) {
  const std::string trace = path("t.pftrace");
  ASSERT_EQ(orrery("run " + small_experiment() + " --trace " + trace).code, 0);
  EXPECT_GT(fs::file_size(trace), 1000U);
}

TEST_F(Cli, ASecondSweepReadsEveryPointFromTheStore) {
  small_experiment();
  const std::string sweep =
      write("sweep.yaml",
            "sweep: ladder\n"
            "cases:\n"
            "  - name: batches\n"
            "    base: ./small.yaml\n"
            "    axes: {grid: {batch.micro: [1, 2, 4]}}\n"
            "    choose: {maximize: batch.micro, at_most: {step_time_s: 1 s}}\n");
  const std::string command = "sweep run " + sweep + " --db " + path("s.db");
  EXPECT_THAT(orrery(command).out, HasSubstr("3 points: 0 read from the store, 3 simulated"));
  EXPECT_THAT(orrery(command).out, HasSubstr("3 points: 3 read from the store, 0 simulated"));
  const auto second = nlohmann::json::parse(orrery(command + " --json", false).out);
  EXPECT_EQ(second.at("cases")[0].at("rows")[0].at("chosen"),
            second.at("cases")[0].at("rows")[0].at("points")[2].at("identity"));
}

TEST_F(Cli, ASweepPointsToTheWrongLineOfTheSweepFile) {
  small_experiment();
  const std::string sweep = write("sweep.yaml",
                                  "sweep: ladder\n"
                                  "cases:\n"
                                  "  - name: batches\n"
                                  "    base: ./small.yaml\n"
                                  "    axes: {grid: {batch.micr: [1, 2]}}\n");
  const Outcome run = orrery("sweep run " + sweep + " --db " + path("s.db"));
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.out, HasSubstr("sweep.yaml:5:19: error: unknown key 'micr'"));
  EXPECT_THAT(run.out, HasSubstr("did you mean 'micro'?"));
  EXPECT_FALSE(fs::exists(path("s.db")));
}

TEST_F(Cli, PublishedRowsComeFromACsvThroughATemplate) {
  small_experiment();
  write("rows.csv", "row,batch,ms\na,1,1000\nb,2,\"2000\"\n");
  const std::string rows = write("rows.yaml",
                                 "- id: 'ROW-{row}'\n"
                                 "  rows: rows.csv\n"
                                 "  experiment: ./small.yaml\n"
                                 "  set: {batch.micro: '{batch}'}\n"
                                 "  metric: step_time_s\n"
                                 "  measured: '{ms}'\n"
                                 "  unit: ms\n"
                                 "  source: none, a test\n");
  const Outcome run = orrery("validate published " + rows + " --json", false);
  EXPECT_EQ(run.code, 3);  // a decode step does not take seconds: the rows are off on purpose
  const auto json = nlohmann::json::parse(run.out);
  ASSERT_EQ(json.at("entries").size(), 2U);
  EXPECT_EQ(json.at("entries")[1].at("id"), "ROW-b");
  EXPECT_EQ(json.at("entries")[1].at("measured"), 2.0);
  EXPECT_EQ(json.at("worst"), "ROW-b");
}

TEST_F(Cli, PublishedRatiosAreToldToBeRatios) {
  small_experiment();
  const std::string rows = write("rows.yaml",
                                 "- id: RATIO\n"
                                 "  experiment: ./small.yaml\n"
                                 "  over: {batch.micro: 1}\n"
                                 "  metric: step_time_s\n"
                                 "  measured: 1\n"
                                 "  tolerance: 1\n"
                                 "  source: none, a test\n");
  const Outcome table = orrery("validate published " + rows, false);
  EXPECT_EQ(table.code, 0) << table.out;
  EXPECT_THAT(table.out, HasSubstr("ratio of step_time_s"));
  const auto entry =
      nlohmann::json::parse(orrery("validate published " + rows + " --json", false).out)
          .at("entries")
          .at(0);
  EXPECT_TRUE(entry.at("ratio"));
  EXPECT_EQ(entry.at("unit"), "1");
  EXPECT_GT(entry.at("predicted"), 1.0);
  EXPECT_TRUE(entry.at("p10").is_null());
}

/// GEMMs on an H200 that take 10 us, 10 ps for each element of the product, which is 0.83 of the
/// peak, and 2 ns for each column of the weights, 0.85 of the memory's.
std::string gemm_table() {
  std::string table = "system,precision,m,n,k,latency_us,source\n";
  for (int n = 128; n <= 8192; n += 128) {
    for (int m = 1; m <= 4096; m *= 4) {
      const double time = 10 + 2e-3 * n + 1e-5 * m * n;
      table += "h200_sxm,bf16," + std::to_string(m) + "," + std::to_string(n) + ",4096," +
               std::to_string(time) + ",made by a test\n";
    }
  }
  return table;
}

TEST_F(Cli, OperatorsAreComparedWithTwoBaselinesAndTheirRowsWritten) {
  const std::string table = write("gemm.csv", gemm_table());
  const Outcome run =
      orrery("validate operators " + table + " --json --rows " + path("rows.csv"), false);
  ASSERT_EQ(run.code, 0) << run.out;
  const auto json = nlohmann::json::parse(run.out);
  const auto& all = json.at("entries").at(0);
  EXPECT_EQ(all.at("class"), "all");
  EXPECT_EQ(all.at("count"), 64 * 7);
  EXPECT_GT(all.at("mape"), 0);
  EXPECT_GT(all.at("baselines").at("textbook").at("mape"), 0);
  std::ifstream rows(path("rows.csv"));
  std::string line;
  std::getline(rows, line);
  EXPECT_EQ(line,
            "system,precision,m,n,k,latency_us,source,predicted_us,provenance,bound,fidelity");
  std::getline(rows, line);
  EXPECT_THAT(line, testing::StartsWith("h200_sxm,bf16,1,128,4096,"));
  EXPECT_THAT(line, HasSubstr(",calibrated,"));
}

TEST_F(Cli, OperatorsOfSeveralEnginesHaveALineForEachVersion) {
  const std::string table =
      write("gemm.csv",
            "system,framework,version,kernel,precision,m,n,k,latency_us,source\n"
            "h200_sxm,vllm,0.19.0,vllm_default,bf16,1,256,4096,5,s\n"
            "h200_sxm,vllm,0.24.0,torch.nn.functional.linear,bf16,1,256,4096,4,s\n");
  const Outcome both = orrery("validate operators " + table + " --json", false);
  ASSERT_EQ(both.code, 0) << both.out;
  std::set<std::string> versions;
  const auto json = nlohmann::json::parse(both.out);
  for (const auto& entry : json.at("entries"))
    versions.insert(entry.at("version").get<std::string>());
  EXPECT_THAT(versions, testing::ElementsAre("0.19.0", "0.24.0"));
  const Outcome one = orrery("validate operators " + table + " --where version=0.24.0");
  EXPECT_THAT(one.out, HasSubstr("0.24.0"));
  EXPECT_THAT(one.out, testing::Not(HasSubstr("0.19.0")));
}

TEST_F(Cli, ACalibrationIsOfOneEngine) {
  const std::string table =
      write("gemm.csv",
            "system,framework,version,kernel,precision,m,n,k,latency_us,source\n"
            "h200_sxm,vllm,0.19.0,vllm_default,bf16,1,256,4096,5,s\n"
            "h200_sxm,vllm,0.24.0,torch.nn.functional.linear,bf16,1,256,4096,4,s\n");
  const Outcome run = orrery("calibrate --model roofline " + table + " -o " + path("mine.yaml"));
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.out, HasSubstr("has rows of vllm 0.19.0 and vllm 0.24.0: name one with --where"));
  EXPECT_FALSE(std::filesystem::exists(path("mine.yaml")));
}

TEST_F(Cli, RowsThatNoModelPredictsAreCountedAndNamed) {
  const std::string table = write("gemm.csv",
                                  "system,precision,m,n,k,latency_us,source\n"
                                  "h200_sxm,bf16,1,256,4096,5,s\n"
                                  "h200_sxm,w4a16,1,256,4096,5,s\n"
                                  "abacus,bf16,1,256,4096,5,s\n");
  const Outcome run = orrery("validate operators " + table);
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, HasSubstr("1 rows, no accelerator is called 'abacus'"));
  EXPECT_THAT(run.out, HasSubstr("1 rows, gemm: no model of w4a16 on h200_sxm"));
}

TEST_F(Cli, CalibrateWritesOverNoFileOfAnother) {
  const std::string table = write("gemm.csv", gemm_table());
  const std::string mine = "accelerator: h200_sxm\nname: written by hand\n";
  const std::string file = write("h200_sxm.yaml", mine);
  for (const char* given : {"", " --accelerator h200_sxm"}) {
    const Outcome run =
        orrery("calibrate --model roofline " + table + given + " -o " + folder_.string());
    EXPECT_EQ(run.code, 2) << run.out;
    EXPECT_THAT(run.out, testing::HasSubstr("is no calibration, so it is not written over"));
    std::ostringstream left;
    left << std::ifstream(file).rdbuf();
    EXPECT_EQ(left.str(), mine);
  }
}

TEST_F(Cli, ACalibrationIsWrittenUsedAndChecked) {
  const std::string table = write("gemm.csv", gemm_table());
  const std::string file = path("mine.yaml");
  const Outcome made =
      orrery("calibrate --model roofline " + table + " -o " + file + " --date 2026-01-02");
  ASSERT_EQ(made.code, 0) << made.out;
  EXPECT_EQ(orrery("check " + file).code, 0);
  const Outcome same = orrery("calibrate --model roofline " + table + " -o " + file + " --check");
  EXPECT_EQ(same.code, 0) << same.out;
  EXPECT_THAT(same.out, HasSubstr("nothing moved"));

  const std::string slower = write("slower.csv", [] {
    std::string text = gemm_table();
    for (std::size_t at = 0; (at = text.find(",10.", at)) != std::string::npos;)
      text.replace(at, 4, ",14.");
    return text;
  }());
  const Outcome moved = orrery("calibrate --model roofline " + slower + " -o " + file + " --check");
  EXPECT_EQ(moved.code, 3) << moved.out;
  EXPECT_THAT(moved.out, HasSubstr("gemm.launch"));

  const Outcome used =
      orrery("run tests/golden/gemm_h200.yaml --json --set calibration=" + file, false);
  ASSERT_EQ(used.code, 0) << used.out;
  const auto json = nlohmann::json::parse(used.out);
  EXPECT_EQ(json.at("provenance").at("calibration"), "mine");
  EXPECT_TRUE(json.at("intervals").at("time_s").is_array());
}

/// The text between two marks of a file, and the file with another text there.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin) + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

/// A table of a README is what was printed; ORRERY_UPDATE_GOLDEN writes it anew.
void expect_in_readme(const std::string& command, const std::string& printed,
                      const std::string& folder = "validation") {
  const std::string file = ORRERY_SOURCE_DIR "/" + folder + "/README.md";
  const std::string begin = "<!-- generated: " + command + " -->\n", end = "<!-- end -->";
  std::ifstream stream(file);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  ASSERT_NE(text.find(begin), std::string::npos);
  const std::string expected = "```\n" + printed + "```\n";
  if (std::getenv("ORRERY_UPDATE_GOLDEN") != nullptr) {
    text.replace(text.find(begin) + begin.size(), between(text, begin, end).size(), expected);
    std::ofstream(file) << text;
  }
  EXPECT_EQ(between(text, begin, end), expected);
}

TEST_F(Cli, TheErrorTableOfTheReadmeIsWhatTheProgramPrints) {
  const Outcome table = orrery(
      "describe calibration a100_sxm b200_sxm b300_sxm gb200 h100_sxm h200_sxm l40s rtx_pro_6000",
      false);
  ASSERT_EQ(table.code, 0);
  expect_in_readme("describe calibration", table.out);
}

TEST_F(Cli, TheTableOfTheMainJobInTheReadmeIsWhatTheProgramPrints) {
  const Outcome job =
      orrery("sweep run configs/sweeps/supernodes.yaml --db " + path("supernodes.db"), false);
  ASSERT_EQ(job.code, 0);
  // How many points there were, and how long they took, stands behind it.
  const std::size_t points = job.out.rfind('\n', job.out.find(" points: "));
  expect_in_readme("quickstart", job.out.substr(0, points), ".");
}

TEST_F(Cli, TheTableOfAcceleratorsInTheReadmeIsWhatTheProgramPrints) {
  const Outcome table = orrery("describe accelerators", false);
  ASSERT_EQ(table.code, 0);
  expect_in_readme("describe accelerators", table.out, "configs");
}

TEST_F(Cli, TheTableOfTrendsInTheReadmeIsWhatTheScriptPrints) {
  if (std::system("python3 --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no python3";
  const std::string scripts = ORRERY_SOURCE_DIR "/scripts/";
  const Outcome table =
      shell("python3 " + scripts + "plot_devices.py --trends " + scripts + "gpu_generations.csv");
  ASSERT_EQ(table.code, 0) << table.out;
  expect_in_readme("plot_devices.py --trends", table.out, "scripts");
}

// Said where it stands, and no error: 900 GB/s of the data sheet are both ways.
TEST_F(Cli, FiguresThatCanHardlyBeTrueAreWarnings) {
  const std::string chip = write("chip.yaml",
                                 "accelerator: chip\nextends: h100_sxm\nname: A chip\n"
                                 "scale_up: {bandwidth: 900 GB/s}\n");
  const std::string own = write(
      "own.yaml", "extends: ./small.yaml\nsystem: {extends: dgx_h100, accelerator: ./chip.yaml}\n");
  small_experiment();
  for (const std::string& command :
       {"check " + chip, "describe accelerator " + chip, "run " + own}) {
    const Outcome outcome = orrery(command);
    EXPECT_EQ(outcome.code, 0) << outcome.out;
    EXPECT_THAT(outcome.out, HasSubstr("chip.yaml:4:23: warning: 900 GB/s over 18 links are"))
        << command;
    EXPECT_THAT(outcome.out, HasSubstr("bandwidths are one way")) << command;
  }
  EXPECT_THAT(orrery("check configs/accelerators/*/*.yaml").out, Not(HasSubstr("warning")));
}

TEST_F(Cli, TheTableOfCollectivesInTheReadmeIsWhatTheProgramPrints) {
  const Outcome table =
      orrery("validate collectives validation/measured/collective_nccl.csv --summary", false);
  ASSERT_EQ(table.code, 0);
  expect_in_readme("validate collectives", table.out.substr(0, table.out.find("\npublished rows")));
}

TEST_F(Cli, TheTableOfPublishedFiguresInTheReadmeIsWhatTheProgramPrints) {
  std::string files;
  for (const char* name : {"collectives",
                           "context_parallel",
                           "expert_exchange",
                           "hccl_a3",
                           "megatron_selene",
                           "megatron_selene_memory",
                           "megatron_sc21",
                           "megatron_megascale",
                           "nemo_h100",
                           "nemo_t5",
                           "megatron_bridge_dense",
                           "megatron_bridge_fsdp",
                           "megatron_bridge_moe",
                           "megatron_bridge_tokendrop",
                           "megatron_bridge_hybrids",
                           "papers_a100",
                           "composer_mpt",
                           "torchtitan",
                           "eager_models",
                           "rocm_training",
                           "sharded_papers",
                           "fine_tuning",
                           "mlperf_training",
                           "llama3_405b",
                           "nccl_sweeps",
                           "amd_collectives",
                           "pcie_collectives",
                           "pcie_cards",
                           "supercomputer_nodes",
                           "attention_a100",
                           "resnet_50",
                           "recurrent_kernels",
                           "recurrent_kernels_fitted",
                           "sparse_kernels",
                           "deepgemm",
                           "wide_ep",
                           "trainium",
                           "tpu",
                           "gaudi",
                           "llm_inference_bench",
                           "tensorrt_llm_steps",
                           "mlperf_llama_2_70b",
                           "mlperf_deepseek_r1",
                           "ascend",
                           "h20_141",
                           "dgx_spark",
                           "not_gpus",
                           "apple_silicon",
                           "jetson",
                           "tenstorrent",
                           "vision_chips",
                           "announced"})
    files += std::string(" validation/published/*/") + name + ".yaml";
  const Outcome rows = orrery("validate published" + files, false);
  ASSERT_EQ(rows.code, 3);  // small buffers of HCCL are outside their tolerance
  expect_in_readme("validate published", rows.out.substr(rows.out.find("\nsource ") + 1));
}

TEST_F(Cli, MeasurementsOfOtherToolsAreImported) {
  const std::string log = "tests/unit/importers/data/all_reduce.log";
  const Outcome run = orrery("import nccl-tests " + log + " --system h100_sxm -o " + path("c.csv"));
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("3 rows in " + path("c.csv")));
  std::ifstream csv(path("c.csv"));
  std::string header, row;
  std::getline(csv, header);
  std::getline(csv, row);
  EXPECT_THAT(header, testing::StartsWith("system,collective,precision,ranks,bytes,latency_us"));
  EXPECT_THAT(row, testing::StartsWith("h100_sxm,all_reduce,fp32,2,1024,8,"));
}

TEST_F(Cli, AnImportThatFailsLeavesNoFile) {
  const Outcome wrong = orrery("import nccl-tests README.md -o " + path("c.csv"));
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.out, HasSubstr("README.md: holds no table of nccl-tests"));
  const Outcome unknown = orrery("import nsis README.md");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.out, HasSubstr("did you mean 'nsys'?"));
  EXPECT_FALSE(fs::exists(path("c.csv")));
}

}  // namespace
}  // namespace cli_test
