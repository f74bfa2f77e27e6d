// SPDX-License-Identifier: Apache-2.0
// What explain, describe and check tell a user.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/integration/program.h"

namespace answers_test {
namespace {

using namespace integration;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Answers : public InFolder {
 protected:
  std::string experiment(const std::string& more) const {
    return write("e.yaml", "{system: dgx_h100, " + more + "}\n");
  }
  std::string decode(const std::string& more = "") const {
    return experiment(
        "experiment: inference, model: {dimensions: {layers: 2, hidden: 1024, heads: 8, "
        "vocabulary: 8192}}, phase: decode, kv_length: 512, parallel: {tp: 8}, batch: {micro: 2}" +
        more);
  }
  /// A model of two layers of four experts with a vision tower, in nvfp4 but for attention.
  std::string model_file() const {
    return write("config.json", R"({"model_type": "some_vl",
      "text_config": {"model_type": "qwen3_moe", "hidden_size": 512, "num_hidden_layers": 2,
        "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 64,
        "intermediate_size": 1024, "moe_intermediate_size": 256, "num_experts": 4,
        "num_experts_per_tok": 2, "vocab_size": 1000},
      "vision_config": {"hidden_size": 1152, "intermediate_size": 4304, "depth": 27},
      "quantization_config": {"quant_method": "modelopt",
        "kv_cache_scheme": {"num_bits": 8, "type": "float", "dynamic": false}, "ignore": ["model.layers.*.self_attn*"],
        "config_groups": {"group_0": {"targets": ["Linear"],
          "weights": {"num_bits": 4, "type": "float", "group_size": 16},
          "input_activations": {"num_bits": 4, "type": "float", "group_size": 16}}}}})");
  }
};

TEST_F(Answers, ExplainBeginsWithTheStepAndWhatLimitsIt) {
  const Outcome run = orrery("explain --config " + decode(", name: small"), false);
  ASSERT_EQ(run.code, 0);
  EXPECT_THAT(run.out, StartsWith("inference: small\nstep time "));
  const auto at = [&run](const char* text) { return run.out.find(text); };
  EXPECT_LT(at("p10 to p90"), at("where the time goes"));
  EXPECT_LT(at("exposed_communication"), at("kernels by what limits them"));
  EXPECT_LT(at("kernels by what limits them"), at("kernels by class"));
  EXPECT_LT(at("longest kernels"), at("memory of a rank: weights"));
  EXPECT_LT(at("memory of a rank: weights"), at("inputs that had no effect"));
  EXPECT_LT(at("inputs that had no effect"), at("h100_sxm.yaml:28:"));  // of a rate that has one
}

TEST_F(Answers, SharesOfExplainAreOfTheStep) {
  const auto json = nlohmann::json::parse(orrery("explain --json " + decode(), false).out);
  const double step = json.at("time").at("value");
  EXPECT_GT(json.at("time").at("p90"), step);
  double parts = 0, bounds = 0, classes = 0, kernels = 0;
  for (const auto& row : json.at("breakdown")) parts += row.at("share").get<double>();
  for (const auto& row : json.at("bounds")) bounds += row.at("time_s").get<double>();
  for (const auto& row : json.at("classes")) classes += row.at("time_s").get<double>();
  for (const auto& row : json.at("kernels")) kernels += row.at("total_s").get<double>();
  EXPECT_NEAR(parts, 1, 1e-6);
  EXPECT_NEAR(bounds, kernels, 1e-12);
  EXPECT_NEAR(classes, kernels, 1e-12);
  EXPECT_EQ(json.at("longest").size(), 10U);
  EXPECT_GE(json.at("longest")[0].at("share"), json.at("longest")[9].at("share"));
}

// At 300 W the units of an H100 are far below their 1.98 GHz.
TEST_F(Answers, ExplainShowsKernelsAtTheClocksAtWhichTheyRan) {
  const std::string what =
      "--json " +
      experiment(
          "experiment: training, calibration: none, model: {dimensions: {layers: 1, hidden: "
          "4096, heads: 32, vocabulary: 8192}}, parallel: {tp: 2}, batch: {global: 2, "
          "micro: 2, sequence: 2048}") +
      " --set 'system.accelerator.power.limit=300 W'";
  const auto run = nlohmann::json::parse(orrery("run " + what, false).out).at("metrics");
  const auto explained = nlohmann::json::parse(orrery("explain " + what, false).out);
  // Launches that hold up the units are the host's part.
  double busy = 0, kernels = 0;
  for (const char* part : {"compute", "optimizer", "host"})
    busy += run.at("breakdown." + std::string(part) + "_s").get<double>();
  for (const auto& row : explained.at("kernels")) {
    kernels += row.at("total_s").get<double>();
    EXPECT_LT(row.at("clock_hz"), 1.5e9) << row.at("name");
  }
  EXPECT_NEAR(kernels, busy, 1e-9 * busy);
  EXPECT_EQ(explained.at("breakdown")[0].at("time_s"), run.at("breakdown.compute_s"));
}

// The largest change first; what a switch would change is what a run with it says.
TEST_F(Answers, ExplainSaysWhatEachSwitchOfTheSoftwareCosts) {
  const std::string step = experiment(
      "experiment: training, calibration: none, model: {dimensions: {layers: 2, hidden: 1024, "
      "heads: 8, vocabulary: 8192}}, parallel: {tp: 2, sp: true}, batch: {global: 2, sequence: "
      "512}");
  const auto told = nlohmann::json::parse(orrery("explain --switches --json " + step, false).out);
  double last = 1e9;
  for (const auto& row : told.at("switches")) {
    const double change = row.at("change_s");
    EXPECT_LE(std::abs(change), last);
    last = std::abs(change);
    EXPECT_NEAR(row.at("step_time_s").get<double>() - told.at("time").at("value").get<double>(),
                change, 1e-12);
    if (row.at("switch") != "tp_overlap" || row.at("other") != "none") continue;
    const auto run = nlohmann::json::parse(
        orrery("run --json " + step + " --set software.tp_overlap=none", false).out);
    EXPECT_EQ(run.at("metrics").at("step_time_s"), row.at("step_time_s"));
    EXPECT_GT(change, 0);
  }
  double modules = 0, classes = 0;
  for (const auto& row : told.at("modules")) modules += row.at("time_s").get<double>();
  for (const auto& row : told.at("classes")) classes += row.at("time_s").get<double>();
  EXPECT_NEAR(modules, classes, 1e-12);
}

TEST_F(Answers, InputsWithoutEffectAreThereForOperatorsAndCollectives) {
  const auto no_effect = [](const std::string& file) {
    return nlohmann::json::parse(orrery("explain --json " + file, false).out).at("no_effect");
  };
  const auto gemm =
      no_effect(experiment("experiment: operator, operator: {m: 512, n: 512, k: 512}"));
  EXPECT_THAT(gemm, AllOf(Contains("nodes"), Contains("system.accelerator.scale_up.bandwidth"),
                          Not(Contains("batch.sequence")),  // a key of other kinds
                          Not(Contains("system.accelerator.memory.bandwidth"))));
  const auto reduce =
      no_effect(experiment("experiment: collective, collective: {kind: all_reduce, bytes: 1 MiB}"));
  EXPECT_THAT(reduce, AllOf(Contains("system.accelerator.compute.matrix.bf16"),
                            Contains("system.host.memory"), Not(Contains("parallel.tp")),
                            Not(Contains("collective.bytes"))));
}

TEST_F(Answers, AModelFileIsCheckedAndDescribedByItsPath) {
  const std::string file = model_file();
  const Outcome check = orrery("check " + file);
  EXPECT_EQ(check.code, 0) << check.out;
  EXPECT_THAT(check.out, AllOf(HasSubstr("vision tower left out"), HasSubstr("config.json: ok")));
  const Outcome described = orrery("describe model " + file);
  EXPECT_EQ(described.code, 0) << described.out;
  EXPECT_THAT(described.out, AllOf(HasSubstr("about 411 M parameters"), HasSubstr("nvfp4")));
  const Outcome wrong = orrery("check " + write("wrong.json", "{\"model_type\": 1}"));
  EXPECT_EQ(wrong.code, 2) << wrong.out;
}

TEST_F(Answers, ACheckpointSetsThePrecisionsThatNobodyWrote) {
  const auto written = [this](const std::string& key, const std::string& more) {
    const Outcome run = orrery(
        "run --json " +
            write("q.yaml",
                  "{system: gb200_nvl72, experiment: inference, model: {hf: " + model_file() +
                      "}, phase: decode, kv_length: 512, batch: {micro: 2}" + more + "}"),
        false);
    EXPECT_EQ(run.code, 0);
    const auto json = nlohmann::json::parse(run.out);
    for (const auto& row : json.at("parameters"))
      if (row.at("path") == key) return row;
    return nlohmann::json();
  };
  EXPECT_EQ(written("precision", "").at("text"), "nvfp4");
  EXPECT_THAT(written("precision", "").at("origin"), HasSubstr("config.json"));
  EXPECT_EQ(written("precision", ", precision: bf16").at("text"), "bf16");
  EXPECT_EQ(written("kv_precision", "").at("text"), "fp8");
  EXPECT_THAT(written("kv_precision", "").at("origin"), HasSubstr("config.json"));
  EXPECT_EQ(written("kv_precision", ", kv_precision: bf16").at("text"), "bf16");
}

// Experts of 4 bits on a Hopper, which has no products of them: bf16 ones widen them (vLLM:
// Marlin).
TEST_F(Answers, ACheckpointIsWidenedWhereTheAcceleratorHasNoProductsOfItsFormat) {
  const auto run = [this](const std::string& system, const std::string& more) {
    const Outcome outcome = orrery(
        "run --json " +
            write("q.yaml", "{system: " + system +
                                ", experiment: inference, model: {hf: " + model_file() +
                                "}, phase: decode, kv_length: 512, batch: {micro: 2}" + more + "}"),
        false);
    EXPECT_EQ(outcome.code, 0);
    return nlohmann::json::parse(outcome.out);
  };
  const auto metric = [](const nlohmann::json& result, const char* name) {
    return result.at("metrics").at(name).get<double>();
  };
  constexpr const char* kWeights = "memory.weights_bytes";
  const auto hopper = run("dgx_h100", ""), blackwell = run("gb200_nvl72", "");
  for (const auto& row : hopper.at("parameters")) {
    if (row.at("path") == "precision") {
      EXPECT_EQ(row.at("text"), "bf16");
    }
  }
  EXPECT_GT(metric(hopper, kWeights), 0);
  EXPECT_EQ(metric(hopper, kWeights), metric(blackwell, kWeights));
  // What came from the file may as well be written.
  const std::string wide = ", precision: bf16";
  EXPECT_EQ(metric(run("dgx_h100", wide), "step_time_s"), metric(hopper, "step_time_s"));
  EXPECT_GT(metric(run("gb200_nvl72", wide), kWeights), metric(blackwell, kWeights));
  const Outcome asked =
      orrery("run " + write("n.yaml",
                            "{system: dgx_h100, experiment: inference, model: "
                            "llama_3_1_8b, phase: decode, kv_length: 512, batch: {micro: 2}, "
                            "precision: nvfp4}"));
  EXPECT_EQ(asked.code, 2);
  EXPECT_THAT(asked.out, HasSubstr("has no matrix rate for 'nvfp4'; it has "));
}

TEST_F(Answers, AcceleratorsStandSideBySideWithRatios) {
  const Outcome run = orrery("describe accelerators h200_sxm b200_sxm");
  ASSERT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, testing::ContainsRegex("compute.units +132 +148 +1.12x"));
}

TEST_F(Answers, ControlCharactersInNamesAreWrittenOut) {
  const std::string file = decode(", name: \"\\e[2Jcleared\\n\\u009b\"");
  for (const char* verb : {"run ", "run --json "}) {
    const Outcome run = orrery(verb + file, false);
    EXPECT_EQ(run.code, 0) << run.out;
    EXPECT_EQ(run.out.find('\x1b'), std::string::npos) << verb;
    EXPECT_EQ(run.out.find("\xc2\x9b"), std::string::npos) << verb;
    EXPECT_THAT(run.out, HasSubstr("x1b[2Jcleared"));
  }
}

// Parts of a request's time and of an instance's add up; what is largest limits.
TEST_F(Answers, ExplainOfAFleetSaysWhereTheTimeOfRequestsAndInstancesGoes) {
  const std::string file = write(
      "fleet.yaml",
      "experiment: serving\nmodel: llama_3_1_8b\nserving:\n  workload: {arrival: poisson, rate: 4 "
      "/s, requests: 60, input: {uniform: [400, 600]}, output: {uniform: [32, 96]}}\n"
      "  fleet:\n    - {name: h100, system: dgx_h100, engine: {kind: vllm}}\n");
  const Outcome run = orrery("explain --json " + file, false);
  ASSERT_EQ(run.code, 0) << run.out;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json.at("limit"), "decode");
  for (const char* key : {"request_time", "instance_time"}) {
    double shares = 0;
    for (const auto& row : json.at(key)) shares += row.at("share").get<double>();
    EXPECT_NEAR(shares, 1, 1e-9) << key;
  }
  EXPECT_THAT(orrery("explain " + file).out,
              AllOf(HasSubstr("limited by: decode\n"), HasSubstr("mean time of a request"),
                    HasSubstr("h100: iterations of decode alone")));
}

TEST_F(Answers, CheckOfAJsonFileOfNoKindSaysWhatEachKindHas) {
  const Outcome plan = orrery("check " + write("gpus.json", R"({"gpus": 3})"));
  EXPECT_EQ(plan.code, 2);
  EXPECT_THAT(plan.out, AllOf(HasSubstr("gpus.json:1:2: error: cannot tell what this is"),
                              HasSubstr("config.json has the key model_type"),
                              HasSubstr("MSCCL++ has collective and gpus")));
  EXPECT_EQ(orrery("check " + write("any.json", R"({"a": 3})")).code, 2);
}

TEST_F(Answers, AnAlgorithmMayStandWithoutBracketsAndATypoNamesTheRightOne) {
  EXPECT_EQ(orrery("run --set algorithms=ring " + decode()).code, 0);
  const Outcome typo = orrery("run --set algorithms=rng " + decode());
  EXPECT_EQ(typo.code, 2);
  EXPECT_THAT(typo.out, HasSubstr("unknown collective algorithm 'rng'; did you mean 'ring'?"));
}

}  // namespace
}  // namespace answers_test
