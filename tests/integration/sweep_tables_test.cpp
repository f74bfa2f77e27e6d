// SPDX-License-Identifier: Apache-2.0
// Tables of sweeps and of questions to a store: rows, columns, reasons.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/integration/program.h"

namespace sweep_tables_test {
namespace {

using integration::orrery;
using integration::Outcome;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kDecode =
    "{experiment: inference, system: dgx_h100, model: llama_3_1_8b, phase: decode, kv_length: "
    "1024, parallel: {tp: 8}, batch: {micro: 4}, precision: bf16}";
constexpr const char* kGemm =
    "{experiment: operator, system: dgx_h100, operator: {kind: gemm, m: 64, n: 64, k: 64}}";
/// A variant whose weights no rank holds.
constexpr const char* kVariants =
    "    variants:\n      - {name: small}\n      - {name: large, model: llama_3_1_405b, "
    "parallel.tp: 1}\n";

class SweepTables : public integration::InFolder {
 protected:
  Outcome sweep(const std::string& base, const std::string& rest,
                const std::string& options = "") const {
    write("sweep.yaml", "sweep: ladder\ncases:\n  - name: table\n    base: " + base + "\n" + rest);
    return orrery("sweep run " + path("sweep.yaml") + " --db " + path("s.db") + options);
  }
};

TEST_F(SweepTables, TheValueThatChoosePickedIsAColumn) {
  const Outcome run = sweep(kDecode,
                            "    axes: {grid: {kv_length: [512, 1024], batch.micro: [1, 2]}}\n"
                            "    choose: {minimize: step_time_s}\n");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, ContainsRegex("system +kv_length +plan +batch"));
  EXPECT_THAT(run.out, ContainsRegex("table +512 +8 ranks: TP8 +1/rank"));
}

TEST_F(SweepTables, APickedValueThatAnotherColumnSaysHasNoColumnOfItsOwn) {
  const Outcome run = sweep(kDecode,
                            "    axes: {grid: {parallel.tp: [4, 8]}}\n"
                            "    choose: {minimize: step_time_s}\n");
  EXPECT_THAT(run.out, ContainsRegex("system +plan +batch"));
  const Outcome columns = sweep(kDecode,
                                "    axes: {grid: {parallel.tp: [4, 8], kv_length: [512, 1024]}}\n"
                                "    choose: {minimize: step_time_s}\n"
                                "    table: {columns: [kv_length, step_time_s]}\n");
  EXPECT_THAT(columns.out, ContainsRegex("system +tp +kv_length +step_time_s\n"));
}

TEST_F(SweepTables, AVariantWithoutAnyResultKeepsItsRowAndOneReason) {
  const Outcome run = sweep(kDecode, std::string(kVariants) +
                                         "    axes: {grid: {kv_length: [512, 1024, 2048]}}\n"
                                         "    choose: {minimize: step_time_s, at_most: "
                                         "{step_time_s: 1 s}}\n");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, ContainsRegex("large +512 +1 ranks: TP1 +4/rank +does not fit"));
  EXPECT_THAT(run.out, HasSubstr("3 infeasible"));
  const std::string begin = "  large: does not fit: ";
  ASSERT_THAT(run.out, HasSubstr(begin));
  EXPECT_EQ(run.out.find(begin), run.out.rfind(begin));
  EXPECT_THAT(run.out, HasSubstr(" (the first of 3 points)\n"));
}

TEST_F(SweepTables, TheSameReasonIsPrintedOnceWithItsCount) {
  const Outcome run = sweep(kDecode,
                            "    axes: {grid: {parallel.tp: [8, 16], kv_length: [512, 1024]}}\n"
                            "    choose: {minimize: step_time_s}\n");
  EXPECT_THAT(run.out,
              ContainsRegex("\n  table: cannot be: tp .* = 16 ranks, .* \\(2 points\\)\n"));
}

TEST_F(SweepTables, AVariantThatARuleExcludesKeepsItsRowAndTheRuleIsExplained) {
  const Outcome run = sweep(kDecode, std::string(kVariants) + "    where: [memory.fits]\n");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, AllOf(ContainsRegex("\nlarge +- +- "),
                             HasSubstr("  large: all points are excluded: 1 by memory.fits "
                                       "(whether every rank fits in its memory)"),
                             HasSubstr("excluded: 1 by memory.fits (whether every rank fits")));
  // A text stands for a list of one.
  EXPECT_THAT(sweep(kDecode, std::string(kVariants) + "    where: ranks >= 2\n").out,
              HasSubstr("excluded: 1 by ranks >= 2 (ranks: ranks of the plan)"));
}

TEST_F(SweepTables, ALargeSweepSaysHowToGetTheBestOfEachRow) {
  const Outcome run = sweep(
      kGemm,
      "    variants: [{name: A}, {name: B, operator.k: 128}]\n    axes: {grid: {operator.m: "
      "{range: "
      "{from: 1, to: 2501, step: 1}}}}\n    choose: {maximize: flops_per_s, at_most: {time_s: "
      "50 us}}\n");
  ASSERT_EQ(run.code, 0) << run.out;
  const std::string command =
      "best " + path("s.db") + " --maximize flops_per_s --by name --where \"time_s <= 50 us\"";
  EXPECT_THAT(run.out, AllOf(HasSubstr("a table shows at most 5,000 places"),
                             HasSubstr("; try: orrery " + command + "\n")));
  const Outcome best = orrery(command);
  EXPECT_EQ(best.code, 0) << best.out;
  EXPECT_THAT(best.out, AllOf(ContainsRegex("point +name +"), ContainsRegex("\n[0-9a-f]+ +A +"),
                              ContainsRegex("\n[0-9a-f]+ +B +"), HasSubstr("2 best of 5002")));
}

TEST_F(SweepTables, BestHasAPointOfEachValueOfAField) {
  ASSERT_EQ(sweep(kDecode,
                  "    variants: [{name: a, system: dgx_h100}, {name: b, system: dgx_a100}]\n"
                  "    axes: {grid: {batch.micro: [1, 16]}}\n")
                .code,
            0);
  const auto json = nlohmann::json::parse(
      orrery("best " + path("s.db") + " --maximize tokens_per_s --by system --json", false).out);
  ASSERT_EQ(json.at("points").size(), 2U);
  EXPECT_EQ(json.at("points")[0].at("by"), "dgx_h100");
  EXPECT_EQ(json.at("points")[1].at("by"), "dgx_a100");
  const auto two = nlohmann::json::parse(
      orrery("best " + path("s.db") + " --maximize tokens_per_s --by system --top 2 --json", false)
          .out);
  EXPECT_EQ(two.at("points").size(), 4U);
}

TEST_F(SweepTables, AMisspeltPartIsSuggestedByItsName) {
  sweep(kDecode, "    axes: {grid: {batch.micro: [1, 16]}}\n");
  const Outcome run = orrery("best " + path("s.db") + " --minimize step_time_s --by sytem");
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.out, HasSubstr("no result of this store has 'sytem'; did you mean 'system'?"));
}

TEST_F(SweepTables, ColumnsPicksThoseOfEveryTable) {
  const std::string axes = "    axes: {grid: {batch.micro: [1, 16]}}\n";
  const Outcome run = sweep(kDecode, axes, " --columns 'model, tokens_per_s'");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, ContainsRegex("system +model +tokens_per_s\n"));
  EXPECT_THAT(run.out, ContainsRegex("table, micro 1 +llama_3_1_8b +[0-9]"));
  const Outcome typo = sweep(kDecode, axes, " --columns model,tokens_per");
  EXPECT_EQ(typo.code, 2);
  EXPECT_THAT(typo.out, AllOf(HasSubstr("--columns:1:7: error: unknown metric 'tokens_per'"),
                              HasSubstr("did you mean 'tokens_per_s'?")));
  for (const char* question : {"best", "pareto"}) {
    const std::string words = std::string(question) + " " + path("s.db") +
                              " --minimize step_time_s --columns model,bound,batch.micro";
    const Outcome wrong = orrery(words);
    EXPECT_EQ(wrong.code, 2) << question;
    EXPECT_THAT(wrong.out, HasSubstr("no result of this store has 'bound'"));
    const std::string right = std::string(question) + " " + path("s.db") +
                              " --minimize step_time_s --columns model,batch.micro,step_time_s";
    EXPECT_THAT(orrery(right).out, ContainsRegex("point +model +batch.micro +step_time_s"));
    EXPECT_THAT(
        orrery(right + " --csv").out,
        HasSubstr("identity,name,experiment,model,batch.micro,step_time_s,step_time_s.p10"));
    const auto json = nlohmann::json::parse(orrery(right + " --json", false).out);
    EXPECT_EQ(json.at("points")[0].at("columns").at("model"), "llama_3_1_8b");
    EXPECT_EQ(json.at("points")[0].at("columns").at("batch.micro"), 1);
  }
}

TEST_F(SweepTables, RowsOfModelsAreCalledByTheirNames) {
  const Outcome run = sweep(kDecode,
                            "    axes: {grid: {model: [llama_3_1_8b, qwen3_8b]}}\n"
                            "    table: {rows: [model]}\n");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, AllOf(ContainsRegex("\nmodel llama_3_1_8b +8 ranks"),
                             ContainsRegex("\nmodel qwen3_8b +8 ranks")));
}

TEST_F(SweepTables, AnExportHasTheNamesOfTheLibraryNotItsFiles) {
  ASSERT_EQ(sweep(kDecode, "    axes: {grid: {batch.micro: [1, 2]}}\n").code, 0);
  const Outcome csv = orrery("export " + path("s.db") + " --csv", false);
  EXPECT_THAT(csv.out, AllOf(HasSubstr(",batch.micro,system.system,model.model,"),
                             HasSubstr(",dgx_h100,llama_3_1_8b,")));
  const std::string identity = csv.out.substr(csv.out.find('\n') + 1, 12);
  const Outcome point = orrery("export " + path("s.db") + " --reproduce " + identity, false);
  EXPECT_THAT(point.out, AllOf(HasSubstr("\nmodel: llama_3_1_8b\n"),
                               HasSubstr("\nsystem: dgx_h100\n"), Not(HasSubstr("configs/"))));
}

TEST_F(SweepTables, LimitsAndConditionsTakeTheUnitsThatPeopleWrite) {
  const auto chosen = [&](const std::string& limit) {
    const Outcome run = sweep(kDecode,
                              "    axes: {grid: {batch.micro: [1, 64]}}\n    choose: {maximize: "
                              "batch.micro, at_least: {tokens_per_s: " +
                                  limit + "}}\n");
    EXPECT_EQ(run.code, 0) << limit << run.out;
    return run.out;
  };
  for (const char* limit : {"100", "100 /s", "0.1k", "100 1/s", "6000 /min"})
    EXPECT_THAT(chosen(limit), ContainsRegex("table +8 ranks: TP8 +64/rank")) << limit;
  for (const char* condition : {"tokens_per_s >= 100 /s", "tokens_per_s >= 0.1k",
                                "tokens_per_s / parallel.tp >= 12", "kv_length >= 1k"})
    EXPECT_EQ(
        orrery("best " + path("s.db") + " --minimize step_time_s --where '" + condition + "'").code,
        0)
        << condition;
}

TEST_F(SweepTables, AMistakeInAFileThatVariantsNameIsOneError) {
  write("chip.yaml", "extends: h100_sxm\naccelerator: chip\ncompute: {unitz: 100}\n");
  const Outcome run = sweep(kDecode,
                            "    variants:\n      - {name: a}\n      - {name: b, "
                            "system.accelerator: ./chip.yaml}\n"
                            "    axes: {grid: {batch.micro: [1, 2, 4]}}\n");
  EXPECT_EQ(run.code, 2);
  const std::size_t first = run.out.find("error: ");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(run.out.find("error: ", first + 1), std::string::npos) << run.out;
}

TEST_F(SweepTables, ABrokenFileOfAVariantIsAnErrorAndNoPointThatCannotBe) {
  write("broken.yaml", "usd_per_hour: [1\n");
  write("broken.json", R"({"model_type": "llama", "hiden_size": 4096})");
  write("broken.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2026-01-05 09:00:00,5\n");
  const auto code = [&](const std::string& base, const std::string& setting) {
    const Outcome run =
        sweep(base, "    variants:\n      - {name: a}\n      - {name: b, " + setting + "}\n");
    return run.code == 2 ? "refused" : run.out;
  };
  for (const char* setting :
       {"prices: ./broken.yaml", "prices: nosuch", "calibration: nosuch", "model: ./broken.json"})
    EXPECT_EQ(code(kDecode, setting), "refused") << setting;
  EXPECT_EQ(code(ORRERY_SOURCE_DIR "/configs/experiments/serving_trace.yaml",
                 "serving.workload.trace: " + path("broken.csv")),
            "refused");
}

// A name that nothing has is a mistake of the file, whatever the other values of its row are.
TEST_F(SweepTables, AnUnknownNameOfAVariantIsAnErrorAtItsPlace) {
  const std::string training =
      "{experiment: training, system: dgx_h100, model: llama_3_1_8b, parallel: {tp: 8}, batch: "
      "{global: 8, micro: 1, sequence: 2048}}";
  const std::string served =
      "{experiment: serving, model: llama_3_1_8b, serving: {workload: {rate: 1 /s, requests: 2, "
      "input: 30, output: 3}, fleet: [{system: dgx_h100, engine: {kind: vllm}}]}}";
  const std::string reduced =
      "{experiment: collective, system: dgx_h100, collective: {kind: all_reduce, bytes: 1 MB, "
      "ranks: 8}}";
  struct Case {
    std::string base, key, wrong, meant;
  };
  for (const Case& c : {Case{served, "serving.router", "round_robinn", "round_robin"},
                        {training, "schedule", "1f1bb", "1f1b"},
                        {training, "algorithms", "rng", "ring"},
                        {training, "system.scale_up.kind", "nvswich", "nvswitch"},
                        {reduced, "collective.algorithm", "rinng", "ring"},
                        {reduced, "collective.protocol", "simpel", "simple"}}) {
    const std::string row = "      - {name: b, " + c.key + ": " + c.wrong + "}";
    const Outcome run = sweep(c.base, "    variants:\n      - {name: a}\n" + row + "\n");
    EXPECT_EQ(run.code, 2) << c.key << run.out;
    const std::string at = "sweep.yaml:7:" + std::to_string(row.find(c.wrong) + 1) + ": error: ";
    EXPECT_THAT(run.out, AllOf(HasSubstr(at),
                               HasSubstr("'" + c.wrong + "'; did you mean '" + c.meant + "'?"),
                               HasSubstr(row + "\n"), HasSubstr(" ^~"),
                               AnyOf(HasSubstr("there are: "), HasSubstr("allowed: "))));
  }
}

}  // namespace
}  // namespace sweep_tables_test
