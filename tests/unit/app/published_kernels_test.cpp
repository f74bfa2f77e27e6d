// SPDX-License-Identifier: Apache-2.0
// Kernels that no table has measured against what their authors publish as ratios; their times
// stand in validation/published. Nothing is fitted to these figures; bounds are how far the priors
// were off when they were written.
#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "sim/app/pricing/machine.h"
#include "sim/config/load.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/closed_forms.h"
#include "workloads/layers/layers.h"

namespace orrery::published_kernels_test {
namespace {

/// us of the mixer's kernels between the projections for one part of a step.
double part_us(const std::string& system, const LlmConfig& model, const LayerConfig& layer,
               const AttentionPart& part) {
  const config::Library& files = config::default_library();
  const Machine machine(
      config::load<SystemConfig>(files.locate("systems", system, ""), files, "systems"), 1);
  const auto kernels = machine.kernels({});
  const auto prices = kernels->on(machine.accelerator());
  RankWork work;
  work.batch.phase = part.phase;
  work.batch.sequences = part.sequences;
  work.batch.query = part.query;
  work.batch.context = part.context;
  const StepList steps = attention_part_forward(model, layer, work, part);
  double us = 0;
  for (const Step& step : steps.steps())
    us += static_cast<double>(prices->cost(*step.kernel()).duration) / 1e6;
  return us;
}

/// How far off a prediction is, for people to read.
double ratio(const std::string& what, double predicted, double published) {
  std::cout << what << ": predicted " << predicted << ", published " << published << ", "
            << predicted / published << " times\n";
  return predicted / published;
}

// arXiv 2606.13392: 28.4 times fewer FLOPs of attention a token at 1M tokens; 14.2 times faster
// over prompts and 7.6 times in decodes on an H800, of a model with the heads of MiniMax-M3.
TEST(PublishedKernels, BlockSparseAttentionAtAMillionTokens) {
  constexpr std::int64_t kTokens = 1 << 20;
  const LlmConfig model = library_model("minimax_m3");
  const LayerConfig& full = model.layers.front();
  const LayerConfig& sparse = model.layers.back();
  const auto attention = [&](const LayerConfig& layer) {
    LlmConfig one = model;
    one.layers = {layer};
    return model_flops_per_token(one, kTokens, true).base() -
           2.0 * static_cast<double>(count_parameters(one).active_matrices);
  };
  EXPECT_NEAR(attention(full) / attention(sparse), 28.4, 0.05);
  const auto faster = [&](const AttentionPart& part) {
    return part_us("dgx_h800", model, full, part) / part_us("dgx_h800", model, sparse, part);
  };
  const double decodes = ratio("decode", faster({Phase::kDecode, 1, 1, kTokens, {}, true}), 7.6);
  const double prompts =
      ratio("prompt", faster({Phase::kPrefill, 1, kTokens, kTokens, {}, true}), 14.2);
  EXPECT_GT(decodes, 0.6);
  EXPECT_LT(decodes, 1.6);
  EXPECT_GT(prompts, 0.5);
  EXPECT_LT(prompts, 2.5);
}

}  // namespace
}  // namespace orrery::published_kernels_test
