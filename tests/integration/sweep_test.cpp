// SPDX-License-Identifier: Apache-2.0
// What sweeps print, refuse and go on after.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/integration/program.h"

namespace sweep_test {
namespace {

using integration::orrery;
using integration::Outcome;
using integration::shell;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Sweeps : public integration::InFolder {
 protected:
  /// A sweep over a decode step of a small model on one node.
  Outcome sweep(const std::string& rest, const std::string& options = "", bool both = true) const {
    write("small.yaml",
          "experiment: inference\nsystem: dgx_h100\nmodel: llama_3_1_8b\nphase: decode\n"
          "kv_length: 1024\nparallel: {tp: 8}\nbatch: {micro: 4}\nprecision: bf16\n");
    write("sweep.yaml", "sweep: ladder\ncases:\n  - name: table\n    base: ./small.yaml\n" + rest);
    return run(options, both);
  }
  /// A sweep of operators or collectives.
  Outcome sweep_of(const std::string& base, const std::string& rest) const {
    write("sweep.yaml", "sweep: ladder\ncases:\n  - name: table\n    base: " + base + "\n" + rest);
    return run("", true);
  }

 private:
  Outcome run(const std::string& options, bool both) const {
    return orrery("sweep run " + path("sweep.yaml") + " --db " + path("s.db") + options, both);
  }
};

TEST_F(Sweeps, PrintTheSameBytesFromTheStoreAsFromTheRun) {
  const std::string axes = "    axes: {grid: {batch.micro: [1, 2]}}\n";
  const Outcome first = sweep(axes, " --json", false), second = sweep(axes, " --json", false);
  EXPECT_EQ(first.code, 0);
  EXPECT_EQ(first.out, second.out);
  EXPECT_THAT(sweep(axes, " --json").out,
              HasSubstr("2 points: 2 read from the store, 0 simulated"));
}

TEST_F(Sweeps, APointThatCannotBeIsARowWithItsReason) {
  // 16 ranks are more than the node has; 7 does not divide the 32 heads.
  const Outcome run = sweep("    axes: {grid: {parallel.tp: [4, 7, 8, 16]}}\n");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, AllOf(HasSubstr("table, tp 4"), HasSubstr("table, tp 8")));
  EXPECT_THAT(run.out, ::testing::ContainsRegex("table, tp 7 +7 ranks: TP7 +4/rank +cannot be"));
  EXPECT_THAT(run.out, HasSubstr("  table, tp 16: cannot be: tp * pp * dp = 16 ranks, but"));
  EXPECT_THAT(run.out, HasSubstr("4 points: 0 read from the store, 2 simulated"));
  const auto json = nlohmann::json::parse(
      sweep("    axes: {grid: {parallel.tp: [4, 7, 8, 16]}}\n", " --json", false).out);
  const auto& points = json.at("cases")[0].at("rows")[0].at("points");
  EXPECT_EQ(points[0].at("status"), "ok");
  EXPECT_EQ(points[1].at("status"), "infeasible");
  EXPECT_THAT(points[1].at("reason").get<std::string>(), HasSubstr("cannot be: "));
}

TEST_F(Sweeps, KeysOfOneStructThatDoNotGoTogetherAreSuchAPointToo) {
  const Outcome run = sweep_of(
      "{experiment: operator, system: dgx_h100, operator: {kind: attention_decode, batch: 4, "
      "kv_length: 512, heads: 32, kv_heads: 8, head_dim: 128}}",
      "    axes: {grid: {operator.kv_heads: [5, 8]}}\n");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, ::testing::ContainsRegex("kv_heads 5 +attention_decode +bf16 +cannot be"));
}

TEST_F(Sweeps, PointsThatCannotBeAreNotedBesideTheOneThatIsChosen) {
  const Outcome run =
      sweep("    axes: {grid: {parallel.tp: [4, 16]}}\n    choose: {minimize: step_time_s}\n");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("  table, tp 16: cannot be: "));
}

TEST_F(Sweeps, APlanCountsWhatARunFinds) {
  const std::string axes =
      "    axes: {grid: {parallel.tp: [4, 7, 8, 16], batch.micro: [1, 2, 64]}}\n"
      "    where: [parallel.tp * batch.micro <= 256, ranks <= available_ranks]\n";
  const Outcome run = sweep(axes);  // writes the files and simulates
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, AllOf(HasSubstr("excluded: 3 by parallel.tp * batch.micro <= 256"),
                             HasSubstr("excluded: 2 by ranks <= available_ranks"),
                             HasSubstr("7 points: 0 read from the store, 5 simulated"),
                             HasSubstr("2 that cannot be")));
  const std::string plan = "sweep plan " + path("sweep.yaml") + " --db ";
  const auto after = nlohmann::json::parse(orrery(plan + path("s.db") + " --json", false).out);
  const auto& exact = after.at("exact");
  EXPECT_EQ(exact.at("cross_product"), 12);
  EXPECT_EQ(exact.at("excluded").at(0).at("places"), 3);
  EXPECT_EQ(exact.at("excluded").at(1).at("places"), 2);
  EXPECT_EQ(exact.at("impossible"), 2);
  EXPECT_EQ(exact.at("done"), 5);
  EXPECT_EQ(exact.at("to_do"), 0);
  EXPECT_GT(after.at("seconds_per_point").get<double>(), 0);
  const auto before =
      nlohmann::json::parse(orrery(plan + path("none.db") + " --json --excluded 2", false).out);
  EXPECT_EQ(before.at("exact").at("to_do"), 5);
  EXPECT_EQ(before.at("excluded_places").size(), 2U);
  EXPECT_THAT(orrery(plan + path("none.db") + " --quick").out,
              HasSubstr("Estimated from 12 places"));
}

TEST_F(Sweeps, WithoutAnyPointThatCanBeTheFileIsWrong) {
  const Outcome run = sweep("    axes: {grid: {parallel.tp: [16, 32]}}\n");
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.out, HasSubstr("= 16 ranks, but 1 x"));
  EXPECT_EQ(sweep("    axes: {grid: {parallel.tp: [3, 7]}}\n").code, 2);
}

TEST_F(Sweeps, AWrongValueIsShownInItsLine) {
  const Outcome run = sweep("    axes: {grid: {precision: [bf16, bf17]}}\n");
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.out, AllOf(HasSubstr("sweep.yaml:5:37: error: "), HasSubstr("[bf16, bf17]"),
                             HasSubstr("did you mean 'bf16'?")));
}

TEST_F(Sweeps, AnEmptyAxisIsAnError) {
  const Outcome run = sweep("    axes: {grid: {parallel.tp: []}}\n");
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.out, HasSubstr("sweep.yaml:5:32: error: the axis 'parallel.tp' has no values"));
  EXPECT_EQ(sweep("    axes: {list: []}\n").code, 2);
  write("none.yaml", "sweep: none\ncases: []\n");
  EXPECT_EQ(orrery("sweep run " + path("none.yaml")).code, 2);
}

TEST_F(Sweeps, ChooseRefusesWhatNoResultHas) {
  const Outcome typo = sweep("    choose: {minimize: step_tme_s}\n");
  EXPECT_EQ(typo.code, 2);
  EXPECT_THAT(typo.out, AllOf(HasSubstr("sweep.yaml:5:24: error: unknown metric 'step_tme_s'"),
                              HasSubstr("did you mean 'step_time_s'?")));
  const Outcome limit = sweep("    choose: {at_most: {step_times: 1 s}}\n");
  EXPECT_EQ(limit.code, 2);
  EXPECT_THAT(limit.out, HasSubstr("unknown metric 'step_times'"));
  EXPECT_EQ(sweep("    choose: {minimize: batch.micro}\n").code, 0);
}

TEST_F(Sweeps, ALimitHasTheUnitOfItsMetricUnlessItSaysAnother) {
  const Outcome run = sweep("    choose: {at_most: {step_time_s: 1 GB}}\n");
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.out, HasSubstr("sweep.yaml:5:37: error: step_time_s: expected duration"));
  EXPECT_EQ(sweep("    choose: {at_most: {step_time_s: 1}}\n").code, 0);
  EXPECT_EQ(sweep("    choose: {at_least: {model_flops_utilization: 0.0001}}\n").code, 0);
}

TEST_F(Sweeps, ALimitCanBeOnAQuantile) {
  const std::string axes = "    axes: {grid: {batch.micro: [1, 64]}}\n";
  const auto json = nlohmann::json::parse(sweep(axes, " --json", false).out);
  const auto& points = json.at("cases")[0].at("rows")[0].at("points");
  // Between the mean and p90 of the larger batch: the mean keeps the limit, the quantile does not.
  const double mean = points[1].at("metrics").at("step_time_s");
  const double p90 = points[1].at("intervals").at("step_time_s").at(1);
  ASSERT_LT(mean, p90);
  const std::string limit = std::to_string(1e6 * (mean + p90) / 2) + " us";
  const auto chosen = [&](const std::string& metric) {
    return nlohmann::json::parse(sweep(axes + "    choose: {maximize: batch.micro, at_most: {" +
                                           metric + ": " + limit + "}}\n",
                                       " --json", false)
                                     .out)
        .at("cases")[0]
        .at("rows")[0]
        .at("chosen");
  };
  EXPECT_EQ(chosen("step_time_s"), points[1].at("identity"));
  EXPECT_EQ(chosen("step_time_s.p90"), points[0].at("identity"));
}

TEST_F(Sweeps, ATableShowsTheColumnsThatItIsAskedForAndWhatRowsGain) {
  // Twice as many sequences take longer, but not twice as long.
  const Outcome run = sweep(
      "    axes: {grid: {batch.micro: [4, 8]}}\n"
      "    table: {columns: [precision, step_time_s], gain: {maximize: batch.micro}}\n");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, ::testing::ContainsRegex(
                           "system +precision +step_time_s +over the first +over the one above"));
  EXPECT_THAT(run.out, ::testing::ContainsRegex("table, micro 4 .* 1x +1x"));
  EXPECT_THAT(run.out, ::testing::ContainsRegex("table, micro 8 +bf16 .* 2x +2x"));
  EXPECT_THAT(run.out, Not(HasSubstr("exposed comm")));
}

TEST_F(Sweeps, AnAxisOfRowsHasARowForEachOfItsValues) {
  const Outcome run = sweep(
      "    axes: {grid: {parallel.tp: [4, 8], batch.micro: [1, 2, 4]}}\n"
      "    choose: {maximize: batch.micro}\n    table: {rows: [parallel.tp]}\n");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, ::testing::ContainsRegex("\ntp 4 +4 ranks: TP4 +4/rank "));
  EXPECT_THAT(run.out, ::testing::ContainsRegex("\ntp 8 +8 ranks: TP8 +4/rank "));
}

TEST_F(Sweeps, AConditionOfTheCommandLineStandsBesideThoseOfTheFile) {
  const std::string axes =
      "    axes: {grid: {batch.micro: [1, 2, 4, 8]}}\n    where: [batch.micro < 8]\n";
  const Outcome run = sweep(axes, " --where 'batch.micro > 1'");
  EXPECT_THAT(run.out, AllOf(HasSubstr("2 points: 0 read from the store, 2 simulated"),
                             HasSubstr("excluded: 1 by batch.micro < 8"),
                             HasSubstr("excluded: 1 by batch.micro > 1")));
  EXPECT_THAT(sweep(axes).out, HasSubstr("3 points: 2 read from the store, 1 simulated"));
  const Outcome wrong = sweep(axes, " --where 'batch.mico > 1'");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.out, AllOf(HasSubstr("--where:1:1: error: unknown name 'batch.mico'"),
                               HasSubstr("did you mean 'batch.micro'?")));
}

TEST_F(Sweeps, OperatorsHaveColumnsAndAHintOfTheirOwn) {
  const Outcome run = sweep_of(
      "{experiment: operator, system: dgx_h100, operator: {kind: gemm, m: 64, n: 64, k: 64}}",
      "    axes: {grid: {operator.m: [64, 128]}}\n");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, ::testing::ContainsRegex(
                           "system +operator +precision +time +p10 to p90 +work +traffic +bound"));
  EXPECT_THAT(run.out, ::testing::ContainsRegex("table, m 128 +gemm +bf16 "));
  EXPECT_THAT(run.out, HasSubstr("SELECT name, time_s, bound, flops_per_s FROM v_runs"));
  EXPECT_THAT(run.out, AllOf(Not(HasSubstr("tokens/s")), Not(HasSubstr("llama_405b"))));
}

TEST_F(Sweeps, CollectivesHaveColumnsAndAHintOfTheirOwn) {
  const Outcome run = sweep_of(
      "{experiment: collective, system: dgx_h100, collective: {kind: all_reduce, bytes: 1 MiB}}",
      "    axes: {grid: {collective.bytes: [1 MiB, 1 GiB]}}\n");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, ::testing::ContainsRegex("system +collective +time +p10 to p90 +algorithm"));
  EXPECT_THAT(run.out, ::testing::ContainsRegex("table, bytes 1 GiB +all_reduce "));
  EXPECT_THAT(run.out, HasSubstr("SELECT name, time_s, algorithm, bus_bytes_per_s FROM v_runs"));
  EXPECT_THAT(run.out, Not(HasSubstr("tokens/s")));
}

constexpr const char* kGemms =
    "{experiment: operator, system: dgx_h100, operator: {kind: gemm, m: 64, n: 64, k: 64}}";
constexpr const char* kManyGemms =
    "    axes: {grid: {operator.m: [64, 128, 192, 256, 320, 384, 448, 512, 576, 640], operator.n: "
    "[64, 128, 192, 256, 320, 384, 448, 512, 576, 640], operator.k: [64, 128, 256, 512, 1024]}}\n";

TEST_F(Sweeps, AnyNumberOfWorkersPrintsTheSameBytes) {
  write("many.yaml", "sweep: many\ncases:\n  - name: table\n    base: " + std::string(kGemms) +
                         "\n" + kManyGemms);
  std::string first;
  for (const char* jobs : {"1", "2", "5"}) {
    std::filesystem::remove(path("m.db"));
    const Outcome run = orrery(
        "sweep run " + path("many.yaml") + " --json --db " + path("m.db") + " --jobs " + jobs,
        false);
    ASSERT_EQ(run.code, 0);
    if (first.empty()) first = run.out;
    EXPECT_EQ(run.out, first) << jobs;
  }
}

TEST_F(Sweeps, ProgressAsJsonIsAnObjectALine) {
  const std::string axes =
      "    axes: {grid: {batch.micro: [1, 2]}}\n    choose: {minimize: step_time_s}\n";
  sweep(axes);
  const Outcome run =
      shell("(cd " ORRERY_SOURCE_DIR " && " ORRERY_BINARY " sweep run " + path("sweep.yaml") +
            " --db " + path("p.db") + " --progress json 2>&1 >/dev/null)");
  ASSERT_EQ(run.code, 0) << run.out;
  const auto last =
      nlohmann::json::parse(run.out.substr(run.out.rfind('\n', run.out.size() - 2) + 1));
  EXPECT_EQ(last.at("event"), "end");
  EXPECT_EQ(last.at("simulated"), 2);
  EXPECT_EQ(last.at("best").at("name"), "table, micro 1");
}

TEST_F(Sweeps, RetryRunsFailedPointsThoseThatAreAskedFor) {
  const std::string axes = "    axes: {grid: {batch.micro: [1, 2, 4]}}\n";
  const Outcome first = sweep(axes + "    limits: {point_memory: 1 MB}\n");
  ASSERT_EQ(first.code, 3) << first.out;
  EXPECT_THAT(first.out, HasSubstr("the simulation took more memory than point_memory"));
  write("sweep.yaml",
        "sweep: ladder\ncases:\n  - name: table\n    base: ./small.yaml\n" + axes);  // no limit
  const std::string retry = "sweep retry " + path("sweep.yaml") + " --db " + path("s.db");
  EXPECT_EQ(orrery(retry + " --where 'batch.micro == 2 and exit_code == 6'", false).out,
            "1 failed points tried again: 1 done, 0 failed\n");
  EXPECT_EQ(orrery(retry + " --point nobody").code, 2);
  const auto failed =
      nlohmann::json::parse(orrery("sweep status " + path("s.db") + " --failed --json", false).out);
  ASSERT_EQ(failed.at("failures").size(), 2U);
  const auto& failure = failed.at("failures").at(0);
  EXPECT_EQ(failure.at("signal"), 9);
  EXPECT_EQ(failure.at("exit_code"), 6);
  EXPECT_GT(failure.at("peak_bytes"), 1'000'000);
  const std::string identity = failure.at("identity");
  EXPECT_EQ(orrery(retry + " --point " + identity.substr(0, 16), false).out,
            "1 failed points tried again: 1 done, 0 failed\n");
  const auto rest = nlohmann::json::parse(orrery(retry + " --json", false).out);
  EXPECT_EQ(rest.at("retried"), 1);
  EXPECT_EQ(rest.at("done"), 1);
  EXPECT_EQ(orrery(retry).code, 0) << "there is nothing to do";
  EXPECT_EQ(shell("sqlite3 " + path("s.db") + " 'SELECT count(*) FROM attempts'").out, "6\n")
      << "the failures stay beside what came of them";
}

TEST_F(Sweeps, AKilledSweepGoesOnWhereItWas) {
  write("many.yaml", "sweep: many\ncases:\n  - name: table\n    base: " + std::string(kGemms) +
                         "\n" + kManyGemms);
  const std::string run = "sweep run " + path("many.yaml") + " --json --db ";
  const std::string whole = orrery(run + path("whole.db"), false).out;
  for (const char* time : {"0.1", "0.2", "0.25", "0.3", "0.4"}) {
    shell("cd " ORRERY_SOURCE_DIR " && timeout -s KILL " + std::string(time) +
          " " ORRERY_BINARY " " + run + path("whole2.db"));
    if (!std::filesystem::exists(path("whole2.db"))) continue;
    EXPECT_EQ(shell("sqlite3 " + path("whole2.db") + " 'PRAGMA integrity_check'").out, "ok\n");
  }
  // Workers die with the sweep, and a killed one costs its point until the next run.
  shell("cd " ORRERY_SOURCE_DIR " && (" ORRERY_BINARY " " + run + path("whole2.db") +
        " & sleep 0.2; kill -KILL $(ps -o pid= --ppid $!); wait)");
  EXPECT_EQ(shell("sqlite3 " + path("whole2.db") +
                  " \"SELECT count(*) FROM points WHERE (status = "
                  "'failed') <> (exit_code = 6)\"")
                .out,
            "0\n");
  const Outcome last = orrery(run + path("whole2.db"), false);
  EXPECT_EQ(last.code, 0);
  const auto points = [](const std::string& text) {
    return nlohmann::json::parse(text).at("cases").dump();
  };
  EXPECT_EQ(points(last.out), points(whole));
  EXPECT_EQ(shell("sqlite3 " + path("whole2.db") +
                  " \"SELECT count(*) FROM v_runs WHERE status = "
                  "'ok' AND time_s > 0\"")
                .out,
            "500\n");
}

}  // namespace
}  // namespace sweep_test
