// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/config/diagnostics.h"
#include "sim/graph/memory_profile.h"
#include "sim/graph/verify.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/figures/statistics.h"

namespace orrery::recompute_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using M = RecomputeModule;

RecomputeConfig selective(std::vector<M> modules) {
  RecomputeConfig recompute = Recompute::kSelective;
  recompute.modules = std::move(modules);
  return recompute;
}

RecomputeConfig full(RecomputeMethod method, int layers) {
  RecomputeConfig recompute = Recompute::kFull;
  recompute.method = method;
  recompute.num_layers = layers;
  return recompute;
}

TrainingConfig config_of(const RecomputeConfig& recompute, ParallelConfig parallel = {}) {
  TrainingConfig config;
  config.parallel = parallel;
  config.global_batch = 4L * parallel.dp;
  config.sequence = 32;
  config.recompute = recompute;
  return config;
}

LlmConfig latent_moe(std::int64_t layers) {
  LlmConfig model = small_moe(layers);
  model.attention.kind = AttentionKind::kLatent;
  model.attention.kv_heads = 8;
  model.attention.q_lora_rank = 24;
  model.attention.kv_lora_rank = 16;
  model.attention.qk_nope_head_dim = 8;
  model.attention.qk_rope_head_dim = 4;
  model.attention.v_head_dim = 8;
  return model;
}

double executed(const LlmConfig& model, const TrainingConfig& config) {
  return program_statistics(build_training(model, config).program).matrix_flops().base();
}

/// FLOPs that recomputation adds, a token and layer.
double added(const LlmConfig& model, const RecomputeConfig& recompute) {
  const TrainingConfig config = config_of(recompute);
  const double tokens = static_cast<double>(config.global_batch * config.sequence);
  const double more = executed(model, config) - executed(model, config_of({}));
  return more / tokens / static_cast<double>(model.layer_count());
}

/// Bytes that a layer keeps, a token.
double kept(const LlmConfig& model, const RecomputeConfig& recompute) {
  const TrainingConfig config = config_of(recompute);
  return layer_activation_bytes(model, model.layers[0], rank_work(config)).base() /
         static_cast<double>(config.sequence);
}

/// What is dropped comes back by the forward pass of that part, and nothing else.
TEST(Recompute, OfModulesAddsTheirForwardPassAndDropsWhatItMakes) {
  const LlmConfig llama = small_llama(2), moe = small_moe(2), latent = latent_moe(2);
  // MLP of 64 x 192 with a gate: 3 matrices; input of its function 2 x 192, of the last matrix 192.
  EXPECT_DOUBLE_EQ(added(llama, selective({M::kMlp})), 2.0 * 3 * 64 * 192);
  EXPECT_DOUBLE_EQ(kept(llama, {}) - kept(llama, selective({M::kMlp})), 3 * 192 * 2.0);
  // Norms have no products; their outputs are the inputs of the first matrices.
  EXPECT_DOUBLE_EQ(added(llama, selective({M::kLayernorm})), 0);
  EXPECT_DOUBLE_EQ(kept(llama, {}) - kept(llama, selective({M::kLayernorm})), 2 * 64 * 2.0);
  // Two of 8 experts of 32 and a shared one, 3 matrices each, and the router.
  EXPECT_DOUBLE_EQ(added(moe, selective({M::kMoe})), 2.0 * (3 * 3 * 64 * 32 + 8 * 64));
  // Scores; rows in and out of experts and their 3 x 32 columns, twice; those of the shared one.
  EXPECT_DOUBLE_EQ(kept(moe, {}) - kept(moe, selective({M::kMoe})),
                   (8 + 2 * (2 * 64 + 3 * 32) + 3 * 32) * 2.0);
  EXPECT_DOUBLE_EQ(added(moe, selective({M::kMoeAct})), 0);
  EXPECT_DOUBLE_EQ(kept(moe, {}) - kept(moe, selective({M::kMoeAct})), 2 * 32 * 2.0);
  EXPECT_DOUBLE_EQ(added(moe, selective({M::kSharedExperts})), 2.0 * 3 * 64 * 32);
  EXPECT_DOUBLE_EQ(kept(moe, {}) - kept(moe, selective({M::kSharedExperts})), 3 * 32 * 2.0);
  // Queries of 8 heads of 12 from 24, keys and values of 16 from 16.
  EXPECT_DOUBLE_EQ(added(latent, selective({M::kMlaUpProj})), 2.0 * 8 * (24 * 12 + 16 * 16));
  EXPECT_DOUBLE_EQ(kept(latent, {}) - kept(latent, selective({M::kMlaUpProj})),
                   8 * (12 + 12 + 8) * 2.0);
}

TEST(Recompute, OfModulesAddsUp) {
  const LlmConfig model = latent_moe(2);
  const std::vector<M> modules = {M::kCoreAttn, M::kLayernorm, M::kMlaUpProj, M::kMoe};
  double flops = 0, bytes = 0;
  for (const M module : modules) {
    flops += added(model, selective({module}));
    bytes += kept(model, {}) - kept(model, selective({module}));
  }
  EXPECT_DOUBLE_EQ(added(model, selective(modules)), flops);
  EXPECT_DOUBLE_EQ(kept(model, {}) - kept(model, selective(modules)), bytes);
}

TEST(Recompute, OfUnitsKeepsOneInputOfEach) {
  const LlmConfig model = small_llama(8);
  const double none = executed(model, config_of({}));
  const double whole = executed(model, config_of(Recompute::kFull));
  const auto activations = [&](const RecomputeConfig& recompute) {
    return training_memory(model, config_of(recompute)).front().activations.base();
  };
  const double input = 32 * 64 * 2.0;
  for (const int layers : {1, 2, 4, 8}) {
    const RecomputeConfig units = full(RecomputeMethod::kUniform, layers);
    EXPECT_DOUBLE_EQ(executed(model, config_of(units)), whole);
    EXPECT_DOUBLE_EQ(activations(units), 8.0 / layers * input);
    // And those that come back: all of a unit, with the inputs of all but the first; beside them
    // the gradients of a layer: the MLP's columns and what it gives, and the residual's.
    const MemoryUse use = training_memory(model, config_of(units)).front();
    const double flow = 32 * 2.0 * (3 * 192 + 64);
    EXPECT_DOUBLE_EQ(use.working.base(), layers * activations({}) / 8 - input + flow);
    // Blocks: so many layers of 8.
    const RecomputeConfig block = full(RecomputeMethod::kBlock, layers);
    EXPECT_DOUBLE_EQ(executed(model, config_of(block)) - none, layers / 8.0 * (whole - none));
    EXPECT_DOUBLE_EQ(activations(block), layers * input + (8 - layers) * activations({}) / 8);
  }
}

TEST(Recompute, ProgramsAreSoundAndTheirMemoryIsTheFigure) {
  const std::vector<RecomputeConfig> all = {
      full(RecomputeMethod::kUniform, 2),
      full(RecomputeMethod::kBlock, 1),
      selective({M::kLayernorm, M::kMlp}),
      selective({M::kLayernorm, M::kMoe}),
      selective({M::kMoeAct, M::kSharedExperts, M::kLayernorm, M::kMlaUpProj}),
  };
  for (LlmConfig model : {small_llama(8), small_moe(8), latent_moe(8)}) {
    for (const RecomputeConfig& recompute : all) {
      for (const ParallelConfig& parallel :
           {ParallelConfig{}, ParallelConfig{.tp = 2, .sp = true, .pp = 2, .vpp = 2},
            ParallelConfig{.cp = 2}}) {
        const TrainingConfig config = config_of(recompute, parallel);
        try {
          require_supported(model, config);
        } catch (const config::ConfigError&) {
          continue;
        }
        SCOPED_TRACE(model.name + " " + to_string(recompute.granularity));
        const Program program = build_training(model, config, true).program;
        EXPECT_THAT(verify(program), IsEmpty());
        EXPECT_THAT(verify_tensors(program), IsEmpty());
        // What is fullest has gradients of activations beside the program's tensors.
        const MemoryUse use = training_memory(model, config).front();
        const MemoryProfile profile = memory_profile(program, program.roles[0]);
        EXPECT_LE(use.activations, profile.peak(TensorRole::kActivation));
        EXPECT_GE(use.activations + use.working + use.logits, profile.peak());
      }
    }
  }
}

TEST(Recompute, SaysWhatAModelDoesNotHave) {
  const auto message = [](const LlmConfig& model, const RecomputeConfig& recompute) -> std::string {
    try {
      require_supported(model, config_of(recompute));
    } catch (const config::ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(small_llama(2), selective({M::kMlp})), "");
  EXPECT_THAT(message(small_llama(2), selective({M::kMoe})), HasSubstr("no experts"));
  EXPECT_THAT(message(small_llama(2), selective({M::kMlaUpProj})), HasSubstr("latent attention"));
  EXPECT_THAT(message(small_moe(2), selective({M::kMlp})), HasSubstr("MLP without experts"));
}

}  // namespace
}  // namespace orrery::recompute_test
