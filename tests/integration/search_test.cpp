// SPDX-License-Identifier: Apache-2.0
// Searches as a user runs them: killed, resumed, asked and told.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/integration/program.h"

namespace search_test {
namespace {

using integration::orrery;
using integration::Outcome;
using integration::shell;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Searches : public integration::InFolder {
 protected:
  void SetUp() override {
    InFolder::SetUp();
    write("search.yaml",
          "sweep: gemms\n"
          "objectives: [{minimize: time_s}, {maximize: flops_per_s}]\n"
          "search: {population: 16, evaluations: 96, seed: 3}\n"
          "cases:\n  - name: a\n"
          "    base: {experiment: operator, system: dgx_h100, operator: {kind: gemm, m: 64, n: 64, "
          "k: 64}}\n"
          "    axes:\n      grid:\n"
          "        operator.m: {range: {from: 64, to: 2048, step: 64}}\n"
          "        operator.n: {range: {from: 64, to: 2048, step: 64}}\n"
          "    where: [operator.m * operator.n <= 2097152]\n");
  }

  Outcome search(const std::string& db, const std::string& options = "", bool both = false) const {
    return orrery("sweep search " + path("search.yaml") + " --db " + path(db) + options, both);
  }
  /// Results of a store, in order of their identity.
  std::string results(const std::string& db) const {
    return shell("sqlite3 " + path(db) + " 'SELECT identity, digest FROM points ORDER BY 1'").out;
  }
  /// What a search found, whatever the name of its store.
  static std::string found(const Outcome& outcome) {
    auto json = nlohmann::json::parse(outcome.out);
    json.erase("store");
    return json.dump();
  }
};

TEST_F(Searches, FindTheSameWithAnyNumberOfWorkersAndFromTheStore) {
  const Outcome one = search("one.db", " --json --jobs 1"),
                three = search("three.db", " --json --jobs 3");
  EXPECT_EQ(one.code, 0);
  EXPECT_EQ(found(one), found(three));
  EXPECT_EQ(results("one.db"), results("three.db"));
  EXPECT_EQ(search("one.db", " --json").out, one.out);
  EXPECT_THAT(
      search("one.db", " --json", true).out,
      HasSubstr("96 points of 1,024 places evaluated: 96 read from the store, 0 simulated"));
}

TEST_F(Searches, ThatWereKilledEndWithTheStoreOfAnUndisturbedOne) {
  const Outcome whole = search("whole.db", " --json");
  for (const char* time : {"0.1", "0.15", "0.2", "0.3", "0.4"})
    shell("cd " ORRERY_SOURCE_DIR " && timeout -s KILL " + std::string(time) +
          " " ORRERY_BINARY " sweep search " + path("search.yaml") + " --db " + path("killed.db"));
  EXPECT_EQ(found(search("killed.db", " --json")), found(whole));
  EXPECT_EQ(results("killed.db"), results("whole.db"));
}

TEST_F(Searches, RunNothingAgainOfWhatASweepHasRun) {
  EXPECT_EQ(orrery("sweep run " + path("search.yaml") + " --db " + path("all.db")).code, 0);
  EXPECT_THAT(search("all.db", "", true).out, HasSubstr("96 read from the store, 0 simulated"));
  EXPECT_THAT(search("all.db", " --seed 9 --evaluations 40", true).out,
              HasSubstr("40 read from the store, 0 simulated"));
}

TEST_F(Searches, BeginWithTheBestOfTheStoreAndAreResumedLikeThat) {
  search("warm.db");
  shell("cp " + path("warm.db") + " " + path("killed.db"));
  const auto objectives = [](const Outcome& outcome) {
    std::set<std::string> found;
    const auto json = nlohmann::json::parse(outcome.out);
    for (const auto& point : json.at("front")) found.insert(point.at("objectives").dump());
    return found;
  };
  const auto before = objectives(search("warm.db", " --json"));
  const Outcome whole = search("warm.db", " --json --seed 4");
  EXPECT_EQ(nlohmann::json::parse(whole.out).at("begun_from"),
            std::min<std::size_t>(8, before.size()));
  for (const char* time : {"0.1", "0.15", "0.2", "0.3"})
    shell("cd " ORRERY_SOURCE_DIR " && timeout -s KILL " + std::string(time) +
          " " ORRERY_BINARY " sweep search " + path("search.yaml") + " --seed 4 --db " +
          path("killed.db"));
  EXPECT_EQ(found(search("killed.db", " --json --seed 4")), found(whole));
  EXPECT_EQ(results("killed.db"), results("warm.db"));
  // The same seed in an empty store goes another way.
  EXPECT_NE(found(search("cold.db", " --json --seed 4")), found(whole));
}

TEST_F(Searches, GoOnWhereMoreEvaluationsAreAskedFor) {
  search("more.db", " --evaluations 48");
  EXPECT_THAT(search("more.db", "", true).out, HasSubstr("48 read from the store, 48 simulated"));
}

TEST_F(Searches, AreDoneByOthersWhoAskAndTell) {
  const std::string ask = "sweep ask " + path("search.yaml") + " --db " + path("asked.db");
  const std::string tell = "sweep tell " + path("search.yaml") + " --db " + path("asked.db");
  int rounds = 0;
  for (; rounds < 20; ++rounds) {
    const Outcome asked = orrery(ask, false);
    EXPECT_EQ(asked.code, 0);
    if (asked.out.empty()) break;
    // One line with a list of them, which are simulated side by side.
    std::string list = asked.out;
    for (char& c : list) c = c == '\n' ? ',' : c;
    list.back() = ']';
    write("asked.json", "[" + list + "\n");
    EXPECT_EQ(orrery(tell + " < " + path("asked.json")).code, 0);
  }
  EXPECT_THAT(orrery(ask).out, HasSubstr("the search is at its end: 96 points evaluated"));
  EXPECT_EQ(rounds, 6) << "generations of 16";
  search("own.db");
  EXPECT_EQ(results("asked.db"), results("own.db"));
}

TEST_F(Searches, GoByWhatOthersFoundInTheirOwnWay) {
  const std::string store = path("search.yaml") + " --db " + path("told.db");
  const auto line = [&] {
    return nlohmann::json::parse(orrery("sweep ask " + store + " --count 1", false).out);
  };
  auto first = line();
  first["objectives"] = {{"time_s", 1e-5}, {"flops_per_s", 1e12}};
  write("line.json", first.dump() + "\n");
  const Outcome told = orrery("sweep tell " + store + " < " + path("line.json"), false);
  EXPECT_EQ(nlohmann::json::parse(told.out).at("status"), "told");
  EXPECT_NE(line().at("point"), first.at("point"));
  // It is no result of ours: a search simulates the point all the same.
  EXPECT_THAT(search("told.db", "", true).out, HasSubstr("0 read from the store, 96 simulated"));
  first["objectives"]["time_s"] = 2e-5;
  write("line.json", first.dump() + "\n");
  EXPECT_EQ(orrery("sweep tell " + store + " < " + path("line.json")).code, 4) << "two results";
}

TEST_F(Searches, TellOfPointsBetweenThoseOfTheSweep) {
  write("lines.json",
        "{\"parameters\": {\"operator.m\": 100}}\n"
        "[{\"parameters\": {\"operator.m\": 4096, \"operator.n\": 4096}},\n"
        " {\"parameters\": {\"operator.m\": 101}}]\n");
  shell("tr '\\n' ' ' < " + path("lines.json") + " | sed 's/} \\[/}\\n[/' > " + path("two.json"));
  const Outcome told = orrery(
      "sweep tell " + path("search.yaml") + " --db " + path("t.db") + " < " + path("two.json"),
      false);
  std::vector<nlohmann::json> answers;
  std::istringstream lines(told.out);
  for (std::string line; std::getline(lines, line);) answers.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(answers.size(), 3U) << told.out;
  EXPECT_GT(answers[0].at("objectives").at("time_s").get<double>(), 0);
  EXPECT_EQ(answers[0].at("violation"), 0);
  EXPECT_EQ(answers[1].at("status"), "excluded");
  EXPECT_EQ(answers[1].at("reason"), "operator.m * operator.n <= 2097152");
  EXPECT_EQ(answers[2].at("status"), "ok");
}

TEST_F(Searches, RefuseAWrongLineAtItsPlaceAndDoNothingOfIt) {
  const auto refused = [&](const std::string& text) {
    write("line.json", "{\"parameters\": {}}\n" + text + "\n");
    const Outcome told = orrery("sweep tell " + path("search.yaml") + " --db " + path("t.db") +
                                " < " + path("line.json"));
    EXPECT_EQ(told.code, 2) << told.out;
    return told.out;
  };
  EXPECT_THAT(refused("{\"parameters\": {\"operator.mm\": 5}}"),
              AllOf(HasSubstr("standard input:2:17: error: unknown key 'mm'"), HasSubstr("^~")));
  EXPECT_THAT(refused("{\"parametrs\": {}}"),
              HasSubstr("standard input:2:2: error: unknown key 'parametrs' in point; did you mean "
                        "'parameters'?"));
  EXPECT_THAT(refused("{\"parameters\": {}, \"case\": \"b\"}"), HasSubstr("no case is 'b'"));
  EXPECT_THAT(refused("{\"parameters\": {}, \"objectives\": {\"time\": 1}}"),
              HasSubstr("did you mean 'time_s'?"));
  EXPECT_THAT(refused("{\"parameters\": {\"operator.m\": 65}, \"point\": \"abc\"}"),
              HasSubstr("these parameters are those of another point"));
  EXPECT_THAT(refused("{\"parameters\": "), HasSubstr("standard input:2:"));
  EXPECT_THAT(refused("[{\"parameters\": {\"operator.k\": 77}}, {\"parameters\": 5}]"),
              HasSubstr("expected a map"));
  EXPECT_EQ(shell("sqlite3 " + path("t.db") + " 'SELECT count(*) FROM points'").out, "1\n");
}

TEST_F(Searches, PromoteTheBetterHalfToTheNextFidelity) {
  const Outcome run = orrery(
      "sweep search " + path("search.yaml") + " --db " + path("f.db") + " --evaluations 16 --json",
      false);
  EXPECT_EQ(run.code, 0);
  shell("sed -i 's/seed: 3/seed: 3, fidelity: [closed, tile]/' " + path("search.yaml"));
  const auto json = nlohmann::json::parse(search("f2.db", " --evaluations 24 --json").out);
  EXPECT_EQ(json.at("levels").at(0).at("fidelity"), "closed");
  EXPECT_EQ(json.at("levels").at(0).at("points"), 48);
  EXPECT_EQ(json.at("levels").at(1).at("points"), 24);
  for (const auto& point : json.at("front"))
    EXPECT_EQ(point.at("parameters").at("fidelity"), "tile");
}

TEST_F(Searches, OfASweepWithoutObjectivesAreRefused) {
  shell("sed -i '/^objectives/d' " + path("search.yaml"));
  const Outcome run = search("none.db", "", true);
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.out, HasSubstr("search.yaml:1:1: error: a search needs objectives"));
  EXPECT_FALSE(std::filesystem::exists(path("none.db")));
}

}  // namespace
}  // namespace search_test
