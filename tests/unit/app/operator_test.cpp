// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/app/pricing/pricing.h"
#include "sim/config/load.h"
#include "sim/machine/clock.h"
#include "tests/unit/machine/shipped_library.h"

namespace orrery::operator_test {
namespace {

struct Ran {
  std::shared_ptr<const Experiment> experiment;
  RunRecord record;

  const SystemConfig& system() const {
    return dynamic_cast<const MachineExperiment&>(*experiment).system;
  }
  double operator[](const char* metric) const { return record.find(metric)->value; }
};

Ran run(const std::string& op, const std::string& more = "",
        const std::string& system = "h100_1g") {
  config::Diagnostics diagnostics;
  const std::string text =
      "{experiment: operator, system: " + system + ", operator: {" + op + "}" + more + "}\n";
  const config::Library library(ORRERY_SOURCE_DIR "/configs");
  const LoadedExperiment loaded =
      load_experiment(config::parse_yaml(text, "test.yaml", diagnostics), {}, diagnostics, library);
  return {loaded.experiment, simulate(loaded)};
}

constexpr const char* kGemm = "m: 4096, n: 4096, k: 4096";

TEST(Operator, EnergyIsStaticPowerFlopsAtTheirVoltageAndBytesByLevel) {
  const Ran gemm = run(std::string(kGemm) + ", tile: [128, 256]");
  const AcceleratorConfig& device = gemm.system().accelerator;
  const double voltage =
      energy_of_voltage(device, Precision::kBf16, gemm["clock_hz"] / boost_clock(device).base());
  const EnergyConfig& energy = device.energy;
  const double flops = energy.matrix.at(Precision::kBf16).value.base() * gemm["flops"];
  // 16 tiles along the columns read the inputs, 32 along the rows the weights; clusters read for
  // three blocks. What comes from the memory has paid.
  const double cached = 2.0 * 4096 * 4096 * (16 + 32) / 3 - gemm["bytes"];
  const double work = device.power.floor().base() * gemm["time_s"] +
                      (energy.memory.value + energy.transport.value).base() * gemm["bytes"] +
                      (flops + energy.cache.value.base() * cached) * voltage;
  const double busy =
      busy_power(device, gemm["clock_hz"] / boost_clock(device).base()).base() * gemm["time_s"];
  constexpr double kLaunched = 0.9;  // of the time: units are not busy while a kernel is launched
  EXPECT_LT(gemm["energy_j"], work + busy);
  EXPECT_GT(gemm["energy_j"], work + kLaunched * busy);
  EXPECT_NEAR(gemm["average_power_w"], gemm["energy_j"] / gemm["time_s"], 1e-9);
  EXPECT_LE(gemm["average_power_w"], device.power.cap().base() * (1 + 1e-9));
}

// wgmma reads 64 x 16 and 256 x 16 elements of 2 bytes for 2 x 64 x 256 x 16 FLOP; mma.sync reads
// registers, which a warp fills for 64 x 64.
TEST(Operator, OperandsOfMatrixInstructionsAreAPartOfTheirEnergy) {
  Kernel kernel;
  kernel.matrix_flops = Flops(2.0 * 64 * 256 * 16);
  const AcceleratorConfig h100 = shipped_accelerator("h100_sxm");
  EXPECT_EQ(shared_reads(kernel, h100), Bytes(16 * (64 + 256) * 2));
  EXPECT_EQ(shared_reads(kernel, shipped_accelerator("a100_sxm")), Bytes(16 * (256 + 256) * 2));
  EXPECT_EQ(shared_reads(kernel, shipped_accelerator("stm32f746")), Bytes(0));
  const EnergyUse use = run_energy(kernel, KernelCost(), h100);
  EXPECT_EQ(use.shared, shared_reads(kernel, h100) * h100.energy.shared.value);
  EXPECT_NEAR((use.matrix + use.shared).base(),
              (kernel.matrix_flops * h100.energy.matrix.at(Precision::kBf16).value).base(), 1e-18);
}

// Five instructions of one FLOP: 2 x 6.6 pJ each, where a multiply-add has 2 FLOP of 6.6.
TEST(Operator, AStepOfASoftmaxTakesTheEnergyOfAnInstruction) {
  Kernel softmax;
  softmax.vector_flops = Flops(5e9);
  softmax.exponentials = Flops(1e9);
  Kernel products;
  products.vector_flops = Flops(5e9);
  const AcceleratorConfig h100 = shipped_accelerator("h100_sxm");
  EXPECT_NEAR(run_energy(softmax, KernelCost(), h100).vector.base(), 5e9 * 2 * 6.6e-12, 1e-9);
  EXPECT_NEAR(run_energy(products, KernelCost(), h100).vector.base(), 5e9 * 6.6e-12, 1e-9);
}

TEST(Operator, CopiesOfOneDirectionShareAndUnitsCopyWithoutEngines) {
  const std::string copy = "kind: copy_device_to_device, bytes: 1 GB";
  const Ran engine = run(copy, "", "dgx_h100");
  // 1.25 TB/s of an engine; three of them are for three directions.
  EXPECT_NEAR(engine["time_s"], 1 / 1250.0, 0.02 / 1250);
  EXPECT_EQ(engine.record.labels.front().value, "copy engine");
  EXPECT_NEAR(run(copy + ", copies: 3", "", "dgx_h100")["time_s"], 3 * engine["time_s"], 1e-5);
  EXPECT_LT(run(copy + ", engine: sm", "", "dgx_h100")["time_s"], engine["time_s"]);
  // A link is filled by one.
  const std::string in = "kind: copy_host_to_device, bytes: 1 GB";
  EXPECT_NEAR(run(in + ", copies: 4", "", "dgx_h100")["time_s"],
              4 * run(in, "", "dgx_h100")["time_s"], 1e-5);
}

// 8192 cubed on a B200: what the fits take for a lower clock would draw 0.73 of the cap at it.
// Twice the SMs of an H100 in fp8: units issue 0.61 of their clocks, and even at the floor of the
// voltage that is too much: 2.18 PFLOP/s are left. NVFP4 experts on a GB200: their energy, not that
// of bf16.
TEST(Operator, TheClockIsTheBoostClockOrThePowerTheCap) {
  const std::string wide =
      "{extends: dgx_h100, accelerator: {extends: h100_sxm, compute: {units: 264}}}";
  const std::string product = "m: 8192, n: 8192, k: 8192";
  const std::string experts =
      "kind: moe, tokens: 4096, hidden: 4096, expert_ffn: 2048, top_k: 8, experts: 64";
  for (const Ran& ran : {run(product, "", "dgx_b200"), run(product, ", precision: fp8", wide),
                         run(product, ", precision: fp8", "dgx_b200")}) {
    const AcceleratorConfig& device = ran.system().accelerator;
    const double cap = device.power.cap().base(), boost = boost_clock(device).base();
    EXPECT_LE(ran["average_power_w"], cap * (1 + 1e-9)) << device.name;
    EXPECT_TRUE(ran["average_power_w"] > 0.999 * cap || ran["clock_hz"] == boost) << device.name;
    EXPECT_GT(ran["clock_hz"], 0.5 * boost) << device.name;
  }
  // Products at the cap, and kernels between them at the boost clock below it.
  const Ran several = run(experts, ", precision: nvfp4", "gb200_nvl72");
  const AcceleratorConfig& gb200 = several.system().accelerator;
  EXPECT_LE(several["average_power_w"], gb200.power.cap().base() * (1 + 1e-9));
  EXPECT_GT(several["average_power_w"], 0.95 * gb200.power.cap().base());
  EXPECT_LT(several["clock_hz"], boost_clock(gb200).base());
}

TEST(Operator, ALimitBelowWhatIdlingNeedsIsAnError) {
  EXPECT_THROW(
      run(kGemm, "", "{extends: dgx_h100, accelerator: {extends: h100_sxm, power: {limit: 70 W}}}"),
      config::ConfigError);
}

// A device that streams draws its floor, its units and its bytes: below the cap, above both.
TEST(Operator, UnitsThatWaitForTheMemoryDrawPower) {
  const std::string stream = "kind: rms_norm, rows: 65536, width: 16384";
  const Ran h200 = run(stream, "", "dgx_h200");
  const PowerConfig& power = h200.system().accelerator.power;
  const std::string no_busy =
      "{extends: dgx_h200, accelerator: {extends: h200_sxm, power: {busy: 0 W}}}";
  const double units = 132 * power.busy.value.base();
  const double waiting = h200["average_power_w"] - run(stream, "", no_busy)["average_power_w"];
  EXPECT_LE(waiting, units * (1 + 1e-9));
  EXPECT_GT(waiting, 0.9 * units);  // but for the launch, and for what the cap takes
  EXPECT_GT(h200["average_power_w"], power.floor().base() + waiting);
  EXPECT_LE(h200["average_power_w"], power.cap().base());
}

TEST(Operator, ADieHasItsShareOfTheStaticPower) {
  const Ran copy = run("kind: copy_device_to_device, bytes: 1 GB", "", "cm384");
  const AcceleratorConfig& device = copy.system().accelerator;
  ASSERT_EQ(device.dies, 2);
  const double bytes =
      (device.energy.memory.value + device.energy.transport.value).base() * copy["bytes"];
  const double idle = device.power.floor().base() / 2 * copy["time_s"];
  const double units =
      busy_power(device, copy["clock_hz"] / boost_clock(device).base()).base() / 2 * copy["time_s"];
  EXPECT_LE(copy["energy_j"], (idle + units + bytes) * (1 + 1e-9));
  EXPECT_GT(copy["energy_j"], idle + 0.99 * units + bytes);  // units do not wait for a launch
}

TEST(Operator, NarrowerFormatsTakeLessEnergy) {
  const double bf16 = run(kGemm)["energy_j"];
  EXPECT_LT(run(kGemm, ", precision: fp8")["energy_j"], bf16);
  EXPECT_GT(run(kGemm, ", precision: tf32")["energy_j"], bf16);
  EXPECT_LT(run(std::string(kGemm) + ", sparsity: 2:4")["energy_j"], bf16);
}

TEST(Operator, KernelsAddUp) {
  const Ran moe =
      run("kind: moe, tokens: 512, hidden: 1024, expert_ffn: 512, top_k: 4, experts: 16");
  ASSERT_EQ(moe.record.classes.size(), 7U);
  double time = 0, bytes = 0;
  for (const ClassBreakdown& kernel : moe.record.classes) {
    time += kernel.time_s;
    bytes += kernel.bytes;
  }
  EXPECT_NEAR(time, moe["time_s"], 1e-12);
  EXPECT_EQ(bytes, moe["bytes"]);
  EXPECT_EQ(moe["events"], 7);
}

TEST(Operator, FusionSavesTimeBytesAndEnergy) {
  const std::pair<std::string, std::string> pairs[] = {
      {"kind: attention_prefill, query: 2048, heads: 16", ", fused: false"},
      {"kind: attention_decode, batch: 16, kv_length: 4096, heads: 16", ", fused: false"},
      {"kind: mlp, tokens: 4096, hidden: 2048, intermediate: 4096, fused_epilogue: true",
       "#, fused_epilogue: false"}};
  for (const auto& [keys, unfused] : pairs) {
    const bool replaces = unfused.front() == '#';
    const std::string other =
        replaces ? keys.substr(0, keys.rfind(',')) + unfused.substr(1) : keys + unfused;
    // On priors: fits of different kernels may contradict each other by their errors.
    const Ran fused = run(keys, ", calibration: none"), apart = run(other, ", calibration: none");
    EXPECT_LT(fused["bytes"], apart["bytes"]) << keys;
    EXPECT_LT(fused["time_s"], apart["time_s"]) << keys;
    EXPECT_LT(fused["energy_j"], apart["energy_j"]) << keys;
    EXPECT_LE(fused["flops"], apart["flops"]) << keys;
  }
}

TEST(Operator, TheLimitIsNeverBeaten) {
  for (const char* keys : {kGemm, "kind: softmax, rows: 100000, width: 4096",
                           "kind: attention_decode, batch: 64, kv_length: 8192, heads: 8",
                           "kind: optimizer, parameters: 1000000000"}) {
    EXPECT_LT(run(keys)["share_of_limit"], 1) << keys;
    EXPECT_GT(run(keys)["share_of_limit"], .1) << keys;
  }
}

TEST(Operator, TheKindIsPartOfTheIdentity) {
  const std::string keys = "rows: 64, width: 64";
  EXPECT_NE(run("kind: rms_norm, " + keys).record.identity,
            run("kind: layer_norm, " + keys).record.identity);
  EXPECT_EQ(run("m: 64, n: 64, k: 64").record.identity,
            run("kind: gemm, batch: 1, m: 64, n: 64, k: 64").record.identity);
}

}  // namespace
}  // namespace orrery::operator_test
