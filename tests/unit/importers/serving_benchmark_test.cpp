// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "tests/unit/importers/samples.h"
#include "tests/unit/importers/scratch.h"

namespace orrery::serving_benchmark_test {
namespace {

using testing::HasSubstr;

using ServingBenchmarks = Scratch;

constexpr const char* kLeast =
    R"({"completed": 1, "request_throughput": 2.5, "output_throughput": 3})";

TEST_F(ServingBenchmarks, VllmHasTheMetricsOfServingExperiments) {
  const ImportedTable table = import_file("vllm", sample("vllm.json"), {});
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(cell(table, 0, "model"), "llama-8b");
  EXPECT_EQ(cell(table, 0, "backend"), "vllm");
  EXPECT_EQ(cell(table, 0, "request_rate"), "inf");
  EXPECT_EQ(cell(table, 0, "max_concurrency"), "");
  EXPECT_EQ(cell(table, 0, "duration_s"), "20");
  EXPECT_EQ(cell(table, 0, "total_input_tokens"), "102400");
  EXPECT_EQ(cell(table, 0, "completed"), "100");
  EXPECT_EQ(cell(table, 0, "request_throughput"), "5");
  EXPECT_EQ(cell(table, 0, "request_goodput"), "");
  EXPECT_EQ(cell(table, 0, "output_throughput"), "640");
  EXPECT_EQ(cell(table, 0, "total_token_throughput"), "5760");
  EXPECT_EQ(cell(table, 0, "mean_ttft_ms"), "80.5");
  EXPECT_EQ(cell(table, 0, "median_ttft_ms"), "75.25");
  EXPECT_EQ(cell(table, 0, "p90_ttft_ms"), "");
  EXPECT_EQ(cell(table, 0, "p99_tpot_ms"), "14");
  EXPECT_EQ(cell(table, 0, "p99_itl_ms"), "31");
  EXPECT_EQ(cell(table, 0, "mean_e2el_ms"), "1287");
}

TEST_F(ServingBenchmarks, SglangHasTheSameMetricsUnderOtherNamesOneRunALine) {
  const ImportedTable table = import_file("sglang", sample("sglang.jsonl"), {});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(cell(table, 0, "request_rate"), "inf");  // Infinity, as Python writes it
  EXPECT_EQ(cell(table, 0, "max_concurrency"), "16");
  EXPECT_EQ(cell(table, 0, "total_token_throughput"), "5760");  // 5120 in and 640 out
  EXPECT_EQ(cell(table, 0, "mean_e2el_ms"), "3100.5");
  EXPECT_EQ(cell(table, 0, "median_e2el_ms"), "3000");
  EXPECT_EQ(cell(table, 0, "p95_itl_ms"), "41");
  EXPECT_EQ(cell(table, 1, "model"), "qwen");
  EXPECT_EQ(cell(table, 1, "request_rate"), "4");
  EXPECT_EQ(cell(table, 1, "total_token_throughput"), "4608");
  EXPECT_EQ(cell(table, 1, "p99_e2el_ms"), "9000");
}

TEST_F(ServingBenchmarks, OneObjectLinesAndListsAreRead) {
  const std::string one = kLeast;
  EXPECT_EQ(import_file("vllm", write("one.json", one), {}).rows.size(), 1U);
  EXPECT_EQ(import_file("vllm", write("lines.jsonl", one + "\n\n" + one + "\n"), {}).rows.size(),
            2U);
  EXPECT_EQ(
      import_file("vllm", write("list.json", "[\n" + one + ",\n" + one + "\n]\n"), {}).rows.size(),
      2U);
  EXPECT_EQ(import_file("vllm", write_gzip("one.json.gz", one), {}).rows.size(), 1U);
}

TEST_F(ServingBenchmarks, NumbersThatAreNoneAreNamedWithTheirPlaces) {
  const std::string message = message_of([this] {
    import_file("vllm",
                write("t.json",
                      "{\"completed\": 1, \"request_throughput\": 2,\n"
                      " \"output_throughput\": \"fast\", \"mean_ttft_ms\": -1}"),
                {});
  });
  EXPECT_THAT(message,
              HasSubstr("t.json:2:2: error: 'output_throughput' is a finite number from 0 on\n"
                        "    2 |  \"output_throughput\": \"fast\", \"mean_ttft_ms\": -1}\n"
                        "      |  ^~~~~~~~~~~~~~~~~~~\n"));
  EXPECT_THAT(message, HasSubstr("t.json:2:31: error: 'mean_ttft_ms' is a finite number"));
}

TEST_F(ServingBenchmarks, OtherFilesAreRefused) {
  const auto message = [this](const std::string& text) {
    return message_of([&] { import_file("vllm", write("t.json", text), {}); });
  };
  EXPECT_THAT(message("{\"completed\": 1}"),
              HasSubstr("t.json:1:1: error: has no key 'request_throughput'"));
  EXPECT_THAT(message("{\"completed\": 1,\n \"a\" 2}"),
              HasSubstr("t.json:2:6: error: is not JSON\n    2 |  \"a\" 2}\n      |      ^\n"));
  EXPECT_THAT(message("[1, 2]"), HasSubstr("t.json:1:1: error: is no object with the results"));
  EXPECT_THAT(message("{\"completed\": 1e999}"),
              HasSubstr("t.json:1:1: error: has a number that is too large"));
  EXPECT_THAT(message(""), HasSubstr("t.json:1:1: error: is not JSON"));
  EXPECT_THAT(message(std::string(kLeast) + "\n{]\n"), HasSubstr("t.json:2:2: error: is not JSON"));
  EXPECT_THAT(message(std::string(100000, '[')), HasSubstr("t.json:1:100001: error: is not JSON"));
}

TEST_F(ServingBenchmarks, ObjectsInALogAreFound) {
  const std::string log = "INFO 01-01 10:00:00 [api.py:1] {starting} args: {'a': 1}\n" +
                          std::string("[1;36m(Worker pid=7) ready: ") + kLeast +
                          "\n{\"completed\": 2,\n \"duration\": 4, \"output_throughput\": 1,\n" +
                          " \"itls\": [[0.1]], \"goodput\": NaN}\nShutting down {\n";
  const ImportedTable table = import_file("vllm", write("t.log", log), {});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(cell(table, 0, "completed"), "1");
  EXPECT_EQ(cell(table, 1, "completed"), "2");
  EXPECT_EQ(cell(table, 1, "request_throughput"), "0.5");
}

TEST_F(ServingBenchmarks, PrintedTablesAreRead) {
  const ImportedTable table = import_file("vllm", sample("vllm_table.log"), {});
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(cell(table, 0, "completed"), "100");
  EXPECT_EQ(cell(table, 0, "max_concurrency"), "16");
  EXPECT_EQ(cell(table, 0, "duration_s"), "20");
  EXPECT_EQ(cell(table, 0, "total_output_tokens"), "12800");
  EXPECT_EQ(cell(table, 0, "request_throughput"), "5");
  EXPECT_EQ(cell(table, 0, "output_throughput"), "640");
  EXPECT_EQ(cell(table, 0, "total_token_throughput"), "5760");
  EXPECT_EQ(cell(table, 0, "mean_ttft_ms"), "80.5");
  EXPECT_EQ(cell(table, 0, "p99_itl_ms"), "31");
  EXPECT_EQ(cell(table, 0, "mean_e2el_ms"), "1287");
  const ImportedTable sglang = import_file("sglang", sample("sglang_table.log"), {});
  ASSERT_EQ(sglang.rows.size(), 1U);
  EXPECT_EQ(cell(sglang, 0, "backend"), "sglang");
  EXPECT_EQ(cell(sglang, 0, "request_rate"), "inf");
  EXPECT_EQ(cell(sglang, 0, "max_concurrency"), "");
  EXPECT_EQ(cell(sglang, 0, "total_token_throughput"), "5760");
  EXPECT_EQ(cell(sglang, 0, "median_e2el_ms"), "3000");
  EXPECT_THAT(message_of([] { import_file("vllm", sample("sglang_table.log"), {}); }),
              HasSubstr("is a result of sglang's benchmark, not of vllm's"));
}

TEST_F(ServingBenchmarks, TablesBesideJsonAreCounted) {
  std::ifstream stream(sample("vllm_table.log"));
  const std::string printed{std::istreambuf_iterator<char>(stream), {}};
  const ImportedTable table = import_file("vllm", write("t.log", printed + kLeast + "\n"), {});
  EXPECT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(cell(table, 0, "completed"), "1");
  ASSERT_EQ(table.notes.size(), 1U);
  EXPECT_THAT(table.notes[0], HasSubstr("left out 1 printed table beside the results in JSON"));
}

TEST_F(ServingBenchmarks, ThroughputsThatLackAreCountsOverTheDuration) {
  const ImportedTable table =
      import_file("sglang",
                  write("t.jsonl",
                        "{\"backend\": \"sglang\", \"duration\": 4.0, \"completed\": 10, "
                        "\"total_output_tokens\": 1000}\n"),
                  {});
  EXPECT_EQ(cell(table, 0, "request_throughput"), "2.5");
  EXPECT_EQ(cell(table, 0, "output_throughput"), "250");
}

TEST_F(ServingBenchmarks, ResultsOfTheOtherProgramAreRefused) {
  EXPECT_THAT(
      message_of([] { import_file("vllm", sample("sglang.jsonl"), {}); }),
      HasSubstr("sglang.jsonl:1:2: error: is a result of sglang's benchmark, not of vllm's; "
                "read it by `orrery import sglang`"));
  EXPECT_THAT(message_of([] { import_file("sglang", sample("vllm.json"), {}); }),
              HasSubstr("is a result of vllm's benchmark, not of sglang's"));
  EXPECT_THAT(message_of([this] {
                import_file(
                    "vllm",
                    write("t.json", std::string("{\"backend\": \"sglang-oai\", ") + (kLeast + 1)),
                    {});
              }),
              HasSubstr("t.json:1:2: error: is a result of sglang's benchmark"));
}

}  // namespace
}  // namespace orrery::serving_benchmark_test
