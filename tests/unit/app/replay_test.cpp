// SPDX-License-Identifier: Apache-2.0
// Operator graphs of other programs, replayed.
#include "sim/app/experiments/graphs/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "sim/app/experiments/core/simulate.h"
#include "tests/unit/app/trace_file.h"

namespace orrery::replay_test {
namespace {

using test::compute;
using test::kTemp;
using test::load;
using test::run;
using test::TraceFile;
using test::value;
using testing::HasSubstr;

// gemm (400 us) -> norm (100 us) -> gemm (200 us), all on one stream: 700 us; with GEMMs in half of
// the time 200 + 100 + 100.
TEST(Replay, TwiceAsFastGemmsEqualHandArithmetic) {
  const TraceFile trace(compute(1, "gemm a", 400) + "," + compute(2, "layer_norm", 100, "1") + "," +
                        compute(3, "gemm b", 200, "2"));
  EXPECT_NEAR(value(run(trace.experiment()), "time_s"), 700e-6, 1e-15);
  const RunRecord faster = run(trace.experiment("scale: {gemm: 0.5}\n"));
  EXPECT_NEAR(value(faster, "time_s"), 400e-6, 1e-15);
  EXPECT_NEAR(value(faster, "breakdown.compute_s"), 400e-6, 1e-15);
  EXPECT_EQ(value(faster, "graph_nodes"), 3);
  EXPECT_NEAR(value(run(trace.experiment("scale: {all: 3}\n")), "time_s"), 2100e-6, 1e-15);
}

// What GEMMs do not decide does not get faster: a second stream takes 500 us meanwhile.
TEST(Replay, FasterGemmsHelpAsFarAsTheyAreOnTheLongestWay) {
  const TraceFile trace(compute(1, "gemm", 600) + "," +
                        compute(2, "sort", 500, "", R"(, "stream": 9)"));
  EXPECT_NEAR(value(run(trace.experiment()), "time_s"), 600e-6, 1e-15);
  EXPECT_NEAR(value(run(trace.experiment("scale: {gemm: 0.5}\n")), "time_s"), 500e-6, 1e-15);
}

TEST(Replay, HostOperatorsTakeTheirTimeOrNone) {
  const TraceFile trace(
      R"({"Id": 1, "Name": "launch", "NodeType": 4, "is_cpu_op": true, "runtime": 30},)" +
      compute(2, "gemm", 100, "1"));
  const RunRecord kept = run(trace.experiment());
  EXPECT_NEAR(value(kept, "time_s"), 130e-6, 1e-15);
  EXPECT_NEAR(value(kept, "breakdown.host_s"), 30e-6, 1e-15);
  EXPECT_NEAR(value(run(trace.experiment(), {"graph.host=drop"}), "time_s"), 100e-6, 1e-15);
}

// The product reads and writes 335 MB each, the sum as much: 4 x 100 us at 3.35 TB/s. As one kernel
// they read and write once.
TEST(Replay, EpiloguesSaveTheBytesBetweenTheirKernels) {
  const std::string bytes = R"(, "orrery.kernel": "matrix_flops=1e6 read=3.35e8 written=3.35e8")";
  const TraceFile trace(compute(1, "gemm", 0, "", bytes) + "," + compute(2, "relu", 0, "1", bytes));
  const RunRecord two = run(trace.experiment("durations: model\n"));
  EXPECT_NEAR(value(two, "time_s"), 400e-6, 1e-12);
  const RunRecord one = run(trace.experiment("durations: model\n"), {"graph.fuse_kernels=true"});
  EXPECT_NEAR(value(one, "time_s"), 200e-6, 1e-12);
  EXPECT_EQ(value(one, "graph_nodes"), 2) << "the product is a marker";
}

/// Attention of 8 heads over scores in memory, queries x keys of each.
std::string stored_attention(std::int64_t queries, std::int64_t keys) {
  const std::int64_t square = 8 * queries * keys;
  const auto kernel = [](const std::string& text) {
    return R"(, "orrery.kernel": ")" + text + "\"";
  };
  const auto product = [&](std::int64_t n, std::int64_t k, std::int64_t read,
                           std::int64_t written) {
    return kernel("precision=bf16 batch=8 m=" + std::to_string(queries) +
                  " n=" + std::to_string(n) + " k=" + std::to_string(k) +
                  " matrix_flops=" + std::to_string(16 * queries * n * k) +
                  " read=" + std::to_string(read) + " written=" + std::to_string(written));
  };
  const std::int64_t rows = 8 * queries * 64 * 2, columns = 8 * keys * 64 * 2;
  return compute(1, "scores gemm", 0, "", product(keys, 64, rows + columns, 2 * square)) + "," +
         compute(2, "softmax", 0, "1",
                 kernel("m=" + std::to_string(8 * queries) + " n=" + std::to_string(keys) +
                        " vector_flops=" + std::to_string(5 * square) + " exponentials=" +
                        std::to_string(square) + " read=" + std::to_string(2 * square) +
                        " written=" + std::to_string(2 * square))) +
         "," + compute(3, "values gemm", 0, "2", product(64, keys, 2 * square + columns, rows));
}

// Small ones too, where a kernel of three tiles may be slower than three kernels.
TEST(Replay, FusedAttentionNeverTakesLongerThanItsParts) {
  for (const auto& [queries, keys] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {4096, 4096}, {1024, 512}, {100, 160}, {16, 16}, {1, 2048}}) {
    const TraceFile trace(stored_attention(queries, keys));
    const RunRecord apart = run(trace.experiment("durations: model\n"));
    const RunRecord fused =
        run(trace.experiment("durations: model\n"), {"graph.fuse_kernels=true"});
    EXPECT_LE(value(fused, "time_s"), value(apart, "time_s")) << queries << " x " << keys;
    if (queries == 4096) {
      EXPECT_LT(value(fused, "time_s"), 0.5 * value(apart, "time_s"));
      EXPECT_EQ(fused.classes.front().name, "attention_prefill");
    }
  }
}

// host 30 -> gemm 100 -> all-reduce 50, beside a sort of 120 us: the chain is host, gemm and
// all-reduce; without the host, whose gemm then ends before the sort, sort and all-reduce.
TEST(Replay, TheLongestChainAddsUpToTheTime) {
  const TraceFile trace(
      R"({"Id": 1, "Name": "launch", "NodeType": 4, "is_cpu_op": true, "runtime": 30},)" +
      compute(2, "gemm", 100, "1") + "," + compute(3, "sort", 120, "", R"(, "stream": 9)") +
      R"(,{"Id": 4, "Name": "ar", "NodeType": 7, "runtime": 50, "comm_type": 0,
          "comm_size": 1000, "data_deps": [2, 3]})");
  const auto chain = [&](const RunRecord& record) {
    return std::vector<double>{value(record, "longest_chain.host_s"),
                               value(record, "longest_chain.gemm_s"),
                               value(record, "longest_chain.other_kernels_s"),
                               value(record, "longest_chain.communication_s")};
  };
  using testing::DoubleNear;
  const auto near = [](double micros) { return DoubleNear(micros * 1e-6, 1e-15); };
  const RunRecord kept = run(trace.experiment());
  EXPECT_THAT(chain(kept), testing::ElementsAre(near(30), near(100), near(0), near(50)));
  EXPECT_NEAR(value(kept, "time_s"), 180e-6, 1e-15);
  EXPECT_THAT(chain(run(trace.experiment(), {"graph.host=drop"})),
              testing::ElementsAre(near(0), near(0), near(120), near(50)));
}

/// gemm 100 -> all-reduce of 1 GB over 8 ranks, of which the others come as it does.
std::string reduction() {
  return compute(1, "gemm", 100) +
         R"(,{"Id": 2, "Name": "ar", "NodeType": 7, "comm_type": 0, "comm_size": 1000000000, "data_deps": [1],
              "pg_name": "g"})";
}

/// The reduction on eight ranks, 100 us after the beginning, with links that fail.
RunRecord reduced(const std::string& faults) {
  const TraceFile trace(reduction());
  const std::string groups = kTemp + "replay_eight.json";
  std::ofstream(groups) << R"({"g": [0, 1, 2, 3, 4, 5, 6, 7]})";
  RunRecord record = run("experiment: replay\nsystem: dgx_h100\ngraph: {path: " + trace.path() +
                         ", groups: " + groups + "}\nalgorithm: ring\nfaults: [" + faults + "]\n");
  std::remove(groups.c_str());
  return record;
}

// The bytes of the reduction take twice as long over links of half the capacity. Where they become
// so `at` a time, what is left then does.
TEST(Replay, SlowerLinksStretchWhatCrossesThem) {
  const double whole = value(reduced(""), "time_s");
  const double half = value(reduced(R"({link: "*", capacity: 0.5})"), "time_s");
  EXPECT_GT(half - 100e-6, 1.9 * (whole - 100e-6));
  EXPECT_LE(half - 100e-6, 2 * (whole - 100e-6));
  const double later = value(reduced(R"({link: "*", capacity: 0.5, at: 2 ms})"), "time_s");
  ASSERT_GT(whole, 2e-3);
  EXPECT_NEAR(later, 2e-3 + 2 * (whole - 2e-3), 1e-9);
  const double healed =
      value(reduced(R"({link: "*", capacity: 0.5}, {link: "*", capacity: 1, at: 2 ms})"), "time_s");
  EXPECT_NEAR(healed, 2e-3 + (half - 2e-3) / 2, 1e-9);
  EXPECT_NEAR(value(reduced(R"({link: "*", capacity: 0.5, at: 1 s})"), "time_s"), whole, 1e-12);
}

TEST(Replay, ADeadLinkWithoutAnotherWayIsAnInfeasiblePoint) {
  for (const char* from : {"", ", at: 1 ms"}) {
    const RunRecord record = reduced("{link: system0/node0/accelerator3->nvswitches, capacity: 0" +
                                     std::string(from) + "}");
    EXPECT_EQ(record.status, RunStatus::kInfeasible) << from;
    EXPECT_THAT(record.reason, HasSubstr("no other way")) << from;
  }
}

// Rank 0 takes 100 us, rank 1 twice its 100 us: the reduction, of 50 us on one of them, begins
// then.
TEST(Replay, ASlowRankKeepsOthersWaiting) {
  const std::string prefix = kTemp + "replay_pair_trace";
  for (const char* rank : {"0", "1"}) {
    std::ofstream(prefix + "." + rank + ".json")
        << R"({"workload_graph": [)" << compute(1, "gemm", 100) << ","
        << R"({"Id": 2, "Name": "launch", "NodeType": 4, "is_cpu_op": true, "runtime": 10,
               "data_deps": [1]},)"
        << R"({"Id": 3, "Name": "ar", "NodeType": 7, "runtime": 50, "comm_type": 0,
               "comm_size": 64, "data_deps": [2]}]})";
  }
  const std::string text = "experiment: replay\nsystem: dgx_h100\ngraph: {path: " + prefix + "}\n";
  EXPECT_NEAR(value(run(text), "time_s"), 160e-6, 1e-15);
  const RunRecord slow = run(text + "noise: {stragglers: {ranks: [1], slowdown: 2}}\n");
  EXPECT_NEAR(value(slow, "time_s"), 260e-6, 1e-15) << "the host of a slow rank is none";
  const RunRecord drawn = run(text + "noise: {kernels: 0.1, seed: 3}\n");
  EXPECT_NE(value(drawn, "time_s"), 160e-6);
  EXPECT_EQ(value(run(text + "noise: {kernels: 0.1, seed: 3}\n"), "time_s"),
            value(drawn, "time_s"));
  for (const char* rank : {"0", "1"}) std::remove((prefix + "." + rank + ".json").c_str());
}

// Kernels of one stream wait for each other, without a dependency.
TEST(Replay, TheLongestChainFollowsStreams) {
  const TraceFile trace(compute(1, "gemm", 100) + "," + compute(2, "sort", 50));
  const RunRecord record = run(trace.experiment());
  EXPECT_NEAR(value(record, "longest_chain.gemm_s"), 100e-6, 1e-15);
  EXPECT_NEAR(value(record, "longest_chain.other_kernels_s"), 50e-6, 1e-15);
}

TEST(Replay, ResultsHaveATableOfTheirClasses) {
  const TraceFile trace(compute(1, "gemm", 300) + "," + compute(2, "layer_norm", 100, "1"));
  const RunRecord record = run(trace.experiment());
  const auto table = replayed_class_table(record);
  ASSERT_TRUE(table.has_value());
  ASSERT_EQ(table->rows().size(), 2U);
  EXPECT_THAT(table->rows()[0], testing::ElementsAre("gemm", "1", "300 us", "75.0 %", "", ""));
  EXPECT_EQ(table->rows()[1][0], "normalization");
  EXPECT_EQ(table->rows()[1][3], "25.0 %");
  RunRecord other = record;
  other.experiment = "training";
  EXPECT_FALSE(replayed_class_table(other).has_value());
}

// 989.4 TFLOP/s and 3.35 TB/s of an H100 SXM (its data sheet).
TEST(Replay, NodesOfWhichOnlyFlopsAndBytesAreKnownAreRooflines) {
  const TraceFile trace(
      compute(1, "a", 5, "", R"(, "num_ops": 989400000000, "tensor_size": 1000)") + "," +
      compute(2, "b", 5, "1", R"(, "num_ops": 1000, "tensor_size": 3350000000)"));
  EXPECT_NEAR(value(run(trace.experiment()), "time_s"), 10e-6, 1e-15);
  const RunRecord model = run(trace.experiment("durations: model\n"));
  EXPECT_NEAR(value(model, "time_s"), 2e-3, 2e-6);
  EXPECT_EQ(value(model, "recorded_share"), 0);
}

TEST(Replay, CollectivesTakeTheRecordedTimeOrThatOfTheNetwork) {
  const std::string reduce =
      R"({"Id": 1, "Name": "ar", "NodeType": 7, "runtime": 50, "comm_type": 0, "comm_size": 67108864})";
  const TraceFile trace(reduce, "replay_pair.0.et");
  const TraceFile other(reduce, "replay_pair.1.et");
  const std::string both =
      "experiment: replay\nsystem: dgx_h100\ngraph: {path: " + kTemp + "replay_pair}\n";
  EXPECT_NEAR(value(run(both), "time_s"), 50e-6, 1e-15);
  const double priced = value(run(both, {"durations=model"}), "time_s");
  const double alone = value(
      run("experiment: collective\nsystem: dgx_h100\ncollective: {kind: all_reduce, bytes: 64 MiB, "
          "ranks: 2}\n"),
      "time_s");
  EXPECT_DOUBLE_EQ(priced, alone);
}

// Converters of PyTorch's traces leave out comm_type of a broadcast.
TEST(Replay, ACollectiveWithoutATypeTakesThatOfItsNameIfTheGraphIsRepaired) {
  const auto nodes = [](const std::string& name, const std::string& more) {
    return R"({"Id": 1, "Name": ")" + name + R"(", "NodeType": 7, "comm_size": 67108864)" + more +
           "}";
  };
  const auto time = [](const std::string& node, const std::string& set) {
    const TraceFile trace(node, "replay_named.0.et");
    const TraceFile other(node, "replay_named.1.et");
    return value(run("experiment: replay\nsystem: dgx_h100\ngraph: {path: " + kTemp +
                         "replay_named}\ndurations: model\n",
                     {set}),
                 "time_s");
  };
  EXPECT_THAT(test::error_of(TraceFile(nodes("nccl:broadcast", "")).experiment()),
              HasSubstr("--repair takes it for the broadcast of its name"));
  EXPECT_THAT(
      test::error_of(TraceFile(nodes("record_param", "")).experiment(), {"graph.repair=true"}),
      HasSubstr("is a collective without a type (comm_type)"));
  const double named = time(nodes("nccl:broadcast", ""), "graph.repair=true");
  EXPECT_EQ(named, time(nodes("b", R"(, "comm_type": 5)"), "graph.repair=false"));
}

TEST(Replay, PartsOfTheBreakdownAddUpAndEveryRankHasAnEnd) {
  const TraceFile first(compute(1, "gemm", 100), "replay_two.0.et");
  const TraceFile second(compute(1, "gemm", 250), "replay_two.1.et");
  const RunRecord record =
      run("experiment: replay\nsystem: dgx_h100\ngraph: {path: " + kTemp + "replay_two}\n");
  ASSERT_EQ(record.lists.size(), 1U);
  EXPECT_EQ(record.lists[0].name, "time_s_by_rank");
  EXPECT_THAT(record.lists[0].values, testing::ElementsAre(testing::DoubleNear(100e-6, 1e-15),
                                                           testing::DoubleNear(250e-6, 1e-15)));
  double sum = 0;
  for (const Metric& metric : record.metrics)
    if (metric.name.starts_with("breakdown.")) sum += metric.value;
  EXPECT_NEAR(sum, value(record, "time_s"), 1e-12);
}

TEST(Replay, ThePointIsThatOfItsFilesNotOfTheirNames) {
  const TraceFile trace(compute(1, "gemm", 100), "replay_same.json");
  const TraceFile same(compute(1, "gemm", 100), "replay_again.json");
  const TraceFile other(compute(1, "gemm", 101), "replay_other.json");
  EXPECT_EQ(load(trace.experiment()).identity, load(same.experiment()).identity);
  EXPECT_NE(load(trace.experiment()).identity, load(other.experiment()).identity);
}

TEST(Replay, MoreRanksThanTheMachineHasAreRefused) {
  const TraceFile trace(R"({"Id": 1, "Name": "s", "NodeType": 5, "comm_dst": 8, "comm_size": 8})");
  try {
    run(trace.experiment());
    FAIL() << "9 ranks on 8";
  } catch (const config::ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the graph has 9 ranks, the machine 8"));
  }
}

}  // namespace
}  // namespace orrery::replay_test
