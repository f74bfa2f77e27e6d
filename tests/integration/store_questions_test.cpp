// SPDX-License-Identifier: Apache-2.0
// Questions to stores, asked of the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <vector>

#include "sim/store/result_store.h"
#include "sim/store/schema.h"
#include "tests/integration/program.h"

namespace store_questions_test {
namespace {

using namespace integration;
using nlohmann::json;
using testing::HasSubstr;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class StoreQuestions : public InFolder {
 protected:
  /// A sweep of decode steps, whose store is `decode.db`.
  void SetUp() override {
    InFolder::SetUp();
    sweep_ =
        write("decode.yaml",
              "sweep: decode\ncases:\n  - name: steps\n    base: {experiment: inference, system: "
              "dgx_h100, model: llama_3_1_8b, phase: decode, kv_length: 1024, batch: {micro: 1}}\n"
              "    axes: {grid: {batch.micro: [1, 4, 16, 64], kv_length: [1024, 4096], "
              "parallel.tp: [1, 2]}}\n");
    store_ = path("decode.db");
    const Outcome run = integration::orrery("sweep run " + sweep_ + " --db " + store_);
    ASSERT_EQ(run.code, 0) << run.out;
  }
  json ask(const std::string& question) const {
    const Outcome answer = integration::orrery(question + " --json", false);
    EXPECT_EQ(answer.code, 0) << question << answer.out;
    return json::parse(answer.out);
  }

  std::string sweep_, store_;
};

TEST_F(StoreQuestions, NoNumberIsPrintedThatWasChangedInTheFile) {
  const std::string front = "pareto " + store_ + " --minimize step_time_s --maximize tokens_per_s";
  const std::string best = "best " + store_ + " --minimize step_time_s --top 1";
  const std::string effects = "sensitivity " + store_ + " step_time_s";
  for (const std::string& question : {front, best, effects})
    ASSERT_EQ(integration::orrery(question).code, 0);
  // One that becomes the best, and one that was and is no more.
  for (const char* change : {"step_time_s = 1e-9", "step_time_s = 1e9, tokens_per_s = 0"}) {
    std::filesystem::copy_file(store_, path("good.db"),
                               std::filesystem::copy_options::overwrite_existing);
    ASSERT_EQ(shell("sqlite3 " + store_ + " 'UPDATE metrics_inference SET " + change +
                    " WHERE step_time_s = (SELECT min(step_time_s) FROM metrics_inference)'")
                  .code,
              0);
    for (const std::string& question : {front, best, effects}) {
      EXPECT_EQ(integration::orrery(question, false).out, "") << question << change;
      const Outcome refused = integration::orrery(question);
      EXPECT_EQ(refused.code, 6);
      EXPECT_THAT(refused.out, HasSubstr("does not match its digest"));
    }
    std::filesystem::copy_file(path("good.db"), store_,
                               std::filesystem::copy_options::overwrite_existing);
  }
}

TEST_F(StoreQuestions, TheFrontIsThatOfAllResults) {
  const json answer =
      ask("pareto " + store_ +
          " --maximize tokens_per_s_per_user --maximize tokens_per_s_per_accelerator");
  const ::orrery::ResultStore store = ::orrery::ResultStore::open_read_only(store_);
  std::vector<std::string> front;
  const auto records = store.all();
  for (const auto& a : records) {
    bool dominated = false;
    for (const auto& b : records) {
      const double user = b.find("tokens_per_s_per_user")->value -
                          a.find("tokens_per_s_per_user")->value,
                   device = b.find("tokens_per_s_per_accelerator")->value -
                            a.find("tokens_per_s_per_accelerator")->value;
      dominated = dominated || (user >= 0 && device >= 0 && user + device > 0);
    }
    if (!dominated) front.push_back(a.identity);
  }
  std::vector<std::string> answered;
  for (const json& point : answer["points"]) answered.push_back(point["identity"]);
  EXPECT_THAT(answered, testing::UnorderedElementsAreArray(front));
  EXPECT_GT(front.size(), 2U);
  EXPECT_EQ(answer["considered"], 16);
  EXPECT_EQ(answer["points"][0]["axes"].size(), answer["axes"].size());
  const Outcome by = integration::orrery("pareto " + store_ +
                                         " --maximize tokens_per_s_per_user --maximize "
                                         "tokens_per_s_per_accelerator --by kv_length --csv");
  EXPECT_GE(lines_of(by.out).size(), answered.size() + 1);
}

TEST_F(StoreQuestions, AFrontOfOneObjectiveIsItsBest) {
  const json front = ask("pareto " + store_ + " --minimize step_time_s");
  const json best = ask("best " + store_ + " --minimize step_time_s --top 1");
  ASSERT_GE(front["points"].size(), 1U);
  EXPECT_EQ(front["points"][0]["metrics"]["step_time_s"],
            best["points"][0]["metrics"]["step_time_s"]);
}

TEST_F(StoreQuestions, TheBestAreFirstAndConditionsHold) {
  const json answer = ask("best " + store_ +
                          " --minimize step_time_s --top 3 --where 'batch.micro >= 4 and "
                          "step_time_s < 1 s and kv_length == 4096'");
  ASSERT_EQ(answer["points"].size(), 3U);
  EXPECT_EQ(answer["considered"], 6);
  double last = 0;
  for (const json& point : answer["points"]) {
    EXPECT_GE(point["metrics"]["step_time_s"], last);
    last = point["metrics"]["step_time_s"];
    EXPECT_LE(point["intervals"]["step_time_s"][0], last);
  }
  const Outcome unit = integration::orrery("best " + store_ +
                                           " --minimize step_time_s --where 'step_time_s < 1 GB'");
  EXPECT_EQ(unit.code, 2);
  EXPECT_THAT(unit.out,
              HasSubstr("--where:1:15: error: a duration and a data size cannot be compared"));
  EXPECT_THAT(unit.out, HasSubstr("              ^"));
  const auto considered = [&](const std::string& where) {
    return ask("best " + store_ + " --minimize step_time_s --where '" + where + "'")["considered"];
  };
  const std::string limit =
      std::to_string(last * 1.5);  // a number has the unit of the metric's name
  EXPECT_EQ(considered("step_time_s < " + limit), considered("step_time_s < " + limit + " s"));
  const Outcome name = integration::orrery("best " + store_ + " --minimize step_tme_s");
  EXPECT_EQ(name.code, 2);
  EXPECT_THAT(name.out, HasSubstr("did you mean 'step_time_s'?"));
}

TEST_F(StoreQuestions, AtP90PointsAreInTheOrderOfTheUnfavourableEnd) {
  const json slow = ask("best " + store_ + " --minimize step_time_s --at p90 --top 100");
  const json fast = ask("best " + store_ + " --maximize tokens_per_s --at p90 --top 100");
  EXPECT_EQ(slow["at"], "p90");
  double last = 0;
  for (const json& point : slow["points"]) {
    EXPECT_GE(point["intervals"]["step_time_s"][1], last);
    last = point["intervals"]["step_time_s"][1];
  }
  last = 1e99;
  for (const json& point : fast["points"]) {
    EXPECT_LE(point["intervals"]["tokens_per_s"][0], last);
    last = point["intervals"]["tokens_per_s"][0];
    EXPECT_EQ(point["rests_on"], "measurements");
  }
}

TEST_F(StoreQuestions, RowsSayWhatTheyRestOnWhereDevicesDiffer) {
  const std::string store = path("devices.db");
  const std::string sweep =
      write("devices.yaml",
            "sweep: devices\ncases:\n  - name: decode\n    base:\n      experiment: inference\n"
            "      model: llama_3_1_8b\n      phase: decode\n      kv_length: 1024\n"
            "      batch: {micro: 1}\n    axes: {grid: {system: [dgx_h100, mi300x_platform]}}\n");
  ASSERT_EQ(integration::orrery("sweep run " + sweep + " --db " + store).code, 0);
  const Outcome table = integration::orrery("best " + store + " --minimize step_time_s");
  EXPECT_THAT(table.out, HasSubstr("rests on"));
  EXPECT_THAT(table.out, HasSubstr("measurements"));
  EXPECT_THAT(table.out, HasSubstr("priors"));
  const json answer = ask("best " + store + " --minimize step_time_s");
  for (const json& point : answer["points"])  // what nobody measured has an interval too
    EXPECT_LT(point["intervals"]["step_time_s"][0], point["intervals"]["step_time_s"][1]);
}

TEST_F(StoreQuestions, PartsOfADifferenceAddUpToIt) {
  const json all = ask("best " + store_ + " --minimize step_time_s --top 100");
  const std::string first = all["points"].front()["identity"],
                    last = all["points"].back()["identity"];
  const json answer = ask("compare " + store_ + " " + first.substr(0, 16) + " " + last);
  ASSERT_EQ(answer["attribution"].size(), 2U);
  for (const json& attribution : answer["attribution"]) {
    std::int64_t a = 0, b = 0, difference = 0;
    for (const json& part : attribution["parts"]) {
      a += part["a_ps"].get<std::int64_t>();
      b += part["b_ps"].get<std::int64_t>();
      difference += part["difference_ps"].get<std::int64_t>();
    }
    EXPECT_EQ(a, attribution["total"]["a_ps"]);
    EXPECT_EQ(b, attribution["total"]["b_ps"]);
    EXPECT_EQ(difference, attribution["total"]["difference_ps"]);
    EXPECT_GT(difference, 0);
    EXPECT_GT(attribution["parts"].size(), 2U);
  }
  // That of the breakdown needs no rest beyond rounding.
  for (const json& part : answer["attribution"][0]["parts"]) {
    if (part["name"] == "in no part") {
      EXPECT_LE(std::abs(part["a_ps"].get<int>()), 10);
    }
  }
  EXPECT_EQ(answer["configuration"].size(), 3U);
  const json same = ask("compare " + store_ + " " + first + " " + first);
  EXPECT_TRUE(same["configuration"].empty());
  for (const json& metric : same["metrics"]) EXPECT_EQ(metric["difference"], 0);
  const Outcome many = integration::orrery("compare " + store_ + " steps " + first);
  EXPECT_EQ(many.code, 2);
  EXPECT_THAT(many.out, HasSubstr("'steps' is not one point:"));
}

TEST_F(StoreQuestions, SensitivityRanksWhatTheSweepVaried) {
  const json answer = ask("sensitivity " + store_ + " step_time_s");
  ASSERT_EQ(answer["inputs"].size(), 3U);
  double last = 1e9;
  for (const json& input : answer["inputs"]) {
    EXPECT_LE(input["swing"], last);
    last = input["swing"];
    EXPECT_EQ(input["groups"].get<int>() * static_cast<int>(input["levels"].size()), 16);
    double sum = 0;
    for (const json& level : input["levels"]) sum += level["effect"].get<double>();
    EXPECT_NEAR(sum, 0, 1e-12);
  }
}

TEST_F(StoreQuestions, SensitivityOfAnExperimentScalesEveryNumber) {
  const std::string file = write("gemm.yaml",
                                 "experiment: operator\nsystem: dgx_h100\noperator: {kind: "
                                 "copy_host_to_device, bytes: 1 GB}\n");
  const json answer = ask("sensitivity " + file + " time_s --by 10% --jobs 2");
  for (const json& input : answer["inputs"]) {
    if (input["path"] != "operator.bytes") continue;
    EXPECT_NEAR(input["more"]["elasticity"].get<double>(), 1, 0.05);
    EXPECT_NEAR(input["less"]["elasticity"].get<double>(), 1, 0.05);
    EXPECT_NEAR(input["more"]["value"].get<double>(), 1.1e9, 1);
  }
  const std::string first = answer["inputs"][0]["path"].get<std::string>() + " " +
                            answer["inputs"][1]["path"].get<std::string>();
  EXPECT_THAT(first, HasSubstr("operator.")) << "of a long copy time goes with what is copied";
  EXPECT_THAT(first, HasSubstr("host_link.bandwidth")) << "and against how fast";
  const json alone = ask("sensitivity " + file + " time_s --jobs 1");
  EXPECT_EQ(alone, answer) << "the same for any number of processes";
}

TEST_F(StoreQuestions, ExportsAreTheSameBytesWhateverTheRun) {
  const std::string other = path("other.db");
  ASSERT_EQ(integration::orrery("sweep run " + sweep_ + " --jobs 3 --db " + other).code, 0);
  for (const char* form : {" --csv", " --jsonl", " --json"}) {
    const Outcome a = integration::orrery("export " + store_ + form, false);
    EXPECT_EQ(a.code, 0);
    EXPECT_EQ(a.out, integration::orrery("export " + other + form, false).out) << form;
  }
  const std::vector<std::string> rows =
      lines_of(integration::orrery("export " + store_ + " --csv", false).out);
  ASSERT_EQ(rows.size(), 17U);
  EXPECT_THAT(rows[0],
              HasSubstr("identity,experiment,name,status,engine_version,reason,batch.micro"));
  EXPECT_TRUE(std::is_sorted(rows.begin() + 1, rows.end()));
  const auto lines = lines_of(
      integration::orrery(
          "export " + store_ + " --jsonl --where 'batch.micro == 4 and parallel.tp == 2'", false)
          .out);
  ASSERT_EQ(lines.size(), 2U);
  for (const std::string& line : lines) EXPECT_EQ(json::parse(line)["axes"]["batch.micro"], "4");
}

TEST_F(StoreQuestions, APointIsRepeatedFromItsFile) {
  const json best = ask("best " + store_ + " --minimize step_time_s --top 1");
  const std::string identity = best["points"][0]["identity"];
  const std::string file = path("again.yaml");
  const Outcome written = integration::orrery("export " + store_ + " --reproduce " +
                                              identity.substr(0, 12) + " -o " + file);
  EXPECT_EQ(written.code, 0) << written.out;
  const std::string again = path("again.db");
  ASSERT_EQ(integration::orrery("run " + file + " --db " + again).code, 0);
  const auto stored = ::orrery::ResultStore::open_read_only(store_).find(identity);
  auto repeated = ::orrery::ResultStore::open_read_only(again).find(identity);
  ASSERT_TRUE(repeated.has_value()) << "another point";
  EXPECT_EQ(to_json(*repeated)["metrics"], to_json(*stored)["metrics"]);
  EXPECT_EQ(to_json(*repeated)["intervals"], to_json(*stored)["intervals"]);
  // Byte for byte: saving one over the other is no contradiction.
  ::orrery::ResultStore both = ::orrery::ResultStore::open(again);
  EXPECT_EQ(both.save(*stored, {"2026-01-01", 0, "here"}), ::orrery::SaveOutcome::kAlreadyThere);
}

TEST_F(StoreQuestions, StatusCountsAndGcDropsWhatItIsAskedTo) {
  {
    ::orrery::ResultStore store = ::orrery::ResultStore::open(store_);
    ::orrery::RunRecord failed = store.all().front();
    failed.identity = std::string(64, 'f');
    failed.status = ::orrery::RunStatus::kFailed;
    failed.reason = "the simulation was ended by Killed";
    ::orrery::RunTimes times = {"2026-01-01", 0.5, "here", 6, 9};
    times.stderr_tail = "out of everything";
    store.save(failed, times);
    auto batch = store.begin();
    for (const char digit : {'d', 'e'}) {
      ::orrery::RunRecord older = store.all().front();
      older.identity = std::string(64, digit);
      batch.save(::orrery::StoredPoint{older, {{"2026-01-01", 0.5, "here"}}, "1"});
    }
    batch.commit();
  }
  const json status = ask("sweep status " + store_ + " --failed");
  EXPECT_EQ(status["points"], 19);
  EXPECT_EQ(status["reasons"][0]["points"], 1);
  EXPECT_EQ(status["failures"][0]["signal"], 9);
  EXPECT_EQ(status["failures"][0]["stderr"], "out of everything");
  const json of_sweep = ask("sweep status " + sweep_ + " --db " + store_);
  EXPECT_EQ(of_sweep["sweep"]["states"]["done"], 16);
  EXPECT_EQ(ask("sweep status " + sweep_ + " --db " + path("none.db"))["sweep"]["states"]["to do"],
            16);
  // Others are not mixed with those of the newest engine, and failures are no results.
  const json best = ask("best " + store_ + " --minimize step_time_s --top 100");
  EXPECT_EQ(best["points"].size(), 16U);
  const std::string asked = "sweep gc " + store_ + " --failures --older-engines";
  const json would = ask(asked);
  EXPECT_FALSE(would["done"]);
  EXPECT_EQ(ask("sweep status " + store_)["points"], 19) << "only said";
  const json done = ask(asked + " --yes");
  EXPECT_TRUE(done["done"]);
  EXPECT_EQ(done["failures"], 1);
  EXPECT_EQ(done["older_results"], 2);
  EXPECT_EQ(ask("sweep status " + store_)["points"], 16);
  ::orrery::ResultStore::open_read_only(store_).verify();
}

TEST_F(StoreQuestions, AStoreOfAnotherVersionIsRefusedWithWhatToDo) {
  const std::string other = path("other.db");
  std::filesystem::copy_file(store_, other);
  const auto set_version = [&](std::int64_t version) {
    ::orrery::Database(other, ::orrery::Database::Mode::kWrite)
        .execute(("PRAGMA user_version = " + std::to_string(version)).c_str());
  };
  for (const int step : {-1, 1}) {
    set_version(::orrery::kStoreVersion + step);
    for (const std::string& command :
         {"best " + other + " --minimize step_time_s", "sweep gc " + other + " --yes",
          "sweep status " + other, "sweep run " + sweep_ + " --db " + other}) {
      const Outcome refused = integration::orrery(command);
      EXPECT_EQ(refused.code, 2) << command;
      EXPECT_THAT(refused.out,
                  HasSubstr(step < 0 ? "was written by an older version (store version "
                                     : "was written by a newer version"));
      EXPECT_THAT(refused.out,
                  HasSubstr(step < 0 ? "choose another file and simulate its points again"
                                     : "use that version to open it"));
    }
  }
  set_version(::orrery::kStoreVersion);
  EXPECT_EQ(ask("sweep status " + other)["points"], 16) << "it was left as it is";
}

TEST_F(StoreQuestions, ReadersNeverDisturbASweepThatWrites) {
  std::string values;
  for (int m = 1; m <= 60; ++m) values += (m > 1 ? ", " : "") + std::to_string(64 * m);
  const std::string sweep =
      write("many.yaml",
            "sweep: many\ncases:\n  - name: a\n    base: {experiment: operator, system: dgx_h100, "
            "operator: "
            "{kind: gemm, m: 64, n: 64, k: 64}}\n    axes: {grid: {operator.m: [" +
                values + "], operator.n: [" + values + "]}}\n");
  const std::string store = path("many.db");
  std::atomic<bool> writes{true};
  std::atomic<int> asked{0};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&, reader] {
      const char* questions[] = {"sweep status ", "best --minimize time_s ",
                                 "pareto --minimize time_s --maximize flops_per_s "};
      while (writes) {
        const Outcome answer = integration::orrery(std::string(questions[reader]) + store);
        const bool early = answer.code == 2;  // no store, or no result with such a metric yet
        EXPECT_TRUE(answer.code == 0 || early) << answer.out;
        EXPECT_THAT(answer.out, testing::Not(HasSubstr("locked")));
        if (answer.code == 0) ++asked;
      }
    });
  }
  const Outcome run = integration::orrery("sweep run " + sweep + " --db " + store);
  writes = false;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("3600 points: 0 read from the store, 3600 simulated"));
  EXPECT_THAT(run.out, testing::Not(HasSubstr("waiting")));
  EXPECT_EQ(::orrery::ResultStore::open_read_only(store).database()->integer(
                "SELECT count(*) FROM points WHERE status = 'ok'"),
            3600);
  EXPECT_GT(asked, 0) << "nobody read while it was written to";
}

}  // namespace
}  // namespace store_questions_test
