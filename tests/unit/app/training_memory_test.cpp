// SPDX-License-Identifier: Apache-2.0
// Compares the memory of training steps with published values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/app/experiments/core/simulate.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::training_memory_test {
namespace {

using testing::HasSubstr;

/// A step, and the memory that PyTorch's allocator had reserved.
struct Step {
  const char* name;
  std::string experiment;
  double gib;
  double within;
};

void PrintTo(const Step& step, std::ostream* out) { *out << step.name; }

class PrintedSteps : public testing::TestWithParam<Step> {};

TEST_P(PrintedSteps, ReserveTheMemoryThatTheyPrinted) {
  const Step& step = GetParam();
  SimulateOptions options;
  options.beyond_memory = true;
  const RunRecord record =
      simulate(test::load("{experiment: training, " + step.experiment + "}"), options);
  ASSERT_NE(record.find("reserved_memory_bytes"), nullptr);
  const double reserved = record.find("reserved_memory_bytes")->value;
  EXPECT_NEAR(reserved / (step.gib * 1024 * 1024 * 1024), 1, step.within);
  EXPECT_GE(reserved, record.find("peak_memory_bytes")->value);
  // nvidia-smi shows the CUDA context beside it.
  EXPECT_DOUBLE_EQ(record.find("used_memory_bytes")->value, reserved + 1343.0 * 1024 * 1024);
}

std::string torchtitan(const std::string& model, const std::string& plan,
                       const std::string& software) {
  return "system: {extends: dgx_h100, accelerator: {extends: h100_sxm, memory: {bandwidth: 2.4 "
         "TB/s, capacity: 96 GB}, power: {limit: 500 W}}}, model: " +
         model + ", " + plan + ", software: " + software;
}

/// Adapters of queries, keys and values on one A100 of 40 GB.
std::string adapters(const std::string& model, int micro) {
  return "system: {extends: dgx_a100_40, accelerators: 1, accelerators_per_node: 1}, model: " +
         model + ", batch: {global: 128, micro: " + std::to_string(micro) +
         ", sequence: 1304}, precision: bf16, software: pytorch, lora: {rank: 8, dropout: 0.05, "
         "target_modules: [qkv_proj]}";
}

const std::string kEight =
    "parallel: {dp: 8, zero: 3}, batch: {global: 16, micro: 2, sequence: "
    "8192}, recompute: selective, precision: ";

// pytorch/torchtitan benchmarks/llama3_h100_202412_torchtitan.md, tables 1 to 3; pytorch/ao
// docs/source/workflows/training.md; Lightning-AI/litgpt 2685705 tutorials/resource-tables.md.
INSTANTIATE_TEST_SUITE_P(
    Of, PrintedSteps,
    testing::Values(
        Step{"EagerLayers", torchtitan("llama_3_1_8b", kEight + "bf16", "fsdp2_eager"), 82.4, 0.07},
        Step{"CompiledLayers", torchtitan("llama_3_1_8b", kEight + "bf16", "fsdp2"), 77.0, 0.05},
        Step{"EightBits", torchtitan("llama_3_1_8b", kEight + "fp8", "fsdp2"), 76.8, 0.05},
        Step{"SixteenNodes",
             "nodes: 16, " + torchtitan("llama_3_1_8b",
                                        "parallel: {dp: 128, zero: 3}, batch: {global: 256, micro: "
                                        "2, sequence: 8192}, recompute: selective, precision: bf16",
                                        "fsdp2"),
             62.0, 0.05},
        Step{"LongContext",
             torchtitan("llama_3_1_8b",
                        "parallel: {dp: 1, cp: 8, zero: 3}, batch: {global: 1, micro: 1, sequence: "
                        "262144}, recompute: full, precision: fp8",
                        "fsdp2"),
             84.5, 0.05},
        Step{"TensorParallel",
             "nodes: 32, " + torchtitan("llama_3_1_70b",
                                        "parallel: {tp: 8, sp: true, dp: 32, zero: 3}, batch: "
                                        "{global: 512, micro: 16, sequence: 8192}, recompute: "
                                        "full, precision: fp8",
                                        "fsdp2"),
             67.6, 0.09},
        Step{"Adapters", adapters("llama_2_7b", 1), 19.84, 0.05},
        Step{"AdaptersOfTwoSequences", adapters("llama_2_7b", 2), 27.07, 0.08}),
    [](const auto& of) { return std::string(of.param.name); });

// IST-DASLab/llmq, README (2025): Qwen2.5-7B in bf16 with moments in bf16 and no master weights
// runs on one H100, four sequences of 1,024 at a time.
TEST(TrainingMemoryOfRuns, SevenBillionWithNarrowMomentsFitOneCard) {
  const std::string step =
      "{experiment: training, system: dgx_h100, model: {dimensions: {layers: 28, hidden: 3584, "
      "heads: 28, kv_heads: 4, head_dim: 128, intermediate: 18944, vocabulary: 152064, gated: "
      "true, biases: false, layer_norm: false, tied_embeddings: false}}, parallel: {dp: 1}, "
      "batch: {global: 256, micro: 4, sequence: 1024}, precision: bf16";
  const RunRecord narrow =
      simulate(test::load(
          step + ", optimizer_states: {gradients: bf16, momentum: bf16, variance: bf16, master: "
                 "none}}"));
  EXPECT_EQ(narrow.status, RunStatus::kOk) << narrow.reason;
  const RunRecord wide = simulate(test::load(step + "}"));
  EXPECT_EQ(wide.status, RunStatus::kInfeasible);
  EXPECT_THAT(wide.reason, HasSubstr("fits with, each alone: optimizer_offload.fraction: 0.75 ("));
}

// The driver moves moments to the host until the rest fits, and each step transfers them over a
// link of 64 GB/s twice. 8 billion parameters have 64 GB of moments.
TEST(TrainingMemoryOfRuns, PagedMomentsGiveWayToAllElse) {
  const std::string step =
      "{experiment: training, system: dgx_h100, model: llama_3_1_8b, parallel: {dp: 1}, batch: "
      "{global: 8, micro: 1, sequence: 1024}, precision: bf16, recompute: full";
  SimulateOptions options;
  options.beyond_memory = true;
  const RunRecord device = simulate(test::load(step + "}"), options);
  const RunRecord paged =
      simulate(test::load(step + ", optimizer_states: {placement: paged}}"), options);
  EXPECT_EQ(device.status, RunStatus::kInfeasible);
  EXPECT_EQ(paged.status, RunStatus::kOk) << paged.reason;
  const double moved =
      device.find("peak_memory_bytes")->value - paged.find("peak_memory_bytes")->value;
  EXPECT_NEAR(moved, device.find("memory_shortfall_bytes")->value, 1);
  const double longer = paged.find("step_time_s")->value - device.find("step_time_s")->value;
  EXPECT_GT(longer, 2 * moved / 64e9);
  EXPECT_LT(longer, 2 * moved / 40e9);
}

// NVIDIA/Megatron-LM issue 606 (2023): out of memory. 18 bytes a parameter of 6.74 billion.
TEST(TrainingMemoryOfRuns, SevenBillionDoNotFitCardsOf40GB) {
  const RunRecord record = simulate(test::load(
      "{experiment: training, system: dgx_a100_40, model: llama_2_7b, parallel: {dp: 8, zero: 0}, "
      "batch: {global: 8, micro: 1, sequence: 64}, precision: bf16, software: {extends: "
      "megatron_lm_2023, main_gradients: fp32}}"));
  EXPECT_EQ(record.status, RunStatus::kInfeasible);
  EXPECT_NEAR(record.find("memory.weights_bytes")->value +
                  record.find("memory.gradients_bytes")->value +
                  record.find("memory.optimizer_bytes")->value,
              18 * 6.738e9, 0.01e9);
}

/// More memory of one tensor is never less of all, and more ranks never need more each.
TEST(TrainingMemoryOfRuns, MoreRanksOfAnAxisNeverNeedMoreEach) {
  const auto peak = [](const std::string& plan, int nodes) {
    SimulateOptions options;
    options.beyond_memory = true;
    const RunRecord record = simulate(
        test::load("{experiment: training, system: dgx_h100, nodes: " + std::to_string(nodes) +
                   ", model: llama_3_1_8b, parallel: {" + plan +
                   "}, batch: {micro: 1, global: 32, sequence: 4096}, recompute: full}"),
        options);
    return record.find("peak_memory_bytes")->value;
  };
  for (const std::string axis : {"tp", "pp", "cp"}) {
    double before = peak("dp: 1, zero: 1", 1);
    for (const int ranks : {2, 4, 8}) {
      const double now = peak(axis + ": " + std::to_string(ranks) +
                                  (axis == "tp" ? ", sp: true" : "") + ", dp: 1, zero: 1",
                              1);
      EXPECT_LE(now, before) << axis << " " << ranks;
      before = now;
    }
  }
}

}  // namespace
}  // namespace orrery::training_memory_test
