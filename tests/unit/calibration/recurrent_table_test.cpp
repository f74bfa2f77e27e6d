// SPDX-License-Identifier: Apache-2.0
// Tables of kernels that stream states and windows, and of selections: from their file to a fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>

#include "models/kernels/calibrated_model.h"
#include "models/kernels/measured_model.h"
#include "sim/config/load.h"
#include "tests/unit/importers/scratch.h"
#include "tests/unit/machine/shipped_library.h"
#include "tests/unit/models/kernels/tile_family.h"
#include "validation/calibration/calibrate.h"
#include "validation/calibration/operator_kernels.h"
#include "validation/calibration/row_rules.h"
#include "workloads/layers/recurrent/delta_net_kernels.h"
#include "workloads/operators/operator.h"

namespace orrery::recurrent_table_test {
namespace {

using testing::HasSubstr;

constexpr const char* kRecurrentHeader =
    "system,kernel,precision,state_precision,batch,tokens,heads,groups,key_dim,value_dim,channels,"
    "taps,latency_us\n";
constexpr const char* kSelectionHeader = "system,rows,scores,chosen,latency_us\n";

struct OperatorHolder {
  config::OneOf<OperatorConfig> op;
  static const config::Schema<OperatorHolder>& schema() {
    static const auto schema = config::Schema<OperatorHolder>("holder", "of an operator")
                                   .required("op", &OperatorHolder::op, "which");
    return schema;
  }
};

/// What `experiment: operator` runs.
std::vector<Kernel> of_operator(const std::string& keys) {
  config::Diagnostics diagnostics;
  const config::Node node = config::parse_yaml("op: {" + keys + "}\n", "test.yaml", diagnostics);
  const auto holder = config::read<OperatorHolder>(node, diagnostics, shipped_library());
  diagnostics.throw_if_errors();
  return holder.op->kernels(Precision::kBf16);
}

std::vector<Kernel> of_row(const OperatorTable& table, std::size_t row = 0) {
  return operator_kernels(table.kind, table.rows.at(row), Precision::kBf16);
}

/// Rows without their times: updates of Qwen3-Next (32 heads) and Nemotron-H's kind of Mamba-2 on 1
/// to 8 ranks, and convolutions of as many channels.
std::vector<std::string> recurrent_rows() {
  std::vector<std::string> rows;
  for (const int batch : {1, 4, 16, 64, 256, 1024}) {
    const std::string of = std::to_string(batch) + ",1,";
    for (const int heads : {4, 8, 16, 32, 64}) {
      const std::string n = std::to_string(heads);
      rows.push_back("delta_update,bf16,fp32," + of + n + "," + std::to_string(heads / 2) +
                     ",128,128,0,0");
      rows.push_back("mamba_update,bf16,fp32," + of + n + ",1,128,64,0,0");
      rows.push_back("mamba_update,bf16,bf16," + of + n + ",2,128,64,0,0");
      const std::string channels = std::to_string(heads * 256);
      rows.push_back("causal_convolution_update,bf16,bf16," + of + "0,0,0,0," + channels + ",4");
      rows.push_back("causal_convolution,bf16,bf16," + std::to_string(batch) + ",512,0,0,0,0," +
                     channels + ",4");
    }
  }
  return rows;
}

std::vector<std::string> selection_rows() {
  std::vector<std::string> rows;
  for (const int count : {1, 8, 64, 132, 512, 4096})
    for (int scores = 4096; scores <= 131072; scores += 4096)
      rows.push_back(std::to_string(count) + "," + std::to_string(scores) + ",2048");
  return rows;
}

class RecurrentTables : public Scratch {
 protected:
  /// The table that a family with these values would have been measured as: first with times of 1,
  /// so that its own kernels can be timed.
  CalibrationInput table_of(const std::string& header, const std::vector<std::string>& rows,
                            const KernelFamily& family, const std::vector<double>& values) const {
    const auto written = [&](const std::function<std::string(std::size_t)>& time) {
      std::string text = header;
      for (std::size_t i = 0; i < rows.size(); ++i)
        text.append("h200_sxm,").append(rows[i]).append(",").append(time(i)).append("\n");
      return write("table.csv", text);
    };
    const OperatorTable blank = read_operator_table(written([](std::size_t) { return "1"; }));
    const AcceleratorConfig h200 = shipped_accelerator("h200_sxm");
    const auto time = [&](std::size_t i) {
      const Kernel kernel = of_row(blank, i).at(0);
      return std::to_string(family.time(kernel, h200, values.data()).total_us);
    };
    return read_calibration_input(written(time), "2026-01-02");
  }
};

Calibration fitted(const CalibrationInput& input) {
  return calibrate("tiles", shipped_accelerator("h200_sxm"), {input}, "a test",
                   [](const std::string&, std::size_t) {});
}

TEST_F(RecurrentTables, RowsAreTheKernelsOfTheOperators) {
  const OperatorTable table = read_operator_table(
      write("t.csv", std::string(kRecurrentHeader) +
                         "x,delta_update,bf16,fp32,8,1,32,16,128,128,0,0,9\n"
                         "x,delta_update,bf16,bf16,8,3,32,16,128,128,0,0,9\n"
                         "x,mamba_update,bf16,fp32,8,1,64,8,128,64,0,0,9\n"
                         "x,causal_convolution,bf16,bf16,2,512,0,0,0,0,8192,4,9\n"
                         "x,causal_convolution_update,bf16,bf16,8,1,0,0,0,0,8192,4,9\n"));
  ASSERT_EQ(table.kind, OperatorTableKind::kRecurrent);
  EXPECT_STREQ(to_string(table.kind), "recurrent_kernels");
  const std::vector<std::string> operators = {
      "kind: delta_update, batch: 8, heads: 32, key_heads: 16",
      "kind: delta_update, batch: 8, query: 3, heads: 32, key_heads: 16, state_precision: bf16",
      "kind: mamba_update, batch: 8, heads: 64, groups: 8, head_dim: 64, state: 128",
      "kind: causal_convolution, batch: 2, query: 512, channels: 8192",
      "kind: causal_convolution, batch: 8, channels: 8192, update: true"};
  for (std::size_t i = 0; i < operators.size(); ++i)
    EXPECT_EQ(of_row(table, i), of_operator(operators[i])) << operators[i];
}

TEST_F(RecurrentTables, ASelectionIsTheSecondKernelOfIndexScores) {
  const OperatorTable table =
      read_operator_table(write("t.csv", std::string(kSelectionHeader) + "x,64,8192,2048,9\n"));
  ASSERT_EQ(table.kind, OperatorTableKind::kSelection);
  const std::vector<Kernel> both =
      of_operator("kind: index_scores, batch: 64, kv_length: 8192, top_k: 2048");
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(of_row(table).at(0), both[1]);
}

TEST_F(RecurrentTables, WrongRowsSayWhatIsMeant) {
  const auto fault = [this](const std::string& header, const std::string& row) {
    return message_of([&] { read_operator_table(write("t.csv", header + row + "\n")); });
  };
  EXPECT_THAT(fault(kRecurrentHeader, "x,delta_rules,bf16,fp32,8,1,32,16,128,128,0,0,9"),
              HasSubstr("'kernel' is one of causal_convolution, causal_convolution_update, "
                        "delta_fused, delta_rule, delta_update, kimi_rule, kimi_update, "
                        "mamba_update"));
  EXPECT_THAT(fault(kRecurrentHeader, "x,delta_update,bf16,fp8,8,1,32,16,128,128,0,0,9"),
              HasSubstr("'state_precision' is fp32 or bf16"));
  EXPECT_THAT(fault(kRecurrentHeader, "x,delta_update,bf16,fp32,8,1,32,5,128,128,0,0,9"),
              HasSubstr("'groups' divides 'heads'"));
  EXPECT_THAT(fault(kRecurrentHeader, "x,delta_update,bf16,fp32,0,1,32,16,128,128,0,0,9"),
              HasSubstr("'batch' and 'tokens' are at least 1"));
  EXPECT_THAT(fault(kRecurrentHeader, "x,causal_convolution,bf16,bf16,1,512,0,0,0,0,0,4,9"),
              HasSubstr("'channels' and 'taps' are at least 1"));
  EXPECT_THAT(fault(kSelectionHeader, "x,64,1024,2048,9"),
              HasSubstr("no more are chosen than there are 'scores'"));
}

// gdn, kda and mamba2 of engines: columns of models, kernels by the names of their software.
TEST_F(RecurrentTables, OfEnginesAreReadByTheirOwnNames) {
  const std::string head = "system,framework,version,kernel,operation,phase,batch,seq_len,d_model,";
  const auto table = [&](const std::string& kernel, const std::string& operation,
                         const std::string& tokens) {
    return read_operator_table(write(
        "g.csv", head + "d_conv,num_k_heads,head_k_dim,num_v_heads,head_v_dim,model,latency_us\n" +
                     "x,vllm,0.24.0," + kernel + "," + operation + ",p,8," + tokens +
                     ",2048,4,16,128,32,128,M,9\n"));
  };
  EXPECT_EQ(table("fused_recurrent_gated_delta_rule_packed_decode", "gdn", "1").kind,
            OperatorTableKind::kRecurrent);
  const auto same = [&](const std::string& kernel, const std::string& operation,
                        const std::string& tokens, const std::string& keys) {
    EXPECT_EQ(of_row(table(kernel, operation, tokens)), of_operator(keys)) << kernel;
  };
  const std::string heads = "batch: 8, heads: 32, key_heads: 16";
  same("fused_recurrent_gated_delta_rule_packed_decode", "gdn", "1",
       "kind: delta_update, " + heads);
  same("chunk_gated_delta_rule", "gdn", "512",
       "kind: delta_rule, query: 512, unit_keys: true, " + heads);
  same("fused_sigmoid_gating_delta_rule_update", "kda", "4",
       "kind: delta_update, query: 4, decays: column, " + heads);
  same("causal_conv1d_fn", "gdn", "512",
       "kind: causal_convolution, batch: 8, query: 512, channels: 8192");
  same("causal_conv1d_update", "gdn", "1",
       "kind: causal_convolution, batch: 8, channels: 8192, update: true");
  const std::vector<Kernel> fused =
      of_row(table("chunk_gated_delta_rule_flashinfer", "gdn", "512"));
  ASSERT_EQ(fused.size(), 1U);
  EXPECT_EQ(fused[0].name, "delta fused rule");
  EXPECT_EQ(fused[0].batch, 8 * 32);
  const OperatorTable mamba = read_operator_table(write(
      "m.csv", head + "d_state,d_conv,nheads,head_dim,n_groups,chunk_size,model,latency_us\n" +
                   "x,trtllm,1.3.0rc20,causal_conv1d_fn,mamba2,context,2,64,1024,128,4,64,64,"
                   "8,128,M,9\n"));
  EXPECT_EQ(of_row(mamba), of_operator("kind: causal_convolution, batch: 2, query: 64, channels: " +
                                       std::to_string(64 * 64 + 2 * 8 * 128)));
}

TEST_F(RecurrentTables, OfEnginesSayWhichColumnOrNumberIsWrong) {
  const auto fault = [this](const std::string& columns, const std::string& row) {
    return message_of([&] {
      read_operator_table(write("g.csv", "system,kernel,operation,batch,seq_len,d_conv," + columns +
                                             ",latency_us\n" + row + "\n"));
    });
  };
  const std::string columns = "num_k_heads,head_k_dim,num_v_heads,head_v_dim";
  EXPECT_THAT(fault("num_k_heads,head_k_dim,num_v_head,head_v_dim",
                    "x,causal_conv1d_fn,gdn,1,64,4,"
                    "16,128,32,128,5"),
              HasSubstr("there is no column 'num_v_heads'; is it 'num_v_head'?"));
  EXPECT_THAT(fault(columns, "x,causal_conv1d_fn,gdn,1,64,0,16,128,32,128,5"),
              HasSubstr("numbers of sequences, tokens, taps, heads and columns are at least 1"));
  EXPECT_THAT(fault(columns, "x,causal_conv1d_fn,gdn,1,64,4,16,128,40,128,5"),
              HasSubstr("heads that others share divide those"));
}

// A table's loop repeats one layer: 64 sequences have 134 MB of states of 32 heads, more than the
// 50 MB of the L2, 16 have 33 MB.
TEST_F(RecurrentTables, UpdatesWhoseStatesFitIntoTheCacheTellNothingOfSteps) {
  const AcceleratorConfig h200 = shipped_accelerator("h200_sxm");
  const OperatorTable table = read_operator_table(
      write("t.csv", std::string(kRecurrentHeader) +
                         "h200_sxm,delta_update,bf16,fp32,64,1,32,16,128,128,0,0,70\n"
                         "h200_sxm,delta_update,bf16,fp32,8,1,32,16,128,128,0,0,9\n"
                         "h200_sxm,delta_update,bf16,fp32,1,1,4,2,128,128,0,0,4.4\n"));
  const std::vector<RowRule> rules = row_rules(table, [&](const std::string&) { return &h200; });
  EXPECT_EQ(rules, (std::vector{RowRule::kKept, RowRule::kStates, RowRule::kKept}));
}

TEST_F(RecurrentTables, AFitFindsTheLaunchAndTheShareOfTheMemory) {
  const KernelFamily& family = tile_family(KernelClass::kScan);
  std::vector<double> truth = family.priors(shipped_accelerator("h200_sxm"), Precision::kBf16);
  truth[parameter_index(family, "launch")] = 3.1;
  truth[parameter_index(family, "stream_efficiency")] = 0.83;
  const Calibration calibration =
      fitted(table_of(kRecurrentHeader, recurrent_rows(), family, truth));
  ASSERT_EQ(calibration.fits.size(), 1U);
  const KernelFit& fit = calibration.fits[0];
  EXPECT_EQ(fit.table, "recurrent_kernels");
  EXPECT_NEAR(fit.parameters.at("scan.launch").value, 3.1, 1e-3);
  EXPECT_NEAR(fit.parameters.at("scan.stream_efficiency").value, 0.83, 1e-3);
  EXPECT_GE(fit.held_out_error.count, 8);
  EXPECT_LT(fit.held_out_error.mape, 1e-4);
}

TEST_F(RecurrentTables, AFitFindsTheLaunchAndTheShareOfTheCacheOfSelections) {
  const KernelFamily& family = tile_family(KernelClass::kSparse);
  std::vector<double> truth = family.priors(shipped_accelerator("h200_sxm"), Precision::kBf16);
  truth[parameter_index(family, "launch")] = 2.2;
  truth[parameter_index(family, "selection_efficiency")] = 0.47;
  const Calibration calibration =
      fitted(table_of(kSelectionHeader, selection_rows(), family, truth));
  ASSERT_EQ(calibration.fits.size(), 1U);
  const KernelFit& fit = calibration.fits[0];
  EXPECT_EQ(fit.table, "index_selection");
  EXPECT_NEAR(fit.parameters.at("sparse.launch").value, 2.2, 1e-3);
  EXPECT_NEAR(fit.parameters.at("sparse.selection_efficiency").value, 0.47, 1e-3);
  EXPECT_LT(fit.held_out_error.mape, 1e-4);
}

/// One fit of recurrent kernels, which later questions are put to.
class RecurrentFit : public RecurrentTables {
 protected:
  Calibration calibration() {
    const KernelFamily& family = tile_family(KernelClass::kScan);
    std::vector<double> truth = family.priors(shipped_accelerator("h200_sxm"), Precision::kBf16);
    truth[parameter_index(family, "launch")] = 3.1;
    return fitted(table_of(kRecurrentHeader, recurrent_rows(), family, truth));
  }
};

TEST_F(RecurrentFit, UpdatesAreCalibratedAndProductsOfChunksStayAnalytic) {
  // No row has a product: what matrix units take is as estimated before, with its width.
  const AcceleratorConfig h200 = shipped_accelerator("h200_sxm");
  const CalibratedModel model(calibration());
  const auto prices = model.on(h200);
  const Kernel update =
      of_operator("kind: delta_update, batch: 128, heads: 16, key_heads: 8").at(0);
  EXPECT_EQ(prices->cost(update).provenance, Provenance::kCalibrated);
  for (const Kernel& kernel : of_operator("kind: delta_rule, query: 4096, heads: 32")) {
    if (kernel.matrix_flops.base() == 0) continue;
    EXPECT_EQ(prices->cost(kernel).provenance, Provenance::kAnalytic) << kernel.name;
    const std::vector<double> of_fit = prices->draws(kernel, 7);
    const std::vector<double> of_priors = CalibratedModel().on(h200)->draws(kernel, 7);
    // Faster draws end at the rates of the device, which is another share of another price.
    for (std::size_t i = 0; i < of_fit.size(); ++i) {
      if (of_priors[i] <= 1) continue;
      EXPECT_EQ(of_fit[i], of_priors[i]) << kernel.name;
    }
  }
}

TEST_F(RecurrentFit, AMeasuredTableGivesAnOperatorItsTime) {
  const AcceleratorConfig h200 = shipped_accelerator("h200_sxm");
  const OperatorTable table = read_operator_table(
      write("t.csv", std::string(kRecurrentHeader) +
                         "h200_sxm,mamba_update,bf16,fp32,8,1,64,8,128,64,0,0,17.5\n"));
  const CalibratedModel priors;
  const MeasuredModel model(std::make_unique<CalibratedModel>(),
                            measured_kernels(table, h200, priors));
  const Kernel kernel =
      of_operator("kind: mamba_update, batch: 8, heads: 64, groups: 8, head_dim: 64, state: 128")
          .at(0);
  const KernelCost cost = model.on(h200)->cost(kernel);
  EXPECT_EQ(cost.duration, to_picoseconds(Seconds(17.5e-6)));
  EXPECT_EQ(cost.provenance, Provenance::kMeasured);
}

TEST_F(RecurrentTables, AMeasuredDeltaUpdateIsNoMambaUpdateOfAsManyElements) {
  const AcceleratorConfig h200 = shipped_accelerator("h200_sxm");
  const OperatorTable table = read_operator_table(
      write("t.csv", std::string(kRecurrentHeader) +
                         "h200_sxm,delta_update,bf16,fp32,64,1,32,16,128,128,0,0,70\n"
                         "h200_sxm,mamba_update,bf16,fp32,64,1,64,1,128,64,0,0,80\n"));
  const MeasuredModel model(std::make_unique<CalibratedModel>(),
                            measured_kernels(table, h200, CalibratedModel()));
  const auto us = [&](const std::string& keys) {
    return to_seconds(model.on(h200)->cost(of_operator(keys).at(0)).duration).base() * 1e6;
  };
  EXPECT_NEAR(us("kind: delta_update, batch: 64, heads: 32, key_heads: 16"), 70, 1e-6);
  EXPECT_NEAR(us("kind: mamba_update, batch: 64, heads: 64, head_dim: 64, state: 128"), 80, 1e-6);
}

TEST(ShapeGroups, OfRecurrentKernelsAreHeadsOfOneKernelWhateverTheBatch) {
  OperatorRow a;
  a.kernel = "delta_update";
  a.heads = 32;
  a.batch = 1;
  OperatorRow b = a;
  b.batch = 512;
  const auto group = [](const OperatorRow& row) {
    return shape_group(OperatorTableKind::kRecurrent, row);
  };
  EXPECT_EQ(group(a), group(b));
  b.kernel = "mamba_update";
  EXPECT_NE(group(a), group(b));
}

}  // namespace
}  // namespace orrery::recurrent_table_test
