// SPDX-License-Identifier: Apache-2.0
// Collectives as a user runs them: algorithms that are named, written or chosen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/integration/program.h"

namespace collectives_test {
namespace {

using namespace integration;
using testing::AllOf;
using testing::HasSubstr;

/// A metric of a run with --json.
double value_of(const std::string& out, const char* metric) {
  return nlohmann::json::parse(out.substr(out.find('{'))).at("metrics").at(metric).get<double>();
}

class Collectives : public InFolder {
 protected:
  /// `keys` of a collective on one DGX H100.
  std::string experiment(const std::string& keys) const {
    return write("experiment.yaml",
                 "experiment: collective\nsystem: dgx_h100\ncollective: {" + keys + "}\n");
  }
};

TEST_F(Collectives, EveryKindRunsOnOneServerAndOnFour) {
  for (const char* kind : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast",
                           "reduce", "gather", "scatter", "barrier"}) {
    const std::string bytes = kind == std::string("barrier") ? "" : ", bytes: 1 GiB";
    const std::string file = experiment(std::string("kind: ") + kind + bytes);
    for (const char* nodes : {"1", "4"}) {
      const Outcome run = orrery("run " + file + " --json --set nodes=" + nodes);
      ASSERT_EQ(run.code, 0) << run.out;
      const auto metrics = nlohmann::json::parse(run.out.substr(run.out.find('{'))).dump();
      EXPECT_THAT(metrics, HasSubstr("share_of_limit")) << kind;
    }
  }
}

TEST_F(Collectives, PartsOfDifferentSizesComeFromAMatrix) {
  const std::string inline_one =
      experiment("kind: all_to_all, matrix: [[0, 90 MB, 1 MB], [1 MB, 0, 1 MB], [1 MB, 1 MB, 0]]");
  const Outcome run = orrery("run " + inline_one + " --json");
  ASSERT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("accelerator0->nvswitches"));
  write("parts.csv", "0,9e7,1e6\n1e6,0,1e6\n1e6,1e6,0\n");
  const Outcome file =
      orrery("run " + experiment("kind: all_to_all, matrix_file: parts.csv") + " --json");
  ASSERT_EQ(file.code, 0) << file.out;
  for (const char* metric : {"time_s", "bus_bytes_per_s"})
    EXPECT_EQ(value_of(run.out, metric), value_of(file.out, metric));
}

TEST_F(Collectives, AMatrixOfTheWrongShapeIsShown) {
  const auto fault = [&](const std::string& keys) {
    const Outcome run = orrery("check " + experiment(keys));
    EXPECT_EQ(run.code, 2) << run.out;
    return run.out;
  };
  EXPECT_THAT(fault("kind: all_to_all, matrix: [[0, 1 MB], [1 MB, 0, 2 MB]]"),
              AllOf(HasSubstr(":3:"), HasSubstr("row 1 has 3 parts, but there are 2 rows"),
                    HasSubstr("^")));
  EXPECT_THAT(fault("kind: all_reduce, matrix: [[0, 1 MB], [1 MB, 0]]"),
              HasSubstr("all_reduce has no parts of different sizes; all_to_all does"));
  EXPECT_THAT(fault("kind: all_to_all, bytes: 1 MB, matrix: [[0, 1 MB], [1 MB, 0]]"),
              HasSubstr("the parts are said twice"));
  EXPECT_THAT(fault("kind: all_to_all, ranks: 4, matrix: [[0, 1 MB], [1 MB, 0]]"),
              HasSubstr("the matrix has 2 rows, but collective.ranks is 4"));
  write("parts.csv", "0,1\n2,x\n");
  EXPECT_THAT(fault("kind: all_to_all, matrix_file: parts.csv"),
              AllOf(HasSubstr("parts.csv:2"), HasSubstr("^")));
  write("parts.csv", "0,1\n2,-3\n");
  EXPECT_THAT(fault("kind: all_to_all, matrix_file: parts.csv"), HasSubstr("must not be negative"));
  write("parts.csv", "0,1\n2\n");
  EXPECT_THAT(fault("kind: all_to_all, matrix_file: parts.csv"),
              HasSubstr("row 1 has 1 parts, but there are 2 rows"));
}

TEST_F(Collectives, ASkewedAllToAllWaitsForItsHeaviestRank) {
  const auto time = [&](const std::string& keys) {
    const Outcome run =
        orrery("run " + experiment("kind: all_to_all, bytes: 1 GiB, algorithm: direct" + keys) +
               " --json");
    EXPECT_EQ(run.code, 0) << run.out;
    return value_of(run.out, "time_s");
  };
  const double even = time(""), skewed = time(", skew: 3");
  EXPECT_GT(skewed, 2.5 * even);
  EXPECT_LT(skewed, 3.01 * even);
}

TEST_F(Collectives, MessagesAndCopiesHaveEnds) {
  for (const char* keys : {"from: 2, to: 5", "from: host, to: 3", "from: all, to: host"}) {
    const Outcome run =
        orrery("run " + experiment(std::string("kind: send_receive, bytes: 1 GB, ") + keys));
    ASSERT_EQ(run.code, 0) << run.out;
    if (std::string(keys).find("host") == std::string::npos) continue;
    EXPECT_THAT(run.out, AllOf(HasSubstr("copy"), HasSubstr("host"), HasSubstr("55.0 GB/s")));
  }
}

TEST_F(Collectives, EndsThatDoNotExistAreShown) {
  const auto fault = [&](const std::string& keys) {
    const Outcome run = orrery("check " + experiment("bytes: 1 GB, " + keys));
    EXPECT_EQ(run.code, 2) << run.out;
    return run.out;
  };
  EXPECT_THAT(fault("kind: send_receive, from: hots, to: 1"),
              AllOf(HasSubstr("did you mean 'host'?"), HasSubstr("^")));
  EXPECT_THAT(fault("kind: send_receive, from: 8, to: 1"),
              HasSubstr("there is no rank 8; the machine has 8"));
  EXPECT_THAT(fault("kind: send_receive, from: host"), HasSubstr("a message needs both ends"));
  EXPECT_THAT(fault("kind: send_receive, from: host, to: storage"),
              HasSubstr("one end of a message must be a rank"));
  EXPECT_THAT(fault("kind: send_receive, from: storage, to: 1"),
              HasSubstr("no host.network to storage"));
  EXPECT_THAT(fault("kind: send_receive, from: 1, to: 1"),
              HasSubstr("a message goes to another rank"));
  EXPECT_THAT(fault("kind: send_receive, ranks: 2, from: 1, to: 2"),
              HasSubstr("from and to already say which ranks"));
  EXPECT_THAT(fault("kind: all_reduce, from: host, to: 1"),
              HasSubstr("all_reduce has no ends; send_receive does"));
}

TEST_F(Collectives, AnAlgorithmThatDoesNotServeIsShownWhereItIsWritten) {
  const std::string file = experiment("kind: all_to_all, bytes: 1 MiB, algorithm: tree");
  const Outcome run = orrery("run " + file);
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.out, HasSubstr(file + ":"));
  EXPECT_THAT(run.out, HasSubstr("^~~~"));
  EXPECT_THAT(run.out, HasSubstr("tree does not serve all_to_all among 8 ranks of one system; "
                                 "these do: direct, pairwise"));
}

TEST_F(Collectives, AnUnknownProtocolIsShownWhereItIsWritten) {
  const std::string file = write("typo.yaml",
                                 "experiment: collective\nsystem: dgx_h200\n"
                                 "collective: {kind: all_reduce, bytes: 1 GiB, protocol: ll1}\n");
  const Outcome run = orrery("run " + file);
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.out, AllOf(HasSubstr("typo.yaml:3:"), HasSubstr("unknown protocol 'll1'"),
                             HasSubstr("did you mean 'll'?")));
}

TEST_F(Collectives, AProtocolThatDoesNotCarryTheAlgorithmIsAnError) {
  const std::string file =
      write("nvls.yaml",
            "experiment: collective\nsystem: dgx_h200\n"
            "collective: {kind: all_reduce, bytes: 1 GiB, algorithm: nvls, protocol: ll}\n");
  const Outcome run = orrery("run " + file);
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.out, HasSubstr("error: ll carries no all_reduce by nvls"));
}

TEST_F(Collectives, AnUnknownAlgorithmIsShownWhereItIsWritten) {
  const Outcome run =
      orrery("check " + experiment("kind: all_reduce, bytes: 1 MiB, algorithm: rnig"));
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.out, AllOf(HasSubstr("experiment.yaml:3:"),
                             HasSubstr("unknown collective algorithm 'rnig'"),
                             HasSubstr("did you mean 'ring'?")));
}

TEST_F(Collectives, OnlyABarrierHasNoBytes) {
  const Outcome without = orrery("check " + experiment("kind: all_reduce"));
  EXPECT_EQ(without.code, 2);
  EXPECT_THAT(without.out, HasSubstr("collective.bytes must be given"));
  const Outcome with = orrery("check " + experiment("kind: barrier, bytes: 1 MiB"));
  EXPECT_EQ(with.code, 2);
  EXPECT_THAT(with.out, HasSubstr("a barrier has no bytes"));
}

TEST_F(Collectives, ADeadLinkWithoutAnotherWayEndsTheRunWithItsName) {
  const std::string file = write("dead.yaml",
                                 "experiment: collective\nsystem: dgx_h100\n"
                                 "collective: {kind: all_reduce, bytes: 1 GiB}\n"
                                 "faults: [{link: \"*accelerator3->nvswitches\", at: 1 ms}]\n");
  const Outcome run = orrery("run " + file);
  EXPECT_EQ(run.code, 5);
  EXPECT_THAT(run.out, HasSubstr("transfer 'all_reduce' stands still: link "
                                 "system0/node0/accelerator3->nvswitches is down from 1.00 ms on"));
}

TEST_F(Collectives, AFaultOfALinkThatDoesNotExistIsShownWhereItIsWritten) {
  const std::string file = write("typo.yaml",
                                 "experiment: collective\nsystem: dgx_h100\n"
                                 "collective: {kind: all_reduce, bytes: 1 GiB}\n"
                                 "faults:\n  - link: acelerator->nvswitches\n");
  const Outcome run = orrery("check " + file);
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.out, AllOf(HasSubstr("typo.yaml:5:11: error: there is no link"),
                             HasSubstr("did you mean 'accelerator->nvswitches'?")));
}

TEST_F(Collectives, LinksArePrintedByClassAndStoredOneByOneWhereAskedFor) {
  const std::string file = experiment("kind: all_reduce, bytes: 1 GiB, algorithm: ring");
  const Outcome run = orrery("run " + file);
  EXPECT_THAT(run.out, HasSubstr("accelerator->nvswitches     144  15.0 GB"));
  const Outcome json = orrery("run " + file + " --json --set record=links");
  const auto links = nlohmann::json::parse(json.out.substr(json.out.find('{'))).at("links");
  ASSERT_EQ(links.size(), 16U);
  EXPECT_NEAR(links[0].at("bytes").get<double>(), 1.75 * (1 << 30), 1);
}

// A broadcast among 3: over rank 1, or all from the root.
constexpr const char* kChain =
    "collective: broadcast\nranks: 3\nchunks: 1\nsteps:\n"
    "  - - {from: 0, to: 1, chunk: 0}\n"
    "  - - {from: 1, to: 2, chunk: 0}\n";
constexpr const char* kStar =
    "collective: broadcast\nranks: 3\nchunks: 1\nsteps:\n"
    "  - - {from: 0, to: 1, chunk: 0}\n"
    "    - {from: 0, to: 2, chunk: 0}\n";

TEST_F(Collectives, AWrittenAlgorithmIsNamedRelativeToTheExperiment) {
  write("mine.yaml", kChain);
  const std::string file =
      experiment("kind: broadcast, bytes: 1 MiB, ranks: 3, algorithm: ./mine.yaml");
  const Outcome chain = orrery("run " + file);
  EXPECT_EQ(chain.code, 0) << chain.out;
  EXPECT_THAT(chain.out, HasSubstr("mine.yaml"));
  write("mine.yaml", kStar);
  const Outcome star = orrery("run " + file);
  EXPECT_EQ(star.code, 0) << star.out;
  const auto point = [](const std::string& out) { return out.substr(out.find("point ")); };
  EXPECT_NE(point(star.out), point(chain.out)) << "what the file says is part of the identity";
}

TEST_F(Collectives, AWrittenAlgorithmThatIsWrongIsRefusedAtItsLine) {
  std::string wrong = kChain;
  wrong.replace(wrong.find("  - - {from: 1"), 4, "    ");  // in the first step already
  const std::string file = write("mine.yaml", wrong);
  for (const std::string& command :
       {"check " + file,
        "check " + experiment("kind: broadcast, bytes: 1 MiB, ranks: 3, algorithm: ./mine.yaml")}) {
    const Outcome refused = orrery(command);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.out,
                HasSubstr("mine.yaml:6:7: error: step 0: rank 1 sends chunk 0 before it has it"));
  }
}

TEST_F(Collectives, AlgorithmsAreDescribedWithWhatTheyServe) {
  const Outcome list = orrery("describe collectives");
  EXPECT_EQ(list.code, 0);
  EXPECT_THAT(list.out, HasSubstr("all_reduce, all_gather, reduce_scatter, broadcast, reduce"));
  const Outcome ring = orrery("describe collective ring nvls");
  EXPECT_EQ(ring.code, 0);
  EXPECT_THAT(ring.out,
              AllOf(HasSubstr("54 inside, 8 between"), HasSubstr("switches that reduce")));
}

/// All-reduces of 1 KiB to 128 MiB on 8 GPUs of two systems; the times are made up.
std::string measured_table() {
  std::string rows = "system,collective,precision,ranks,bytes,latency_us,source\n";
  for (const char* system : {"h100_sxm", "h200_sxm"}) {
    for (int power = 10; power <= 27; ++power)
      rows += std::string(system) + ",all_reduce,fp16,8," + std::to_string(1 << power) + "," +
              std::to_string(20 + (1 << power) / 400000) + ",made up\n";
  }
  return rows;
}

TEST_F(Collectives, TheSummaryHasTheHeldOutErrorsOfTheTables) {
  const std::string table = write("table.csv", measured_table());
  const Outcome all = orrery("validate collectives " + table + " --held-out --json");
  const Outcome summary = orrery("validate collectives " + table + " --summary --json");
  ASSERT_EQ(summary.code, 0) << summary.out;
  std::map<std::string, double> expected;
  const auto report = nlohmann::json::parse(all.out);
  for (const auto& entry : report.at("entries")) {
    if (entry.at("system") == "all" && entry.at("precision") == "all")
      expected[entry.at("class")] = entry.at("mape");
  }
  const auto lines = nlohmann::json::parse(summary.out.substr(summary.out.find('{')));
  const auto& pooled = lines.at("entries").at(0);
  EXPECT_EQ(pooled.at("rows"), "collective_nccl, all systems");
  for (const auto& [bytes, mape] : expected) EXPECT_EQ(pooled.at(bytes).at("mape"), mape) << bytes;
  EXPECT_THAT(lines.at("entries").back().at("rows").get<std::string>(),
              HasSubstr("h200_sxm by parameters of dgx_h100"));
  EXPECT_GT(lines.at("published").size(), 5U);
}

TEST_F(Collectives, TheSummaryIsOfHeldOutRowsAnyhow) {
  const std::string table = write("table.csv", measured_table());
  const Outcome run = orrery("validate collectives " + table + " --summary --held-out");
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.out, HasSubstr("--held-out excludes --summary"));
}

}  // namespace
}  // namespace collectives_test
