// SPDX-License-Identifier: Apache-2.0
// Which calibrations price the kernels of an engine on a device.
#include "sim/app/pricing/calibration_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/engines/engine_site.h"
#include "tests/unit/app/loaded_text.h"
#include "tests/unit/machine/shipped_library.h"

namespace orrery::calibration_files_test {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;

const std::vector<std::string> kSets = {"vllm_0_24", "sglang_0_5_14"};

constexpr const char* kDecode =
    "{experiment: inference, system: dgx_h200, model: llama_3_1_8b, phase: decode, kv_length: "
    "4096, "
    "precision: fp8, kv_precision: fp8, batch: {micro: 64}, engine: {kind: vllm, version: 0.24, "
    "kernel_calibrations: [vllm_0_24]}}";
constexpr const char* kServed =
    "{experiment: serving, model: llama_3_1_8b, serving: {workload: {rate: 4 /s, requests: 4, "
    "input: "
    "64, output: 4}, fleet: [{system: dgx_h200, engine: {kind: vllm}}]}}";

TEST(CalibrationFiles, AllSetsThatTheDeviceHasAreTakenBestFirst) {
  const CalibrationFiles files = calibration_files("auto", shipped_accelerator("h200_sxm"), kSets);
  EXPECT_THAT(files.device, EndsWith("/h200_sxm.yaml"));
  EXPECT_THAT(files.engine, ElementsAre(EndsWith("/h200_sxm_vllm_0_24.yaml"),
                                        EndsWith("/h200_sxm_sglang_0_5_14.yaml")));
}

TEST(CalibrationFiles, ASetThatTheDeviceLacksIsPassedOver) {
  // B300 has vLLM's kernels alone.
  const CalibrationFiles files =
      calibration_files("auto", shipped_accelerator("b300_sxm"), {"sglang_0_5_14", "vllm_0_24"});
  EXPECT_THAT(files.engine, ElementsAre(EndsWith("/b300_sxm_vllm_0_24.yaml")));
}

TEST(CalibrationFiles, ASetThatNoDeviceHasIsRefusedWithTheOneThatWasMeant) {
  EXPECT_THAT(test::error_of(kDecode, {"engine.kernel_calibrations=[vlm_0_24]"}),
              testing::HasSubstr("no device has a calibration of the kernels 'vlm_0_24'"));
  EXPECT_THAT(test::error_of(kServed, {"serving.fleet.0.engine.kernel_calibrations=[vlm_0_24]"}),
              testing::AllOf(testing::HasSubstr("--set"), testing::HasSubstr("vllm_0_24")));
}

TEST(CalibrationFiles, AWholeNameIsTheCalibrationOfAnotherDevice) {
  const CalibrationFiles files =
      calibration_files("auto", shipped_accelerator("gb200"), {"b200_sxm_vllm_0_24"});
  EXPECT_THAT(files.engine, ElementsAre(EndsWith("/b200_sxm_vllm_0_24.yaml")));
}

TEST(CalibrationFiles, ADeviceThatNoSetHasKeepsItsCalibrationAlone) {
  const CalibrationFiles files = calibration_files("auto", shipped_accelerator("gb200"), kSets);
  EXPECT_THAT(files.device, EndsWith("/gb200.yaml"));
  EXPECT_THAT(files.engine, IsEmpty());
}

TEST(CalibrationFiles, ACalibrationThatAUserNamesStandsAlone) {
  const AcceleratorConfig h200 = shipped_accelerator("h200_sxm");
  EXPECT_THAT(calibration_files("h100_sxm", h200, kSets).engine, IsEmpty());
  EXPECT_EQ(calibration_files("none", h200, kSets), CalibrationFiles());
}

TEST(CalibrationFiles, AStepTakesTheKernelsOfItsEngine) {
  // Over a cache in fp8 vLLM 0.24 takes 1.7 times as long for attention as TensorRT-LLM.
  const RunRecord own = simulate(test::load(kDecode));
  const RunRecord plain = simulate(test::load(kDecode, {"engine.kernel_calibrations=[]"}));
  EXPECT_GT(own.find("step_time_s")->value, 1.1 * plain.find("step_time_s")->value);
  EXPECT_EQ(own.provenance.at("calibration"), "h200_sxm_vllm_0_24 and h200_sxm");
  EXPECT_EQ(plain.provenance.at("calibration"), "h200_sxm");
}

TEST(CalibrationFiles, AVersionTakesItsOwnKernelsUnlessTheUserNamesOthers) {
  const std::string plain =
      "{experiment: inference, system: dgx_h200, model: llama_3_1_8b, phase: decode, kv_length: "
      "64, batch: {micro: 1}, engine: {kind: vllm, version: ";
  const auto of_version = [&](const char* version) {
    return simulate(test::load(plain + version + "}}")).provenance.at("calibration");
  };
  EXPECT_EQ(of_version("0.26"), "h200_sxm_vllm_0_24 and h200_sxm");
  EXPECT_EQ(of_version("0.19"), "h200_sxm");
}

std::vector<std::string> kernels_of(const std::string& engine, const std::string& version) {
  const auto measured =
      measured_engine(engine, version, engine_site(shipped_accelerator("h200_sxm"), {}));
  return measured.object ? measured.object->kernel_calibrations : std::vector<std::string>();
}

TEST(CalibrationFiles, RowsOfAnEngineAreJudgedByTheKernelsOfTheirVersion) {
  EXPECT_THAT(kernels_of("vllm", "0.24.0"), ElementsAre("vllm_0_24"));
  EXPECT_THAT(kernels_of("sglang", "0.5.14"), ElementsAre("sglang_0_5_14"));
  EXPECT_THAT(kernels_of("trtllm", "1.3.0rc20"), IsEmpty());
  EXPECT_THAT(kernels_of("vllm", "0.19.0"), IsEmpty());
  EXPECT_THAT(kernels_of("vllm", "0.1.dev19262"), IsEmpty());
  EXPECT_THAT(kernels_of("", ""), IsEmpty());
  EXPECT_THAT(kernels_of("mlx", "1.0"), IsEmpty());
}

TEST(CalibrationFiles, BothFilesBelongToTheIdentityOfAStep) {
  std::set<std::string> roles;
  for (const InputFile& file : test::load(kDecode).files) roles.insert(file.role);
  EXPECT_TRUE(roles.contains("calibration"));
  EXPECT_TRUE(roles.contains("engine_calibration"));
}

}  // namespace
}  // namespace orrery::calibration_files_test
