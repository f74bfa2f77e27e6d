// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/calibrate.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "models/kernels/calibrated_model.h"
#include "models/kernels/device/roofline.h"
#include "sim/config/diagnostics.h"
#include "sim/config/load.h"
#include "validation/calibration/operator_kernels.h"

namespace orrery::calibrate_test {
namespace {

AcceleratorConfig h200() {
  const config::Library library(ORRERY_SOURCE_DIR "/configs");
  return config::load<AcceleratorConfig>(library.locate("accelerators", "h200_sxm", ""), library,
                                         "accelerators");
}

/// A table of GEMMs on an H200 whose times come from known parameters: 0.6 of the matrix peak, 0.7
/// of the bandwidth, p = 3, 4 us; the others are the priors that the fit keeps.
CalibrationInput table(const std::string& system) {
  const AcceleratorConfig accelerator = h200();
  std::vector<double> truth = RooflineFamily().priors(accelerator, Precision::kBf16);
  const auto set = [&truth](RooflineParameter p, double value) {
    truth[static_cast<std::size_t>(p)] = value;
  };
  set(RooflineParameter::kMatrixEfficiency, 0.6);
  set(RooflineParameter::kMemoryEfficiency, 0.7);
  set(RooflineParameter::kExponent, 3);
  set(RooflineParameter::kLaunch, 4);
  CalibrationInput input;
  input.table.kind = OperatorTableKind::kGemm;
  input.table.systems = {system};
  input.file = {"gemm.csv", std::string(64, 'a'), "2026-01-02", "made by a test", 0};
  for (std::int64_t n = 256; n <= 16384; n += 256) {
    for (std::int64_t m = 1; m <= 16384; m *= 4) {
      OperatorRow row;
      row.precision = "bf16";
      row.m = m;
      row.n = n;
      row.k = 4096;
      Kernel kernel;
      kernel.kind = KernelClass::kGemm;
      const auto dm = static_cast<double>(m), dn = static_cast<double>(n);
      kernel.matrix_flops = Flops(2 * dm * dn * 4096);
      kernel.read = Bytes(2 * (dm + dn) * 4096);
      kernel.written = Bytes(2 * dm * dn);
      row.latency_us = RooflineFamily().time(kernel, accelerator, truth.data()).total_us;
      input.table.rows.push_back(row);
    }
  }
  return input;
}

Calibration calibrated() {
  return calibrate("roofline", h200(), {table("h200_sxm")}, "a test",
                   [](const std::string&, std::size_t) {});
}

TEST(Calibrate, RenewsTheFitsThatAreMadeAndKeepsTheOthers) {
  Calibration known = calibrated();
  KernelFit kept = known.fits[0];
  kept.table = "moe_w4";
  known.fits.push_back(kept);
  known.left_out = {{"gemm", Precision::kBf16, "faster than the memory", 7},
                    {"moe_w4", Precision::kBf16, "a tactic fell back", 3}};
  Calibration made = calibrated();
  made.fits[0].parameters.at("gemm.launch").value = 5;
  made.measurements[0].date = "2026-02-03";
  const Calibration now = renewed(known, made);
  ASSERT_EQ(now.fits.size(), 2U);
  EXPECT_EQ(now.fits[0].parameters.at("gemm.launch").value, 5);
  EXPECT_EQ(now.fits[1].table, "moe_w4");
  ASSERT_EQ(now.left_out.size(), 1U);
  EXPECT_EQ(now.left_out[0].table, "moe_w4");
  ASSERT_EQ(now.measurements.size(), 1U);
  EXPECT_EQ(now.measurements[0].date, "2026-02-03");
  EXPECT_EQ(now.made_with, "a test; gemm by a test");
  made.rates.units += 1;
  EXPECT_THROW(renewed(known, made), config::ConfigError);
}

/// Attention of new tokens on an H200 by a library that puts so many queries together.
CalibrationInput decode_table(double most_together) {
  const AcceleratorConfig accelerator = h200();
  CalibrationInput input;
  input.table.kind = OperatorTableKind::kAttentionDecode;
  input.table.systems = {"h200_sxm"};
  input.file = {"attention_decode.csv", std::string(64, 'a'), "2026-01-02", "made by a test", 0};
  for (std::int64_t sequences = 1; sequences <= 256; sequences *= 2) {
    for (std::int64_t context = 256; context <= 65536; context *= 4) {
      for (const std::int64_t heads : {4, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96}) {
        OperatorRow row;
        row.precision = row.kv_precision = "bf16";
        row.batch = sequences;
        row.q_len = 1;
        row.kv_len = context;
        row.heads = heads;
        row.kv_heads = 1;
        row.head_dim = 128;
        input.table.rows.push_back(row);
      }
    }
  }
  for (OperatorRow& row : input.table.rows) {
    for (const Kernel& kernel : operator_kernels(input.table.kind, row, Precision::kBf16)) {
      const FamilyOf of = family_of("tiles", kernel);
      std::vector<double> values = of.family->priors(accelerator, kernel.precision);
      const std::size_t rule = parameter_index(*of.family, "most_together");
      if (rule < values.size()) values[rule] = most_together;
      row.latency_us += of.family->time(kernel, accelerator, values.data()).total_us;
    }
  }
  return input;
}

TEST(Calibrate, TakesTheRuleOfALibraryThatItsRowsBearOut) {
  const std::string rule = "attention_decode.most_together";
  for (const double most : {32, 1024}) {
    const Calibration calibration =
        calibrate("tiles", h200(), {decode_table(most)}, "a test", [](const auto&, auto) {});
    ASSERT_EQ(calibration.fits.size(), 1U);
    const KernelFit& fit = calibration.fits[0];
    // A fit does not write the rule that priors have.
    ASSERT_EQ(fit.parameters.contains(rule), most != 32) << most;
    if (most != 32) {
      EXPECT_EQ(fit.parameters.at(rule).value, most);
    }
    EXPECT_LT(fit.held_out_error.mape, 0.01) << most;
  }
}

TEST(Calibrate, FindsTheParametersOfATableItHasNotSeenWhole) {
  const Calibration calibration = calibrated();
  ASSERT_EQ(calibration.fits.size(), 1U);
  const KernelFit& fit = calibration.fits[0];
  EXPECT_NEAR(fit.parameters.at("gemm.matrix_efficiency").value, 0.6, 1e-4);
  EXPECT_NEAR(fit.parameters.at("gemm.memory_efficiency").value, 0.7, 1e-4);
  EXPECT_NEAR(fit.parameters.at("gemm.launch").value, 4, 1e-3);
  EXPECT_GT(fit.held_out_error.count, 0);
  EXPECT_LT(fit.held_out_error.mape, 1e-4);
}

TEST(Calibrate, HeldOutRowsDoNotMoveTheFit) {
  // Held-out groups take twice as long as the parameters say: the fit must not notice, the error
  // stated on them must.
  CalibrationInput input = table("h200_sxm");
  for (OperatorRow& row : input.table.rows)
    if (is_held_out(shape_group(input.table.kind, row))) row.latency_us *= 2;
  const Calibration calibration =
      calibrate("roofline", h200(), {input}, "a test", [](const std::string&, std::size_t) {});
  EXPECT_NEAR(calibration.fits[0].parameters.at("gemm.matrix_efficiency").value, 0.6, 1e-4);
  EXPECT_LT(calibration.fits[0].fit_error.mape, 1e-4);
  EXPECT_NEAR(calibration.fits[0].held_out_error.mape, 0.5, 1e-4);
  // log(measured / predicted) is log 2 everywhere.
  EXPECT_NEAR(calibration.fits[0].residuals[0].median, std::log(2.0), 1e-4);
}

/// A stream benchmark: reading at 0.9 of the bandwidth, a written byte 10 % dearer, 20 % for each
/// byte of the smaller direction, and 2.5 us; and row kernels that take 4 us more than their bytes.
std::vector<CalibrationInput> microbenchmarks() {
  CalibrationInput stream, rows, launch;
  stream.table.kind = OperatorTableKind::kHbmStream;
  rows.table.kind = OperatorTableKind::kRowKernels;
  launch.table.kind = OperatorTableKind::kLaunch;
  for (CalibrationInput* input : {&stream, &rows, &launch}) input->table.systems = {"h200_sxm"};
  stream.file.file = "hbm_stream.csv";
  rows.file.file = "row_kernels.csv";
  launch.file.file = "launch.csv";
  const double per_us = 4.8e6 * 0.9;
  const auto time = [per_us](double read, double written) {
    return (read + 1.1 * written + 0.2 * std::min(read, written)) / per_us;
  };
  for (std::int64_t bytes = 1 << 20; bytes < std::int64_t{1} << 34; bytes = bytes * 5 / 4) {
    for (const double share : {1.0, 2.0 / 3, 0.5, 0.0}) {
      OperatorRow row;
      row.precision = "bf16";
      row.bytes = bytes;
      row.ctas = 528;
      row.read_share = share;
      const auto moved = static_cast<double>(bytes);
      row.latency_us = 2.5 + time(moved * share, moved * (1 - share));
      stream.table.rows.push_back(row);
      row.ctas = 4;  // what four blocks can have in flight is not the kernel's time
      row.latency_us *= 30;
      stream.table.rows.push_back(row);
    }
  }
  for (std::int64_t cols = 1024; cols <= 32768; cols += 1024) {
    for (std::int64_t count = 1; count <= 16384; count *= 4) {
      OperatorRow row;
      row.precision = "bf16";
      row.kernel = "softmax";
      row.rows = count;
      row.cols = cols;
      row.read_bytes = row.written_bytes = 2 * count * cols;
      const auto bytes = static_cast<double>(row.read_bytes);
      row.latency_us = 4 + time(bytes, bytes);
      rows.table.rows.push_back(row);
    }
  }
  for (const double us : {2.4, 2.5, 2.7}) {
    OperatorRow row;
    row.precision = "bf16";
    row.test = "graph";
    row.kernel = "empty";
    row.kernels = 1000;
    row.latency_us = us;
    launch.table.rows.push_back(row);
  }
  return {rows, launch, stream};  // the order of files does not matter
}

TEST(Calibrate, BandwidthByMixAndLaunchComeFromMicrobenchmarks) {
  const Calibration calibration = calibrate("roofline", h200(), microbenchmarks(), "a test",
                                            [](const std::string&, std::size_t) {});
  ASSERT_EQ(calibration.fits.size(), 2U);
  const KernelFit& stream = calibration.fits[0];
  EXPECT_EQ(stream.table, "hbm_stream");
  EXPECT_NEAR(stream.parameters.at("stream.memory_efficiency").value, 0.9, 1e-3);
  EXPECT_NEAR(stream.parameters.at("stream.write_cost").value, 0.1, 2e-3);
  EXPECT_NEAR(stream.parameters.at("stream.turnaround").value, 0.2, 2e-3);
  EXPECT_EQ(stream.parameters.at("stream.launch").value, 2.5);
  EXPECT_EQ(stream.parameters.at("stream.launch").provenance, ParameterProvenance::kMeasured);
  EXPECT_EQ(stream.measurements, (std::vector<std::string>{"hbm_stream.csv", "launch.csv"}));
  const KernelFit& rows = calibration.fits[1];
  EXPECT_NEAR(rows.parameters.at("stream.launch").value, 4, 1e-2);
  EXPECT_EQ(rows.parameters.at("stream.memory_efficiency").value,
            stream.parameters.at("stream.memory_efficiency").value);
}

TEST(Calibrate, RowsOfOtherSystemsAreNotItsOwn) {
  EXPECT_THROW(calibrate("roofline", h200(), {table("h100_sxm")}, "a test",
                         [](const std::string&, std::size_t) {}),
               config::ConfigError);
}

TEST(Calibrate, TwiceGivesTheSameFile) { EXPECT_EQ(to_yaml(calibrated()), to_yaml(calibrated())); }

TEST(CalibrationFile, ReadsBackAsItWasWritten) {
  const Calibration written = calibrated();
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) /
                                     (std::to_string(::getpid()) + "_calibration_round_trip.yaml");
  std::ofstream(path) << to_yaml(written);
  EXPECT_EQ(to_yaml(load_calibration(path.string())), to_yaml(written));
  std::filesystem::remove(path);
}

TEST(CalibrationFile, EveryFileOfTheLibraryBelongsToItsAcceleratorAndModel) {
  const config::Library library(ORRERY_SOURCE_DIR "/configs");
  const std::vector<std::string> names = library.names("calibrations");
  EXPECT_GE(names.size(), 5U);
  for (const std::string& name : names) {
    const Calibration calibration = load_calibration(library.locate("calibrations", name, ""));
    EXPECT_EQ(calibration.id, name);
    const CalibratedModel model(calibration);
    const auto accelerator = config::load<AcceleratorConfig>(
        library.locate("accelerators", calibration.accelerator, ""), library, "accelerators");
    // Kernels of an engine have calibrations of their own: h200_sxm_vllm_0_24.
    EXPECT_TRUE(name == accelerator.calibration || name.starts_with(accelerator.calibration + "_"));
    // The shares are of the rates that the accelerator still has.
    EXPECT_EQ(calibration.rates.memory.base(), accelerator.memory.bandwidth.value.base()) << name;
    for (const KernelFit& fit : calibration.fits) {
      EXPECT_TRUE(fit.held_out_error.count > 0 || !fit.sibling.empty()) << name << " " << fit.table;
      EXPECT_FALSE(fit.residuals.empty());
    }
  }
}

}  // namespace
}  // namespace orrery::calibrate_test
