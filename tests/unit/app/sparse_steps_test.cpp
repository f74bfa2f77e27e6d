// SPDX-License-Identifier: Apache-2.0
// Steps of models with other mixers than attention to all keys: on all kinds of devices, by
// context.
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "sim/app/experiments/core/simulate.h"
#include "tests/printed_name.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::sparse_steps_test {
namespace {

using test::load;

double step_s(const std::string& model, const std::string& keys) {
  const RunRecord record =
      simulate(load("{experiment: inference, model: " + model + ", " + keys + "}"));
  return record.find("step_time_s")->value;
}

struct Machine {
  const char* keys;  ///< system and format of the weights
  int ranks;         ///< ranks of a group of experts
};

/// Enough memory for models of 2.8 T parameters; the last multiplies no fp8.
constexpr Machine kMachines[] = {{"system: dgx_h100, nodes: 16, precision: fp8", 128},
                                 {"system: dgx_b200, nodes: 4, precision: fp8", 32},
                                 {"system: gb200_nvl72, precision: fp8", 64},
                                 {"system: mi355x_platform, nodes: 2, precision: fp8", 16},
                                 {"system: cm384, precision: bf16", 256}};

struct Plan {
  const char* model;
  int tp;
};

void PrintTo(const Plan& plan, std::ostream* out) { *out << plan.model; }

class SparseSteps : public testing::TestWithParam<Plan> {};

TEST_P(SparseSteps, RunOnEveryKindOfDevice) {
  const auto [model, tp] = GetParam();
  for (const Machine& machine : kMachines) {
    const std::string on = std::string(machine.keys) + ", parallel: {tp: " + std::to_string(tp) +
                           ", dp: " + std::to_string(machine.ranks / tp) +
                           ", ep: " + std::to_string(machine.ranks) + "}, ";
    const double near = step_s(model, on + "phase: decode, kv_length: 4096, batch: {micro: 4}");
    const double far = step_s(model, on + "phase: decode, kv_length: 16384, batch: {micro: 4}");
    EXPECT_GE(far, near) << machine.keys;
    const double one = step_s(model, on + "phase: prefill, batch: {micro: 1, sequence: 4096}");
    const double two = step_s(model, on + "phase: prefill, batch: {micro: 2, sequence: 4096}");
    EXPECT_GT(two, 1.3 * one) << machine.keys;
    EXPECT_LT(two, 2.1 * one) << machine.keys;
  }
}

// What is not in experts of Kimi K3 takes 113 GB in 16 bits: heads are shared by eight ranks.
INSTANTIATE_TEST_SUITE_P(Models, SparseSteps,
                         testing::Values(Plan{"qwen3_next_80b_a3b", 1}, Plan{"deepseek_v3_2", 1},
                                         Plan{"glm_5_2", 1}, Plan{"minimax_m3", 1},
                                         Plan{"kimi_k3", 8}, Plan{"deepseek_v4_flash", 1}),
                         PrintedName());

/// A decode step on 72 H200 in fp8, 16 sequences a rank.
double decode_s(const char* model, std::int64_t context) {
  return step_s(model,
                "system: dgx_h200, nodes: 9, precision: fp8, kv_precision: fp8, parallel: "
                "{tp: 1, dp: 72, ep: 72}, phase: decode, batch: {micro: 16}, kv_length: " +
                    std::to_string(context));
}

// The report of DeepSeek-V3.2-Exp (figure 3) has the price of a token on H800 by its place: decoded
// ones of V3.1 cost a multiple at 128k of what they cost at 4k, those of V3.2 next to nothing more.
TEST(SparseSteps, OfDeepSeekV32HardlyGrowWithTheContext) {
  const double near = decode_s("deepseek_v3_2", 4096), middle = decode_s("deepseek_v3_2", 32768),
               far = decode_s("deepseek_v3_2", 131072);
  EXPECT_LT(near, middle);
  EXPECT_LT(middle, far);
  EXPECT_LE(far / near, 1.5);
  const double dense_near = decode_s("deepseek_v3", 4096),
               dense_far = decode_s("deepseek_v3", 131072);
  EXPECT_GT(dense_far / dense_near, 2);
  EXPECT_GT(dense_far / far, 1.5);
  EXPECT_NEAR(near / dense_near, 1, 0.25);
}

/// A piece of 4,096 tokens of a prompt behind so many others on 32 H800.
double piece_s(const char* model, std::int64_t context) {
  return step_s(model,
                "system: deepseek_h800, nodes: 4, precision: fp8, parallel: {tp: 1, dp: 32, "
                "ep: 32}, phase: mixed, mixed: {chunks: [{tokens: 4096, context: " +
                    std::to_string(context) + "}]}");
}

// The same figure: prompts of V3.1 cost some 0.70 dollars a million tokens at 128k, those of V3.2
// 0.20, and next to the same at the start.
TEST(SparseSteps, OfDeepSeekV32ReadLongPromptsForAShare) {
  const double saved = piece_s("deepseek_v3", 122880) / piece_s("deepseek_v3_2", 122880);
  EXPECT_GT(saved, 0.7 * 3.5);
  EXPECT_LT(saved, 1.3 * 3.5);
  EXPECT_NEAR(piece_s("deepseek_v3_2", 0) / piece_s("deepseek_v3", 0), 1, 0.25);
}

}  // namespace
}  // namespace orrery::sparse_steps_test
