// SPDX-License-Identifier: Apache-2.0
// Defaults of serving engines by version, from configs/software.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/serving.h"
#include "sim/app/experiments/serving/fleet.h"
#include "sim/app/experiments/steps/inference.h"
#include "sim/app/questions/describe/describe.h"
#include "sim/config/output.h"
#include "sim/serving/engine_release.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::engine_releases_test {
namespace {

using test::error_of;
using test::load;
using testing::AllOf;
using testing::HasSubstr;

std::string on(const std::string& system, const std::string& engine,
               const std::string& model = "llama_3_1_8b") {
  return "experiment: serving\nmodel: " + model +
         "\nserving:\n  workload: {rate: 1 /s, requests: 1, input: 512, output: 4}\n  fleet:\n"
         "    - {system: " +
         system + ", engine: " + engine + "}\n";
}

/// The value of a key of the engine once it is resolved.
std::string value(const LoadedExperiment& loaded, const std::string& key) {
  return loaded.node.at_path("serving.fleet.0.engine." + key)->text();
}

std::string value(const std::string& system, const std::string& engine, const std::string& key,
                  const std::string& model = "llama_3_1_8b") {
  return value(load(on(system, engine, model)), key);
}

TEST(EngineReleases, AVersionFollowsTheNewestReleaseThatIsNotNewer) {
  const auto utilization = [](const char* version) {
    return value("dgx_h100", std::string("{kind: vllm, version: \"") + version + "\"}",
                 "gpu_memory_utilization");
  };
  EXPECT_EQ(utilization("0.19.1"), "0.9");
  EXPECT_EQ(utilization("0.20"), "0.92");
  EXPECT_EQ(utilization("0.22"), "0.92");
}

TEST(EngineReleases, AVersionHasNumbersWhereNumbersStand) {
  EXPECT_EQ(EngineVersion::of("0.5.6.post2"), (EngineVersion{0, 5, 6}));
  EXPECT_EQ(EngineVersion::of("1.2.0rc5"), (EngineVersion{1, 2, 0}));
  EXPECT_EQ(EngineVersion::of("0.19"), (EngineVersion{0, 19, 0}));
  for (const char* wrong : {"0.5.x", "0.1x", "0.", "1", "v0.19", "0.19."})
    EXPECT_EQ(EngineVersion::of(wrong), std::nullopt) << wrong;
}

TEST(EngineReleases, WrittenKeysWin) {
  const std::string engine =
      "{kind: vllm, version: \"0.28\", max_num_seqs: 7, scheduler_reserve_full_isl: false}";
  EXPECT_EQ(value("dgx_h100", engine, "max_num_seqs"), "7");
  EXPECT_EQ(value("dgx_h100", engine, "scheduler_reserve_full_isl"), "false");
  EXPECT_EQ(value("dgx_h100", engine, "max_num_batched_tokens"), "8192");
}

TEST(EngineReleases, BatchesOfVllmDependOnTheDevice) {
  const auto batch = [](const char* system, const char* version) {
    const LoadedExperiment loaded =
        load(on(system, std::string("{kind: vllm, version: \"") + version + "\"}"));
    return value(loaded, "max_num_batched_tokens") + " " + value(loaded, "max_num_seqs");
  };
  EXPECT_EQ(batch("dgx_a100", "0.8"), "2048 1024");
  EXPECT_EQ(batch("dgx_a100", "0.8.5"), "8192 1024");
  EXPECT_EQ(batch("dgx_a100", "0.11"), "2048 256");
  EXPECT_EQ(batch("dgx_h100", "0.11"), "8192 1024");
  EXPECT_EQ(batch("l40s_8", "0.11"), "2048 256");
  EXPECT_EQ(batch("dgx_b200", "0.27"), "8192 1024");
  EXPECT_EQ(batch("dgx_b200", "0.28"), "16384 1024");
}

TEST(EngineReleases, GraphsAndChunksOfSglangDependOnDeviceAndVersion) {
  const auto batch = [](const char* system, const char* version) {
    const LoadedExperiment loaded =
        load(on(system, std::string("{kind: sglang, version: \"") + version + "\"}"));
    return value(loaded, "chunked_prefill_size") + " " + value(loaded, "cuda_graph_max_bs");
  };
  EXPECT_EQ(batch("dgx_h100", "0.5.2"), "8192 160");
  EXPECT_EQ(batch("dgx_h100", "0.5.3"), "8192 256");
  EXPECT_EQ(batch("l40s_8", "0.5.3.post1"), "4096 32");
  EXPECT_EQ(batch("dgx_b200", "0.5.10"), "16384 512");
}

// server_args.py of 0.4.7: 9.5 GiB and half a GiB a rank stay free of 35 to 90 GiB; of 0.5.3: 512
// MiB, 1.5 MiB a token of a chunk, 2 MiB a sequence of a graph, 128 MiB a rank.
TEST(EngineReleases, MemoryOfSglangIsWhatItsReservesLeave) {
  const auto share = [](const char* system, const char* version) {
    const std::string engine = std::string("{kind: sglang, version: \"") + version + "\"}";
    return std::stod(value(system, engine, "mem_fraction_static"));
  };
  constexpr double kL40s = 46068, kH100 = 81559;  // MiB
  EXPECT_NEAR(share("l40s_8", "0.4.7"), 1 - 10 * 1024 / kL40s, 1e-3);
  EXPECT_NEAR(share("dgx_h100", "0.4.7"), 1 - 10 * 1024 / kH100, 1e-3);
  EXPECT_NEAR(share("l40s_8", "0.5.3"), 1 - (512 + 1.5 * 4096 + 2 * 32 + 128) / kL40s, 1e-3);
  EXPECT_NEAR(share("dgx_h100", "0.5.3"), 1 - (512 + 1.5 * 8192 + 2 * 256 + 128) / kH100, 1e-3);
}

TEST(EngineReleases, AsynchronousSchedulingIsOffWithPipelineStagesIn014Alone) {
  const auto async = [](const char* version, int stages) {
    const std::string text =
        on("dgx_h100", std::string("{kind: vllm, version: \"") + version + "\"}");
    return value(load(text, {"serving.fleet.0.parallel.pp=" + std::to_string(stages)}),
                 "async_scheduling");
  };
  EXPECT_EQ(async("0.13", 1), "false");
  EXPECT_EQ(async("0.14", 1), "true");
  EXPECT_EQ(async("0.14", 2), "false");
  EXPECT_EQ(async("0.15", 2), "true");
}

TEST(EngineReleases, PrefixesOfHybridModelsAreKeptFrom028On) {
  const std::string hybrid = "nemotron_3_nano";
  EXPECT_EQ(value("dgx_h200", "{kind: vllm, version: \"0.27\"}", "prefix_caching", hybrid),
            "false");
  EXPECT_EQ(value("dgx_h200", "{kind: vllm, version: \"0.28\"}", "prefix_caching", hybrid), "true");
  EXPECT_EQ(value("dgx_h200", "{kind: vllm, version: \"0.27\"}", "prefix_caching"), "true");
}

TEST(EngineReleases, AVersionThatIsNotKnownIsSaidOnce) {
  const std::string newer = "{kind: vllm, version: \"0.99\"}";
  const LoadedExperiment loaded =
      load(on("dgx_h100", newer) + "    - {system: dgx_h100, engine: " + newer + "}\n");
  const std::string said = "defaults of vllm 0.99 are not known: those of 0.28 are used";
  const std::size_t first = loaded.warnings.find(said);
  ASSERT_NE(first, std::string::npos) << loaded.warnings;
  EXPECT_EQ(loaded.warnings.find(said, first + 1), std::string::npos);
  EXPECT_THAT(load(on("dgx_h100", "{kind: vllm, version: \"0.6\"}")).warnings,
              HasSubstr("defaults of vllm 0.6 are not known: those of 0.8 are used"));
  EXPECT_EQ(load(on("dgx_h100", "{kind: vllm, version: \"0.28.1\"}")).warnings, "");
}

TEST(EngineReleases, ARunSaysOnceWhichVersionsItsDefaultsAndHostTimesComeFrom) {
  const auto said = [](const std::string& experiment) {
    const RunRecord record = simulate(load(experiment));
    std::string all;
    for (const Label& label : record.labels)
      if (label.name == "engine_defaults") all += label.value;
    return all;
  };
  const std::string newer = "{kind: vllm, version: \"0.22\"}";
  const std::string twice =
      on("dgx_h100", newer) + "    - {system: dgx_h100, engine: " + newer + "}\n";
  EXPECT_EQ(said(twice), "vllm 0.22: defaults of 0.21, host times of 0.14");
  EXPECT_EQ(said(twice + "    - {system: dgx_h100, engine: {kind: sglang, version: \"0.5.5\"}}\n"),
            "vllm 0.22: defaults of 0.21, host times of 0.14; sglang 0.5.5: defaults of "
            "0.5.3, host times of 0.4");
  EXPECT_EQ(said(on("dgx_h100", "{kind: vllm, version: \"0.22\", host: {request: 1 ms}}")),
            "vllm 0.22: defaults of 0.21");
  EXPECT_EQ(said(on("dgx_h100", "{kind: orca}")), "");
}

TEST(EngineReleases, AVersionThatNobodyWroteIsNoMistake) {
  for (const char* engine : {"vllm", "sglang", "tensorrt_llm"})
    EXPECT_EQ(load(on("dgx_h100", std::string("{kind: ") + engine + "}")).warnings, "") << engine;
}

TEST(EngineReleases, ADefaultNamesItsFile) {
  const LoadedExperiment loaded = load(on("dgx_h100", "{kind: vllm, version: \"0.20\"}"));
  EXPECT_THAT(loaded.node.at_path("serving.fleet.0.engine.gpu_memory_utilization")->origin().text(),
              HasSubstr("software/vllm_0_20.yaml"));
}

TEST(EngineReleases, AnotherVersionOfALoadedExperimentHasItsOwnDefaults) {
  LoadedExperiment loaded = load(on("dgx_h100", "{kind: vllm, version: \"0.28\"}"));
  config::Diagnostics diagnostics;
  const LoadedExperiment again =
      load_experiment(loaded.node, {"serving.fleet.0.engine.version=0.11"}, diagnostics);
  EXPECT_EQ(value(again, "scheduler_reserve_full_isl"), "false");
  EXPECT_EQ(value(again, "gpu_memory_utilization"), "0.9");
}

TEST(EngineReleases, EveryReleaseOfTheLibraryHasOnlyKeysAndValuesOfItsEngine) {
  for (const char* engine : {"vllm", "sglang", "tensorrt_llm"}) {
    const auto releases = engine_releases(engine);
    EXPECT_FALSE(releases.empty()) << engine;
    for (const auto& [version, name] : releases) {
      EXPECT_EQ(EngineVersion::of(load_engine_release(name).version), version) << name;
      for (const char* system : {"dgx_h100", "l40s_8", "dgx_b200", "mi300x_platform"}) {
        const std::string keys =
            std::string("{kind: ") + engine + ", version: \"" + version.text() + "\"}";
        EXPECT_EQ(load(on(system, keys)).warnings, "") << name;
      }
    }
  }
}

TEST(EngineReleases, EveryVersionNamesEverySwitchOfItsKernels) {
  for (const char* engine : {"vllm", "sglang", "tensorrt_llm", "llama_cpp", "tt_transformers"}) {
    const auto rules = load_engine_release(engine_releases(engine).begin()->second).rules;
    for (const config::Field& field : KernelRules::schema().record().fields()) {
      EXPECT_TRUE(rules.contains("kernels." + field.key)) << engine << " " << field.key;
    }
  }
}

TEST(EngineReleases, DescribeShowsRulesWithVersionsAndSources) {
  Answer one;
  for (const CatalogEntry& entry : described_software())
    if (entry.name == "vllm_0_19") one = entry.details();
  const auto rule = [&one](const std::string& key) {
    for (const auto& row : one.json)
      if (row["switch"] == key) return row;
    return nlohmann::ordered_json();
  };
  EXPECT_EQ(rule("scheduler_reserve_full_isl")["value"], "true");
  EXPECT_EQ(rule("scheduler_reserve_full_isl")["from"], "0.19");
  EXPECT_EQ(rule("max_num_seqs")["value"],
            "memory >= 70 GiB, device not A100: 1024; otherwise 256");
  EXPECT_THAT(rule("max_num_seqs")["source"].get<std::string>(), HasSubstr("17885"));
  EXPECT_EQ(rule("max_num_seqs")["from"], "0.9");
}

InferenceConfig kernels_of(const ServingExperiment& served) {
  return serving_step(served.serving.fleet.front());
}

TEST(EngineReleases, AnEngineRunsTheSameKernelsInAStepAndInAServedGroup) {
  for (const char* version : {"0.10", "0.16", "0.17", "0.19"}) {
    const std::string engine = std::string("{kind: vllm, version: \"") + version + "\"}";
    const std::string step =
        "{experiment: inference, system: dgx_h100, model: llama_3_1_8b, "
        "parallel: {tp: 2}, phase: decode, kv_length: 512, batch: {micro: 4}, "
        "engine: " +
        engine + "}";
    const LoadedExperiment served = load(on("dgx_h100", engine), {"serving.fleet.0.parallel.tp=2"});
    EXPECT_EQ(load(step).as<InferenceExperiment>().inference().kernels,
              kernels_of(served.as<ServingExperiment>()).kernels)
        << version;
  }
}

TEST(EngineReleases, AServedGroupFusesAsItsVersionDoes) {
  const auto most = [](const char* version) {
    const std::string engine = std::string("{kind: vllm, version: \"") + version + "\"}";
    return kernels_of(load(on("dgx_h100", engine), {"serving.fleet.0.parallel.tp=2"})
                          .as<ServingExperiment>())
        .normed_all_reduce;
  };
  EXPECT_EQ(most("0.16"), Bytes(0));
  EXPECT_GT(most("0.17"), Bytes(0));
}

/// A folder with a version of a user's own beside the experiment that names it.
class OwnVersion : public testing::Test {
 protected:
  OwnVersion()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("own_version_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~OwnVersion() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& text) const {
    const std::string path = (folder_ / "mine.yaml").string();
    std::ofstream(path) << text;
    return path;
  }
  /// The experiment with a version of vLLM by the path of its file.
  static std::string with(const std::string& path) {
    return on("dgx_h100", "{kind: vllm, version: " + path + "}");
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(OwnVersion, IsAFileThatExtendsAnother) {
  const LoadedExperiment loaded =
      load(with(file("extends: vllm_0_19\nversion: \"0.19-mine\"\nrules:\n"
                     "  gpu_memory_utilization: {value: 0.8, source: measured here}\n"
                     "  kernels.pdl: {value: on, source: our build}\n")));
  EXPECT_EQ(value(loaded, "gpu_memory_utilization"), "0.8");
  EXPECT_EQ(value(loaded, "kernels.pdl"), "on");
  EXPECT_EQ(value(loaded, "scheduler_reserve_full_isl"), "true");
  const auto& group = loaded.as<ServingExperiment>().serving.fleet.front();
  EXPECT_THAT(group.engine_defaults, HasSubstr("defaults of mine, host times of 0.14"));
}

TEST_F(OwnVersion, IsLeftBehindByAnotherVersion) {
  const LoadedExperiment loaded = load(
      with(file("extends: vllm_0_19\nrules:\n  kernels.pdl: {value: on, source: our build}\n")));
  config::Diagnostics diagnostics;
  const LoadedExperiment again =
      load_experiment(loaded.node, {"serving.fleet.0.engine.version=0.19"}, diagnostics);
  EXPECT_EQ(value(again, "kernels.pdl"), "off");
}

TEST_F(OwnVersion, WithAWrongKeySaysWhereItStandsAndWhatIsMeant) {
  const std::string path =
      file("extends: vllm_0_19\nrules:\n  kernels.pdll: {value: on, source: our build}\n");
  EXPECT_THAT(error_of(with(path)),
              AllOf(HasSubstr("mine.yaml:3:"), HasSubstr("no key of vllm is called 'kernels.pdll'"),
                    HasSubstr("did you mean 'kernels.pdl'")));
  EXPECT_THAT(error_of(with(file("extends: vllm_0_19\nrules:\n  kernels.pdl: {value: maybe, "
                                 "source: our build}\n"))),
              AllOf(HasSubstr("mine.yaml:3:"), HasSubstr("expected one of auto, on, off")));
  EXPECT_THAT(error_of(with(file("extends: sglang_0_5_7\nrules: {}\n"))),
              HasSubstr("is of sglang, not of vllm"));
}

TEST_F(OwnVersion, RowsOfListsAreCheckedAndMayLeaveKeysOut) {
  const auto sizes = [](const std::string& rows) {
    return "extends: vllm_0_19\nrules:\n  cudagraph_sizes:\n    value:\n      - {value: [" + rows +
           "]}\n    source: our build\n";
  };
  EXPECT_THAT(error_of(with(file(sizes("{to: 8, stp: 8}")))),
              AllOf(HasSubstr("mine.yaml:5:"), HasSubstr("unknown key 'stp'")));
  EXPECT_THAT(error_of(with(file(sizes("{step: 8}, {step: 16}")))), HasSubstr("rows must ascend"));
  EXPECT_EQ(value(load(with(file(sizes("{step: 24}")))), "cudagraph_sizes.0.to"), "0");
}

TEST_F(OwnVersion, ThatIsNotThereIsNamed) {
  EXPECT_THAT(error_of(with("\"0.19-mine\"")),
              AllOf(HasSubstr("there is no version '0.19-mine' of vllm"),
                    HasSubstr("vllm_0_19_mine.yaml")));
}

TEST_F(OwnVersion, WhoseFileIsMissingIsAMissingFile) {
  const std::string path = file("extends: vllm_0_19\nrules: {}\n");
  const std::string near = std::filesystem::path(path).replace_filename("mime.yaml").string();
  EXPECT_THAT(error_of(with(near)),
              AllOf(HasSubstr("no such file '" + near + "'"), HasSubstr("did you mean '" + path)));
}

TEST_F(OwnVersion, IsDescribedByItsPath) {
  const std::string path = file(
      "extends: vllm_0_19\nversion: \"0.19-mine\"\nrules:\n  kernels.pdl: {value: on, source: "
      "our own build}\n");
  const Answer answer = describe({"software", path});
  const std::string text = answer.json.dump();
  EXPECT_THAT(text, HasSubstr("our own build"));
  EXPECT_THAT(text, HasSubstr("\"from\":\"0.19-mine\""));
  EXPECT_THAT(text, HasSubstr("\"from\":\"0.19\""));
}

TEST(EngineReleases, AnEngineWithoutVersionsHasOneFile) {
  const auto is_on = [](const char* engine, const char* key) {
    return load(on("dgx_h100", engine))
        .as<ServingExperiment>()
        .serving.fleet.front()
        .engine->kernels.on(key);
  };
  EXPECT_TRUE(is_on("{kind: llama_cpp}", "operators_apart"));
  EXPECT_TRUE(is_on("{kind: llama_cpp}", "quantises_widened"));
  EXPECT_FALSE(is_on("{kind: llama_cpp, backend: metal}", "quantises_widened"));
  EXPECT_TRUE(is_on("{kind: llama_cpp, backend: metal}", "decodes_by_head"));
  EXPECT_EQ(value("dgx_h100", "{kind: tt_transformers}", "max_num_seqs"), "32");
}

TEST(EngineReleases, TensorRtLlmReadsKeysByHeadBefore08) {
  const auto by_head = [](const char* version) {
    return value("dgx_h100", std::string("{kind: tensorrt_llm, version: \"") + version + "\"}",
                 "kernels.decodes_by_head");
  };
  EXPECT_EQ(by_head("0.7"), "on");
  EXPECT_EQ(by_head("0.8"), "off");
  EXPECT_EQ(by_head("1.2"), "off");
}

TEST(EngineReleases, SwitchesOfKernelsHaveTheirOlderNames) {
  for (const char* keys :
       {"quant_fusion: true, fusions: {pdl: on}", "fusions: {pdl: on}, quant_fusion: on",
        "kernels: {pdl: on, quant_fusion: true}"}) {
    const auto loaded = load(on("dgx_h100", std::string("{kind: vllm, ") + keys + "}"));
    const KernelRules& kernels =
        loaded.as<ServingExperiment>().serving.fleet.front().engine->kernels;
    EXPECT_TRUE(kernels.on("pdl")) << keys;
    EXPECT_TRUE(kernels.on("quant_fusion")) << keys;
  }
}

// Two prompts of 120,000 tokens in a cache for one and a half (vLLM pull requests 21793, 37307).
TEST(EngineReleases, From019OnLongPromptsDoNotThrowEachOtherOut) {
  const std::string text =
      "{experiment: serving, model: llama_3_1_8b, serving: {workload: {concurrency: 2, requests: "
      "2, input: {fixed: 120000}, output: {fixed: 100}}, fleet: [{system: l40s_8, engine: {kind: "
      "vllm, version: VERSION, prefix_caching: false}}]}}";
  const auto run = [&text](const std::string& version) {
    std::string with = text;
    with.replace(with.find("VERSION"), 7, "\"" + version + "\"");
    return simulate(load(with));
  };
  const RunRecord whole = run("0.19"), pieces = run("0.18");
  EXPECT_EQ(whole.find("preemptions")->value, 0);
  EXPECT_GT(pieces.find("preemptions")->value, 0);
  // The second begins once the first has ended.
  EXPECT_LT(whole.find("duration_s")->value, pieces.find("duration_s")->value);
}

}  // namespace
}  // namespace orrery::engine_releases_test
