// SPDX-License-Identifier: Apache-2.0
// Formats of fine-tuning as experiments name them: what adapters change, what is trained beside
// them, and the optimizer inside the backward pass.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/questions/explain/explain.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::training_formats_test {
namespace {

/// A metric of a step of Llama 3.1 8B on one GPU; memory is told whether or not it suffices.
double metric(const std::string& keys, const std::string& name) {
  SimulateOptions options;
  options.beyond_memory = true;
  const RunRecord record = simulate(
      test::load("{experiment: training, system: {extends: dgx_h100, accelerators: 1, "
                 "accelerators_per_node: 1}, model: llama_3_1_8b, batch: {global: 1, micro: 1, "
                 "sequence: 1024}, precision: bf16, recompute: full, software: pytorch, " +
                 keys + "}"),
      options);
  EXPECT_NE(record.find(name), nullptr) << name;
  return record.find(name) == nullptr ? 0 : record.find(name)->value;
}

// peft prints "trainable params: 6,815,744" for rank 16 on q_proj and v_proj (32 layers, hidden
// 4096, values of 1024), and 41,943,040 for all seven matrices.
TEST(TrainingFormats, AdaptersHaveTheParametersThatPeftPrints) {
  EXPECT_EQ(metric("lora: {rank: 16, target_modules: [q_proj, v_proj]}", "memory.optimizer_bytes"),
            12 * 6'815'744.0);
  EXPECT_EQ(metric("lora: {rank: 16, target_modules: [q_proj, k_proj, v_proj, o_proj, gate_proj, "
                   "up_proj, down_proj]}",
                   "memory.optimizer_bytes"),
            12 * 41'943'040.0);
}

TEST(TrainingFormats, SavedModulesHaveStatesOfTheirOwn) {
  const std::string adapters = "lora: {rank: 16, target_modules: [q_proj]";
  const auto more = [&](const std::string& name) {
    return metric(adapters + ", modules_to_save: [embed_tokens, lm_head]}", name) -
           metric(adapters + "}", name);
  };
  EXPECT_EQ(more("memory.optimizer_bytes"), 12 * 2 * 128256.0 * 4096);
  EXPECT_EQ(more("memory.weights_bytes"), 2 * 2 * 128256.0 * 4096);
}

/// As torchtune names it: without the gradients of a layer and of both ends 14 GB of 16 are freed.
TEST(TrainingFormats, TheOptimizerInsideTheBackwardPassFreesGradients) {
  const std::string keys = "gradient_clipping: false, optimizer_states: {gradients: bf16}";
  for (const char* name : {"optimizer_in_backward", "optimizer_in_bwd"}) {
    const std::string inside = keys + ", " + name + ": true";
    EXPECT_LT(metric(inside, "peak_memory_bytes"), metric(keys, "peak_memory_bytes") - 10e9);
    EXPECT_EQ(metric(inside, "memory.optimizer_bytes"), metric(keys, "memory.optimizer_bytes"));
    EXPECT_NEAR(metric(inside, "step_time_s") / metric(keys, "step_time_s"), 1, 0.02);
  }
}

/// DeepSeek-V3 by hand: rank x (in + out) of five matrices, in 61 layers.
TEST(TrainingFormats, LatentAttentionTrainsAdaptersAtEachTensorParallelSize) {
  const double whole = 16 * ((7168 + 1536) + 1536 + (7168 + 576) + 512 + 7168);
  const double split = 16 * (24576 + 32768 + 16384);
  for (const int tp : {1, 2}) {
    const RunRecord record = simulate(
        test::load("{experiment: training, system: dgx_h200, nodes: 16, model: deepseek_v3, "
                   "parallel: {tp: " +
                   std::to_string(tp) + ", sp: " + (tp > 1 ? "true" : "false") +
                   ", ep: 64, dp: " + std::to_string(128 / tp) +
                   ", zero: 1}, batch: {global: 128, micro: 1, sequence: 4096}, precision: bf16, "
                   "recompute: full, lora: {rank: 16, target_modules: [q_a_proj, q_b_proj, "
                   "kv_a_proj_with_mqa, kv_b_proj, o_proj]}}"),
        SimulateOptions());
    ASSERT_NE(record.find("memory.gradients_bytes"), nullptr);
    EXPECT_EQ(record.find("memory.gradients_bytes")->value, 2 * 61 * (whole + split / tp));
    EXPECT_GT(record.find("step_time_s")->value, 0);
  }
}

/// Small products on a device whose fp8 is as fast as its bf16: casts alone make the difference.
TEST(TrainingFormats, AnExplanationSaysWhatCastsTake) {
  const auto explained = [](const std::string& precision) {
    return explain(
        test::load("{experiment: training, system: tpu_v6e_pod, model: qwen3_8b, layers_only: 2, "
                   "parallel: {tp: 2}, batch: {global: 2, micro: 1, sequence: 1024}, precision: " +
                   precision + "}"));
  };
  const nlohmann::ordered_json wide = explained("bf16"), narrow = explained("fp8");
  EXPECT_FALSE(wide.contains("narrow_casts"));
  const double casts = narrow.at("narrow_casts").at("time_s");
  EXPECT_NEAR(narrow.at("narrow_casts").at("share").get<double>(),
              casts / narrow.at("time").at("value").get<double>(), 1e-12);
  const auto elementwise = [](const nlohmann::ordered_json& explanation) {
    for (const nlohmann::ordered_json& row : explanation.at("classes"))
      if (row.at("class") == "elementwise") return row.at("time_s").get<double>();
    return 0.0;
  };
  EXPECT_NEAR(elementwise(narrow) - elementwise(wide), casts, 0.02 * casts);
  EXPECT_GT(narrow.at("time").at("value"), wide.at("time").at("value"));
}

}  // namespace
}  // namespace orrery::training_formats_test
