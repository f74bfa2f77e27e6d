// SPDX-License-Identifier: Apache-2.0
// Files beside the configuration that are not as documented: told with file, line and column, with
// exit code 2, and nothing of files that are none of ours.
#include <gmock/gmock.h>
#include <sqlite3.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "tests/integration/program.h"

namespace bad_files_test {
namespace {

using integration::orrery;
using integration::Outcome;
using integration::shell;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kServing =
    "experiment: serving\nmodel: llama_3_1_8b\nserving:\n"
    "  workload: {WORKLOAD}\n"
    "  fleet: [{name: a, system: dgx_h100, engine: {kind: vllm}}]\n";
constexpr const char* kSweep =
    "sweep: small\ncases:\n  - name: GEMM\n    base: {experiment: operator, system: dgx_h100, "
    "operator: {kind: gemm, m: 64, n: 64, k: 64}}\n";
constexpr const char* kReplay =
    "experiment: replay\nsystem: dgx_h100\ngraph: {path: rank}\ndurations: recorded\n";

/// A text that a file has, and what is said of it behind the file's name.
struct Bad {
  std::string text, says;
};

class BadFiles : public integration::InFolder {
 protected:
  std::string serving(const std::string& workload, const std::string& name = "serving.yaml") const {
    std::string text = kServing;
    return write(name, text.replace(text.find("WORKLOAD"), 8, workload));
  }
  std::string sweep(const std::string& more, const std::string& name = "sweep.yaml") const {
    return write(name, kSweep + more);
  }

  /// Each text in a file of that name is refused by a command.
  void refuse(const std::string& command, const std::string& name, const std::vector<Bad>& all) {
    for (const Bad& bad : all) {
      write(name, bad.text);
      const Outcome run = orrery(command);
      EXPECT_EQ(run.code, 2) << bad.text << "\n" << run.out;
      EXPECT_THAT(run.out, AllOf(HasSubstr(path(name) + ":"), HasSubstr(bad.says))) << bad.text;
    }
  }
};

TEST_F(BadFiles, RequestTracesHaveTimesOfADayAndWholeTokens) {
  const std::string run = "run " + serving("trace: trace.csv");
  const std::string head = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  refuse(run, "trace.csv",
         {{head + "2026-01-05 25:00:00.0,5,1\n", ":2:1: error: expected a time"},
          {head + "2026-01-05 09:61:00.0,5,1\n", ":2:1: error: expected a time"},
          {head + "2026-01-05 09:00:61.5,5,1\n", ":2:1: error: expected a time"},
          {head + "2026-01-05x09:00:00.0,5,1\n", ":2:1: error: expected a time"},
          {head + "2026-01-05 09:00:00.0,1e300,1\n", ":2:23: error: expected a number of tokens"},
          {head + "2026-01-05 09:00:00.0,3.5,1\n", ":2:23: error: expected a number of tokens"},
          {"TIMESTAMP,Tokens\n", ":1:1: error: no column 'ContextTokens'"},
          {"Timestamp,Request tokens,Response tokens\n1e300,5,1\n", ":2:1: error: expected a time"},
          {"Timestamp,Request tokens,Response tokens\n-3,5,1\n", ":2:1: error: expected a time"},
          {"", ":1:1: error: this is a request trace of no form that is known"}});
}

TEST_F(BadFiles, RequestTracesInLinesSayWhichFieldIsWrong) {
  const auto line = [](const std::string& time, const std::string& tokens, const std::string& ids) {
    return "{\"timestamp\": " + time + ", \"input_length\": " + tokens +
           ", \"output_length\": 3, \"hash_ids\": " + ids + "}\n";
  };
  refuse("run " + serving("trace: trace.jsonl"), "trace.jsonl",
         {{line("1e300", "5", "[]"), ":1:1: error: 'timestamp' is no time"},
          {line("-5", "5", "[]"), ":1:1: error: 'timestamp' is no time"},
          {line("\"x\"", "5", "[]"), ":1:1: error: 'timestamp' is no number"},
          {line("NaN", "5", "[]"), ":1:15: error: not valid JSON"},
          {line("1e999", "5", "[]"), ":1:15: error: the number 1e999 is too large"},
          {line("1", "0.5", "[]"), ":1:1: error: 'input_length' is no number of tokens"},
          {line("1", "600", "3"), ":1:1: error: 'hash_ids' is no list"},
          {line("1", "5", "[]") + "{\"hash_ids\": []}\n", ":2:1: error: no 'timestamp'"}});
}

TEST_F(BadFiles, ChakraNodesHaveIdsAndTimes) {
  write("replay.yaml", kReplay);
  const auto nodes = [](const std::string& keys) {
    return "{\"workload_graph\": [\n  {\"Name\": \"gemm\", \"NodeType\": 4, " + keys + "}\n]}\n";
  };
  refuse(
      "run " + path("replay.yaml"), "rank.0.json",
      {{nodes("\"runtime\": 5"), ":2:3: error: node 0 'gemm' has no Id"},
       {nodes("\"Id\": \"one\""), ":2:3: error: node 0 'gemm' has an Id that is no whole number"},
       {nodes("\"Id\": -1"), "has an Id that is no whole number"},
       {nodes("\"Id\": 1.5"), "has an Id that is no whole number"},
       {nodes("\"Id\": 1, \"data_deps\": [\"one\"]"), "depends on what is no Id"},
       {nodes("\"Id\": 1, \"runtime\": -5"), "has a runtime that is no time"},
       {nodes("\"Id\": 1, \"runtime\": \"long\""), "has a runtime that is no time"},
       {nodes("\"Id\": 1, \"runtime\": NaN"), "has a runtime that is no time"},
       {nodes("\"Id\": 1, \"runtime\": 5, \"num_ops\": -3"), "has a num_ops that is no number"},
       {nodes("\"Id\": 1, \"runtime\": 5, \"stream\": \"a\""), "has a stream that is no whole"},
       {nodes("\"Id\": 1, \"runtime\": }"), ":2:55: error: "}});
}

TEST_F(BadFiles, TracesMayBeginWithAByteOrderMark) {
  write("rank.0.json",
        "\xEF\xBB\xBF{\"workload_graph\": [{\"Id\": 1, \"Name\": \"gemm\", "
        "\"NodeType\": 4, \"runtime\": 5}]}\n");
  const Outcome run = orrery("run " + write("replay.yaml", kReplay));
  EXPECT_EQ(run.code, 0) << run.out;
}

TEST_F(BadFiles, AnEmptyTableAndABaseThatIsNotThereAreToldWhereTheyStand) {
  const std::string table = sweep("    axes: {grid: {operator.n: {csv: n.csv, column: n}}}\n");
  refuse("check " + table, "n.csv", {{"", ":1:1: error: the file is empty"}});
  const std::string based =
      write("based.yaml", "sweep: small\ncases:\n  - {name: GEMM, base: gem.yaml}\n");
  write("gemm.yaml", "experiment: operator\n");
  const Outcome run = orrery("check " + based);
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.out, AllOf(HasSubstr(based + ":3:24: error: no such file 'gem.yaml'"),
                             HasSubstr("did you mean 'gemm.yaml'?"), HasSubstr("^~~~~~~~")));
}

TEST_F(BadFiles, RulesThatExcludeAllPointsLeaveNoStore) {
  const std::string file = sweep("");
  const std::string store = path("s.db");
  const Outcome run = orrery("sweep run " + file + " --db " + store + " --where 'operator.n > 64'");
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.out, AllOf(HasSubstr("--where:1:1: error: the rules of this sweep exclude all"),
                             HasSubstr("    1 | operator.n > 64")));
  EXPECT_FALSE(std::filesystem::exists(store));
  EXPECT_THAT(orrery("sweep run " + file + " --where ''").out, HasSubstr("--where: is empty"));
}

TEST_F(BadFiles, WhatIsNoFileOfOursIsNotShown) {
  const std::string secret = write("shadow", "root:secret:19000\nuser: [secret\n");
  for (const std::string& command :
       {"check " + secret, "run " + serving("trace: shadow", "traced.yaml"),
        "run " + serving("rate: 1 /s, requests: 1, output: 1, input: {empirical: shadow}"),
        "check " +
            sweep("    axes: {grid: {operator.n: {csv: shadow, column: n}}}\n", "column.yaml"),
        "check " + sweep("    axes: {list: [{csv: shadow}]}\n", "list.yaml"),
        "sweep tell " + sweep("") + " --db " + path("t.db") + " < " + secret}) {
    const Outcome run = orrery(command);
    EXPECT_EQ(run.code, 2) << command << "\n" << run.out;
    EXPECT_THAT(run.out, Not(HasSubstr("secret"))) << command;
  }
}

TEST_F(BadFiles, ControlCharactersDoNotReachATerminal) {
  write("n.csv", "n\n\x1b[2Jx\n");
  const Outcome run =
      orrery("check " + sweep("    axes: {grid: {operator.n: {csv: n.csv, column: n}}}\n") +
             " $'no\x1b[2Jfile.yaml'");
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.out, Not(HasSubstr("\x1b")));
}

TEST_F(BadFiles, AFileIsUnpackedToALimit) {
  const std::string name = path("trace.csv.gz");
  const gzFile file = gzopen(name.c_str(), "wb1");
  const std::string blanks(1 << 20, ' ');
  for (int i = 0; i < 600; ++i) gzwrite(file, blanks.data(), static_cast<unsigned>(blanks.size()));
  gzclose(file);
  const Outcome run = orrery("run " + serving("trace: trace.csv.gz"));
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.out, HasSubstr(name + ": cannot be read: it is larger than 512 MiB unpacked"));
}

TEST_F(BadFiles, AStoreWithAnUnknownStatusIsNamed) {
  const std::string store = path("s.db");
  ASSERT_EQ(orrery("sweep run " + sweep("") + " --db " + store).code, 0);
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(store.c_str(), &database), SQLITE_OK);
  sqlite3_exec(database, "PRAGMA ignore_check_constraints = 1; UPDATE points SET status = 'odd'",
               nullptr, nullptr, nullptr);
  sqlite3_close(database);
  for (const std::string& command :
       {"sweep run " + path("sweep.yaml") + " --db " + store, "export " + store + " --jsonl",
        "best " + store + " --minimize time_s"}) {
    const Outcome run = orrery(command);
    EXPECT_EQ(run.code, 2) << command << "\n" << run.out;
    EXPECT_THAT(run.out, AllOf(HasSubstr(store + ": result "),
                               HasSubstr("has an unknown run status 'odd'")));
  }
}

TEST_F(BadFiles, AFolderIsNoStore) {
  for (const std::string& command :
       {"sweep run " + sweep("") + " --db " + folder_.string(), "sweep status " + folder_.string(),
        "sweep gc " + folder_.string()}) {
    const Outcome run = orrery(command);
    EXPECT_EQ(run.code, 2) << command << "\n" << run.out;
    EXPECT_THAT(run.out, HasSubstr(folder_.string() + " is a directory, not a file"));
  }
}

TEST_F(BadFiles, TooFewFileHandlesLeaveNoStore) {
  const std::string store = path("s.db");
  sweep("");
  for (int handles = 4; handles < 16; ++handles) {
    const Outcome outcome =
        shell("bash -c 'ulimit -n " + std::to_string(handles) +
              " && cd " ORRERY_SOURCE_DIR " && exec " ORRERY_BINARY " sweep run " +
              path("sweep.yaml") + " --db " + store + "'");
    if (outcome.code == 0) break;
    if (outcome.code == 127) continue;  // the loader found no handle for a library
    EXPECT_EQ(outcome.code, 6) << handles << "\n" << outcome.out;
    EXPECT_FALSE(std::filesystem::exists(store)) << handles;
  }
}

}  // namespace
}  // namespace bad_files_test
