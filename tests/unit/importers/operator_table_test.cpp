// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/operator_table.h"

#include <gmock/gmock.h>

#include "tests/unit/importers/scratch.h"

namespace orrery::operator_table_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kGemmText =
    "system,precision,m,n,k,latency_us,source\n"
    "h100_sxm,bf16,1,4096,8192,19.5,lab__2024\n"
    "h100_sxm,odd8,128,4096,8192,21,lab__2024\n"
    "h200_sxm,fp8,128,4096,8192,1.5e1,lab__2025\n";

using OperatorTables = Scratch;

TEST_F(OperatorTables, AGemmTableHasItsRowsAndTheirPlaces) {
  const std::string file = write("gemm.csv", kGemmText);
  const OperatorTable table = read_operator_table(file);
  EXPECT_EQ(table.kind, OperatorTableKind::kGemm);
  EXPECT_EQ(table.path, file);
  EXPECT_EQ(table.header, "system,precision,m,n,k,latency_us,source");
  EXPECT_THAT(table.systems, ElementsAre("h100_sxm", "h200_sxm"));
  EXPECT_THAT(table.sources, ElementsAre("lab__2024", "lab__2025"));
  ASSERT_EQ(table.rows.size(), 3U);
  const OperatorRow& last = table.rows[2];
  EXPECT_EQ(last.line, 4U);
  EXPECT_EQ(last.system, 1U);
  EXPECT_EQ(last.source, 1U);
  EXPECT_EQ(last.precision, "fp8");
  EXPECT_EQ(last.m, 128);
  EXPECT_EQ(last.n, 4096);
  EXPECT_EQ(last.k, 8192);
  EXPECT_EQ(last.latency_us, 15.0);
  EXPECT_EQ(last.text, "h200_sxm,fp8,128,4096,8192,1.5e1,lab__2025");
  EXPECT_EQ(table.rows[1].precision, "odd8");  // judged by who uses it
  EXPECT_EQ(table.rows[1].system, 0U);
}

TEST_F(OperatorTables, GzipReadsAsThePlainFile) {
  const OperatorTable plain = read_operator_table(write("gemm.csv", kGemmText));
  const OperatorTable packed = read_operator_table(write_gzip("gemm.csv.gz", kGemmText));
  ASSERT_EQ(packed.rows.size(), plain.rows.size());
  EXPECT_EQ(packed.header, plain.header);
  for (std::size_t i = 0; i < plain.rows.size(); ++i) {
    EXPECT_EQ(packed.rows[i].text, plain.rows[i].text);
    EXPECT_EQ(packed.rows[i].latency_us, plain.rows[i].latency_us);
  }
}

TEST_F(OperatorTables, TheKindFollowsFromTheColumns) {
  const auto kind = [this](const std::string& columns, const std::string& cells) {
    const std::string text =
        "system,precision," + columns + ",latency_us,source\nx,bf16," + cells + ",1,lab\n";
    return std::string(to_string(read_operator_table(write("t.csv", text)).kind));
  };
  EXPECT_EQ(kind("kv_precision,batch,q_len,kv_prefix_len,heads,kv_heads,head_dim,window",
                 "fp8,1,2,3,4,5,6,7"),
            "attention_prefill");
  EXPECT_EQ(kind("kv_precision,batch,kv_len,heads,kv_heads,head_dim,window", "fp8,1,2,3,4,5,6"),
            "attention_decode");
  EXPECT_EQ(kind("kv_precision,batch,q_len,kv_prefix_len,heads", "fp8,1,2,3,4"), "mla_prefill");
  EXPECT_EQ(kind("kv_precision,batch,kv_len,heads", "fp8,1,2,3"), "mla_decode");
  EXPECT_EQ(kind("tokens,hidden,expert_ffn,top_k,experts,moe_tp,moe_ep,distribution",
                 "1,2,3,4,5,6,7,uniform"),
            "moe");
}

TEST_F(OperatorTables, EveryColumnReachesItsMember) {
  const OperatorRow prefill =
      read_operator_table(write("p.csv",
                                "system,precision,kv_precision,batch,q_len,kv_prefix_len,heads,"
                                "kv_heads,head_dim,window,latency_us,source\n"
                                "x,bf16,fp8,1,2,3,4,5,6,7,8.5,lab\n"))
          .rows[0];
  EXPECT_EQ(prefill.kv_precision, "fp8");
  EXPECT_EQ((std::vector{prefill.batch, prefill.q_len, prefill.kv_prefix_len, prefill.heads,
                         prefill.kv_heads, prefill.head_dim, prefill.window}),
            (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7}));
  const OperatorRow moe =
      read_operator_table(write("m.csv",
                                "system,precision,tokens,hidden,expert_ffn,top_k,experts,moe_tp,"
                                "moe_ep,distribution,latency_us,source\n"
                                "x,bf16,1,2,3,4,5,6,7,uniform,8.5,lab\n"))
          .rows[0];
  EXPECT_EQ(moe.distribution, "uniform");
  EXPECT_EQ((std::vector{moe.tokens, moe.hidden, moe.expert_ffn, moe.top_k, moe.experts, moe.moe_tp,
                         moe.moe_ep}),
            (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(OperatorTables, ColumnsMayStandInAnyOrderAndFurtherOnesStayInTheText) {
  const OperatorTable table = read_operator_table(
      write("t.csv", "note,latency_us,k,n,m,source,precision,system\nhi,2,30,20,10,lab,fp16,x\n"));
  EXPECT_EQ(table.rows[0].m, 10);
  EXPECT_EQ(table.rows[0].k, 30);
  EXPECT_EQ(table.rows[0].text, "hi,2,30,20,10,lab,fp16,x");
}

constexpr const char* kTwoEngines =
    "system,framework,version,kernel,precision,m,n,k,latency_us,source\n"
    "h200_sxm,vllm,0.19.0,vllm_default,bf16,1,256,4096,5,s\n"
    "h200_sxm,vllm,0.24.0,torch.nn.functional.linear,bf16,1,256,4096,4,s\n"
    "h200_sxm,sglang,0.5.14,sglang_torch_linear,bf16,1,256,4096,6,s\n"
    "h200_sxm,vllm,0.24.0,torch.nn.functional.linear,bf16,2,256,4096,7,s\n";

TEST_F(OperatorTables, RowsKnowTheEngineAndTheVersionThatWereMeasured) {
  const OperatorTable table = read_operator_table(write("t.csv", kTwoEngines));
  const std::vector<MeasuredEngine> engines = {
      {"vllm", "0.19.0"}, {"vllm", "0.24.0"}, {"sglang", "0.5.14"}};
  EXPECT_EQ(table.engines, engines);
  EXPECT_EQ(table.rows.at(2).engine, 2U);
  EXPECT_EQ(table.rows.at(3).engine, 1U);
}

TEST_F(OperatorTables, RowsThatMissAConditionAreNotRead) {
  const OperatorTable table = read_operator_table(
      write("t.csv", kTwoEngines), row_conditions({"framework=vllm", "version=0.24.0"}));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].latency_us, 4);
  EXPECT_EQ(table.rows[1].latency_us, 7);
  EXPECT_EQ(table.engines.size(), 1U);
}

TEST_F(OperatorTables, AConditionMayNameSeveralValues) {
  const OperatorTable table =
      read_operator_table(write("t.csv", kTwoEngines), row_conditions({"version=0.19.0,0.5.14"}));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].latency_us, 5);
  EXPECT_EQ(table.rows[1].latency_us, 6);
}

TEST_F(OperatorTables, AConditionOnAColumnThatIsMissingNamesTheOneThatWasMeant) {
  EXPECT_THAT(message_of([this] {
                read_operator_table(write("t.csv", kTwoEngines), row_conditions({"verson=0.24.0"}));
              }),
              HasSubstr("there is no column 'verson'; is it 'version'?"));
  EXPECT_THAT(message_of([] { row_conditions({"0.24.0"}); }),
              HasSubstr("'0.24.0' is no condition on a column"));
}

TEST_F(OperatorTables, WrongCellsAreNamedTogetherWithTheirPlaces) {
  const std::string message = message_of([this] {
    read_operator_table(write("t.csv",
                              "system,precision,m,n,k,latency_us,source\n"
                              "x,bf16,-1,2,3,4,lab\n"
                              "x,bf16,1,2.5,3,4,lab\n"
                              "x,bf16,1,2,3,0,lab\n"
                              "x,bf16,1,2,3,nan,lab\n"
                              ",bf16,1,2,3,4,lab\n"
                              "x,bf16,1,2,3,lab\n"));
  });
  EXPECT_THAT(message, HasSubstr("t.csv:2:8: error: 'm' is a whole number from 0 on, not '-1'\n"
                                 "    2 | x,bf16,-1,2,3,4,lab\n"
                                 "      |        ^~\n"));
  EXPECT_THAT(message, HasSubstr("t.csv:3:10: error: 'n' is a whole number from 0 on, not '2.5'"));
  EXPECT_THAT(message,
              HasSubstr("t.csv:4:14: error: 'latency_us' is a finite number above 0, not '0'"));
  EXPECT_THAT(message,
              HasSubstr("t.csv:5:14: error: 'latency_us' is a finite number above 0, not 'nan'"));
  EXPECT_THAT(message, HasSubstr("t.csv:6:1: error: 'system' is empty"));
  EXPECT_THAT(message, HasSubstr("t.csv:7:1: error: 6 cells, but there are 7 columns"));
}

TEST_F(OperatorTables, AMissingColumnIsNamedWithTheOneThatWasMeant) {
  const std::string message = message_of(
      [this] { read_operator_table(write("t.csv", "system,precison,m,n,k\nx,bf16,1,2,3\n")); });
  EXPECT_THAT(message, HasSubstr("t.csv:1:1: error: there is no column 'precision'; is it "
                                 "'precison'?"));
  EXPECT_THAT(message, HasSubstr("there is no column 'latency_us'\n"));
}

TEST_F(OperatorTables, TheSourceAndTheBatchOfAGemmMayBeMissing) {
  const OperatorTable plain =
      read_operator_table(write("t.csv", "system,precision,m,n,k,latency_us\nx,bf16,1,2,3,4\n"));
  EXPECT_EQ(plain.rows.at(0).batch, 0);
  EXPECT_EQ(plain.sources.at(0), "");
  const OperatorTable batched = read_operator_table(
      write("t.csv", "system,precision,batch,m,n,k,latency_us\nx,bf16,8,1,2,3,4\n"));
  EXPECT_EQ(batched.rows.at(0).batch, 8);
}

TEST_F(OperatorTables, MicrobenchmarksHaveKindsOfTheirOwn) {
  const OperatorTable stream = read_operator_table(write(
      "s.csv", "system,read_share,bytes,ctas,bytes_per_s,latency_us\nx,0.5,1048576,132,1,4\n"));
  EXPECT_EQ(stream.kind, OperatorTableKind::kHbmStream);
  EXPECT_EQ(stream.rows.at(0).read_share, 0.5);
  EXPECT_EQ(stream.rows.at(0).ctas, 132);
  const OperatorTable rows = read_operator_table(write(
      "r.csv",
      "system,kernel,rows,cols,read_bytes,written_bytes,latency_us\nx,softmax,2,3,12,24,4\n"));
  EXPECT_EQ(rows.kind, OperatorTableKind::kRowKernels);
  EXPECT_EQ(rows.rows.at(0).kernel, "softmax");
  EXPECT_EQ(rows.rows.at(0).written_bytes, 24);
  const OperatorTable launch = read_operator_table(write(
      "l.csv", "system,test,kernel,kernels,us_per_kernel,latency_us\nx,graph,empty,100,0.6,60\n"));
  EXPECT_EQ(launch.kind, OperatorTableKind::kLaunch);
  EXPECT_EQ(launch.rows.at(0).latency_us, 0.6);
}

TEST_F(OperatorTables, BlocksAndKernelsOfSparseAttentionAreToldByTheirColumns) {
  const std::string head =
      "system,framework,version,kernel,model,precision,kv_precision,gemm_precision,batch,";
  const std::string row = "x,vllm,0.24.0,K,GLM-5,bf16,fp8,fp8_block,2,";
  const OperatorTable decode =
      read_operator_table(write("d.csv", head + "kv_len,heads,latency_us\n" + row + "100,16,4\n"));
  EXPECT_EQ(decode.kind, OperatorTableKind::kBlockDecode);
  EXPECT_EQ(decode.rows.at(0).gemm_precision, "fp8_block");
  EXPECT_EQ(decode.rows.at(0).kernel, "K");
  EXPECT_EQ(decode.rows.at(0).compress_ratio, 0);
  const OperatorTable prefill = read_operator_table(write(
      "p.csv",
      head + "q_len,kv_prefix_len,heads,compress_ratio,latency_us\n" + row + "100,5,16,4,4\n"));
  EXPECT_EQ(prefill.kind, OperatorTableKind::kBlockPrefill);
  EXPECT_EQ(prefill.rows.at(0).compress_ratio, 4);
  const auto parts = [&](const std::string& operation) {
    return read_operator_table(write("s.csv", head + "q_len,kv_prefix_len,heads,operation," +
                                                  "score_mode,latency_us\n" + row + "100,5,16," +
                                                  operation + ",,4\n"));
  };
  EXPECT_EQ(parts("a_topk_b").kind, OperatorTableKind::kSparseParts);
  EXPECT_EQ(parts("a_topk_b").rows.at(0).operation, "a_topk_b");
  EXPECT_THAT(message_of([&] { parts("norm"); }),
              HasSubstr("'operation' has logits, topk or attn in it"));
}

TEST_F(OperatorTables, NothingInFrontOfACommaIsAnEmptyCell) {
  const std::string table =
      write("t.csv",
            "system,precision,m,n,k,note,latency_us\nx,bf16,1,2,3,,4\nx,bf16,5,2,3,a,4\n"
            "x,bf16,6,2,3,b,4\n");
  EXPECT_EQ(read_operator_table(table, row_conditions({"note=,a"})).rows.size(), 2U);
  EXPECT_EQ(read_operator_table(table, row_conditions({"note="})).rows.size(), 1U);
  EXPECT_EQ(read_operator_table(table, row_conditions({"note=a,b"})).rows.size(), 2U);
}

TEST_F(OperatorTables, AShareIsNoMoreThanOne) {
  EXPECT_THAT(message_of([this] {
                read_operator_table(write(
                    "s.csv", "system,read_share,bytes,ctas,latency_us\nx,1.5,1048576,132,4\n"));
              }),
              HasSubstr("s.csv:2:3: error: 'read_share' is a number from 0 to 1, not '1.5'"));
}

TEST_F(OperatorTables, OtherTablesAreRefused) {
  EXPECT_THAT(message_of([this] { read_operator_table(write("t.csv", "a,b\n1,2\n")); }),
              HasSubstr("t.csv:1:1: error: these are not the columns of an operator table"));
  // An attention table without head_dim is no MLA table.
  EXPECT_THAT(message_of([this] {
                read_operator_table(write("t.csv",
                                          "system,precision,kv_precision,batch,kv_len,heads,"
                                          "kv_heads,window,latency_us,source\n"));
              }),
              HasSubstr("there is no column 'head_dim'"));
}

TEST_F(OperatorTables, AFileThatCannotBeReadIsNamedWithTheReason) {
  EXPECT_THAT(message_of([this] { read_operator_table(path("absent.csv")); }),
              HasSubstr("absent.csv: cannot be read: no such file"));
  const std::string packed = write_gzip("cut.csv.gz", kGemmText);
  std::filesystem::resize_file(packed, std::filesystem::file_size(packed) / 2);
  EXPECT_THAT(message_of([&] { read_operator_table(packed); }),
              HasSubstr("cut.csv.gz: cannot be read: the gzip data ends too early"));
}

/// The rows that are kept in the repository (validation/measured).
TEST(MeasuredTables, AreReadWhole) {
  const std::vector<std::pair<OperatorTableKind, std::size_t>> rows = {
      {OperatorTableKind::kGemm, 90},
      {OperatorTableKind::kAttentionPrefill, 78},
      {OperatorTableKind::kAttentionDecode, 54},
      {OperatorTableKind::kMlaPrefill, 54},
      {OperatorTableKind::kMlaDecode, 48},
      {OperatorTableKind::kMoe, 54}};
  for (const auto& [kind, count] : rows) {
    const std::string name = to_string(kind);
    const OperatorTable table =
        read_operator_table(ORRERY_SOURCE_DIR "/validation/measured/" + name + ".csv");
    EXPECT_EQ(table.kind, kind) << name;
    EXPECT_EQ(table.rows.size(), count) << name;
    EXPECT_GE(table.systems.size(), 2U) << name;
  }
}

}  // namespace
}  // namespace orrery::operator_table_test
