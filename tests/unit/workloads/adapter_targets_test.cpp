// SPDX-License-Identifier: Apache-2.0
// Which matrices adapters change (lora.target_modules of training), with parameters by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/config/diagnostics.h"
#include "sim/graph/verify.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/layers.h"
#include "workloads/software/training_software.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/figures/statistics.h"
#include "workloads/steps/inference/inference.h"
#include "workloads/steps/training/fine_tuning.h"

namespace orrery::adapter_targets_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Modules = std::vector<LoraModule>;

constexpr std::int64_t kRank = 4;

TrainingConfig adapted(Modules modules, ParallelConfig parallel = {}) {
  TrainingConfig config;
  config.parallel = parallel;
  config.global_batch = 4L * parallel.dp;
  config.sequence = 32;
  config.lora = TrainingLora{kRank, std::move(modules)};
  return config;
}

/// Trained elements of the first layer on a rank.
std::int64_t trained(const LlmConfig& model, const TrainingConfig& config) {
  return trained_layer(model, model.layers.front(), config).total();
}

std::string message(const LlmConfig& model, const TrainingConfig& config) {
  try {
    require_supported(model, config);
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return "";
}

double total_memory(const LlmConfig& model, const TrainingConfig& config) {
  return training_memory(model, config).front().total().base();
}

/// Memory grows, or stays, as one module after the other gets an adapter.
void expect_no_less_memory_with_each(const LlmConfig& model, const Modules& all) {
  for (const double dropout : {0.0, 0.1}) {
    Modules modules;
    double before = 0;
    for (const LoraModule module : all) {
      modules.push_back(module);
      TrainingConfig config = adapted(modules);
      config.lora->dropout = dropout;
      const double now = total_memory(model, config);
      EXPECT_GE(now, before);
      before = now;
    }
  }
}

/// FLOPs of matrix products of all kernels whose name begins with this.
double flops(const StepList& list, const std::string& name) {
  double sum = 0;
  for (const Step& step : list.steps())
    if (step.kernel() != nullptr && step.name().starts_with(name))
      sum += step.kernel()->matrix_flops.base();
  return sum;
}

/// small_llama whose attention has latents of 24 (queries) and 16, and 4 heads with 8 columns,
/// 4 rotated ones and values of 8.
LlmConfig small_latent(std::int64_t layers, std::int64_t query_latent = 24) {
  LlmConfig model = small_llama(layers);
  AttentionConfig& a = model.attention;
  a.kind = AttentionKind::kLatent;
  a.heads = a.kv_heads = 4;
  a.q_lora_rank = query_latent;
  a.kv_lora_rank = 16;
  a.qk_nope_head_dim = 8;
  a.qk_rope_head_dim = 4;
  a.v_head_dim = 8;
  return model;
}

const Modules kLatent = {LoraModule::kQAProj, LoraModule::kQBProj, LoraModule::kKvAProj,
                         LoraModule::kKvBProj, LoraModule::kOProj};

// deepseek-ai/DeepSeek-V3 config.json: hidden 7168, 128 heads, q_lora_rank 1536, kv_lora_rank 512,
// qk_nope_head_dim 128, qk_rope_head_dim 64, v_head_dim 128. Kimi K2 has 64 heads.
TEST(AdapterTargets, OfLatentAttentionHaveRankTimesInputsAndOutputs) {
  for (const auto& [name, heads] : {std::pair("deepseek_v3", 128), std::pair("kimi_k2", 64)}) {
    const LlmConfig model = library_model(name);
    const auto count = [&](LoraModule module) { return trained(model, adapted({module})); };
    EXPECT_EQ(count(LoraModule::kQAProj), kRank * (7168 + 1536)) << name;
    EXPECT_EQ(count(LoraModule::kQBProj), kRank * (1536 + heads * (128 + 64))) << name;
    EXPECT_EQ(count(LoraModule::kKvAProj), kRank * (7168 + 512 + 64)) << name;
    EXPECT_EQ(count(LoraModule::kKvBProj), kRank * (512 + heads * (128 + 128))) << name;
    EXPECT_EQ(count(LoraModule::kOProj), kRank * (heads * 128 + 7168)) << name;
  }
  // DeepSeek-V2-Lite projects queries from the hidden state: 16 heads, hidden 2048.
  const LlmConfig lite = library_model("deepseek_v2_lite");
  EXPECT_EQ(trained(lite, adapted({LoraModule::kQProj})), kRank * (2048 + 16 * (128 + 64)));
  EXPECT_EQ(trained(lite, adapted({LoraModule::kKvAProj})), kRank * (2048 + 512 + 64));
}

// Down-projections are whole on each rank; of the others ranks split B, and A of the last.
TEST(AdapterTargets, OfLatentAttentionAreSplitAsTheirMatrices) {
  const LlmConfig model = small_latent(2);
  const auto count = [&](LoraModule module) {
    return trained(model, adapted({module}, {.tp = 2}));
  };
  EXPECT_EQ(count(LoraModule::kQAProj), kRank * (64 + 24));
  EXPECT_EQ(count(LoraModule::kQBProj), kRank * (24 + 4 * 12 / 2));
  EXPECT_EQ(count(LoraModule::kKvAProj), kRank * (64 + 16 + 4));
  EXPECT_EQ(count(LoraModule::kKvBProj), kRank * (16 + 4 * 16 / 2));
  EXPECT_EQ(count(LoraModule::kOProj), kRank * (4 * 8 / 2 + 64));
}

TEST(AdapterTargets, OfLatentAttentionTrainInAStep) {
  for (const std::int64_t query_latent : {24, 0}) {
    const LlmConfig model = small_latent(2, query_latent);
    Modules modules = {LoraModule::kQProj, LoraModule::kKvAProj,    LoraModule::kKvBProj,
                       LoraModule::kOProj, LoraModule::kGateUpProj, LoraModule::kDownProj};
    if (query_latent > 0) {
      modules = kLatent;
      modules.insert(modules.end(), {LoraModule::kGateUpProj, LoraModule::kDownProj});
    }
    for (const Fusion down : {Fusion::kApart, Fusion::kFused}) {
      for (const ParallelConfig& plan :
           {ParallelConfig{}, ParallelConfig{.tp = 2}, ParallelConfig{.tp = 2, .sp = true}}) {
        TrainingConfig config = adapted(modules, plan);
        TrainingSoftware software;
        software.latent_projections.value = down;
        config.software = std::make_shared<const TrainingSoftware>(software);
        EXPECT_EQ(message(model, config), "");
        const Program program = build_training(model, config, true).program;
        EXPECT_THAT(verify(program), IsEmpty());
        EXPECT_THAT(verify_tensors(program), IsEmpty());
        EXPECT_GT(total_memory(model, config), 0);
      }
    }
  }
}

/// An adapter has two products forward and four backward, each of tokens x rank x its in or out.
TEST(AdapterTargets, OfLatentAttentionComputeThreeTimesTheirForwardProducts) {
  const LlmConfig model = small_latent(1);
  const TrainingConfig config = adapted(kLatent);
  const RankWork work = rank_work(config);
  const StepList forward = layer_forward(model, model.layers[0], work);
  const StepList backward = layer_backward(model, model.layers[0], work);
  const double adapters = static_cast<double>(trained(model, config));
  double ahead = 0, back = 0;
  for (const char* name : {"query latent down lora", "key-value latent down lora", "query up lora",
                           "key-value up lora", "attention output lora"}) {
    EXPECT_GT(flops(forward, name), 0) << name;
    ahead += flops(forward, name);
    back += flops(backward, name);
  }
  EXPECT_DOUBLE_EQ(ahead, 2 * 32 * adapters);
  EXPECT_DOUBLE_EQ(back, 2 * ahead);
  EXPECT_EQ(flops(backward, "query up wgrad"), 0);
}

/// Inputs are kept for the adapters that read them, and what lies between their two matrices.
TEST(AdapterTargets, OfLatentAttentionKeepTheirInputs) {
  const LlmConfig model = small_latent(1);
  const auto kept = [&](Modules modules) {
    const RankWork work = rank_work(adapted(std::move(modules)));
    return layer_activation_bytes(model, model.layers[0], work).base() / 32;
  };
  const double down = kept({LoraModule::kDownProj});
  const auto more = [&](LoraModule module) {
    return kept({LoraModule::kDownProj, module}) - down - 2 * kRank;
  };
  EXPECT_DOUBLE_EQ(more(LoraModule::kQAProj), 2 * 64);
  EXPECT_DOUBLE_EQ(more(LoraModule::kKvAProj), 2 * 64);
  EXPECT_DOUBLE_EQ(more(LoraModule::kQBProj), 2 * 24);
  EXPECT_DOUBLE_EQ(more(LoraModule::kKvBProj), 2 * 16);
}

TEST(AdapterTargets, NeverNeedLessMemoryWithAnotherOne) {
  expect_no_less_memory_with_each(small_latent(2), kLatent);
}

/// QLoRA of latent attention: each of its matrices is widened for the product and for its gradient.
TEST(AdapterTargets, OfLatentAttentionWidenNarrowFrozenWeights) {
  const LlmConfig model = small_latent(1);
  TrainingConfig config = adapted(kLatent);
  config.lora->base = FrozenFormat::kNf4;
  const RankWork work = rank_work(config);
  const auto widenings = [](const StepList& list) {
    int count = 0;
    for (const Step& step : list.steps())
      if (step.name().find("weight widening") != std::string::npos) ++count;
    return count;
  };
  // Five of attention, and gate-up and down.
  EXPECT_EQ(widenings(layer_forward(model, model.layers[0], work)), 7);
  EXPECT_EQ(widenings(layer_backward(model, model.layers[0], work)), 7);
}

TEST(AdapterTargets, MustBeMatricesOfTheModel) {
  const std::string latent = message(small_latent(2), adapted({LoraModule::kQkvProj}));
  EXPECT_THAT(latent, HasSubstr("has no matrix qkv_proj"));
  EXPECT_THAT(latent, HasSubstr("target_modules: [q_a_proj, kv_a_proj_with_mqa, q_b_proj, "
                                "kv_b_proj, o_proj, gate_up_proj, down_proj]"));
  EXPECT_THAT(message(small_llama(2), adapted({LoraModule::kQAProj})),
              HasSubstr("target_modules: [qkv_proj, o_proj, gate_up_proj, down_proj]"));
  EXPECT_THAT(message(library_model("deepseek_v3"), adapted(TrainingLora().target_modules)),
              HasSubstr("target_modules: [q_a_proj, kv_a_proj_with_mqa, q_b_proj, kv_b_proj, "
                        "o_proj]"));
}

// meta-llama/Llama-3.1-8B config.json: hidden 4096, 32 heads of 128 with 8 KV heads, MLP of 14336.
TEST(AdapterTargets, OfSingleMatricesHaveAnAOfTheirOwn) {
  const LlmConfig model = library_model("llama_3_1_8b");
  const auto count = [&](Modules modules, int tp = 1) {
    return trained(model, adapted(std::move(modules), {.tp = tp}));
  };
  EXPECT_EQ(count({LoraModule::kQProj}), kRank * (4096 + 4096));
  EXPECT_EQ(count({LoraModule::kKProj}), kRank * (4096 + 1024));
  EXPECT_EQ(count({LoraModule::kVProj}), kRank * (4096 + 1024));
  EXPECT_EQ(count({LoraModule::kGateProj}), kRank * (4096 + 14336));
  EXPECT_EQ(count({LoraModule::kUpProj}), kRank * (4096 + 14336));
  EXPECT_EQ(count({LoraModule::kVProj}, 2), kRank * (4096 + 1024 / 2));
  // A packed name means one A for all of its parts.
  const auto parts = count({LoraModule::kQProj, LoraModule::kKProj, LoraModule::kVProj});
  EXPECT_EQ(parts - count({LoraModule::kQkvProj}), 2 * kRank * 4096);
  EXPECT_EQ(count({LoraModule::kGateProj, LoraModule::kUpProj}) - count({LoraModule::kGateUpProj}),
            kRank * 4096);
  // arXiv 2106.09685, table 5: adapters of rank 4 on queries and values of GPT-3, 96 layers of
  // hidden 12288, have 18 M parameters.
  const LlmConfig gpt3 = megatron_gpt(1, 12288, 96);
  EXPECT_EQ(96 * trained(gpt3, adapted({LoraModule::kQProj, LoraModule::kVProj})), 18'874'368);
}

TEST(AdapterTargets, OfSingleMatricesTrainInAStep) {
  const LlmConfig model = small_llama(2);
  const Modules modules = {LoraModule::kQProj, LoraModule::kVProj, LoraModule::kUpProj};
  for (const ParallelConfig& plan :
       {ParallelConfig{}, ParallelConfig{.tp = 2}, ParallelConfig{.tp = 2, .sp = true},
        ParallelConfig{.dp = 2}}) {
    const TrainingConfig config = adapted(modules, plan);
    const Program program = build_training(model, config, true).program;
    EXPECT_THAT(verify(program), IsEmpty());
    EXPECT_THAT(verify_tensors(program), IsEmpty());
  }
  const TrainingConfig config = adapted(modules);
  const RankWork work = rank_work(config);
  const StepList forward = layer_forward(model, model.layers[0], work);
  const StepList backward = layer_backward(model, model.layers[0], work);
  // Of queries 64 to 64 columns, of values 64 to 32.
  EXPECT_DOUBLE_EQ(flops(forward, "q_proj lora"), 2 * 32 * kRank * (64 + 64));
  EXPECT_DOUBLE_EQ(flops(forward, "v_proj lora"), 2 * 32 * kRank * (64 + 32));
  EXPECT_DOUBLE_EQ(flops(backward, "v_proj lora"), 2 * flops(forward, "v_proj lora"));
  EXPECT_EQ(flops(forward, "k_proj"), 0);
  EXPECT_EQ(flops(forward, "qkv lora"), 0);
}

/// Adapters of one input keep it once, unless each drops parts of a copy.
TEST(AdapterTargets, OfSingleMatricesShareTheirInput) {
  const LlmConfig model = small_llama(1);
  const auto kept = [&](Modules modules, double dropout) {
    TrainingConfig config = adapted(std::move(modules));
    config.lora->dropout = dropout;
    return layer_activation_bytes(model, model.layers[0], rank_work(config)).base() / 32;
  };
  const auto another = [&](double dropout) {
    return kept({LoraModule::kQProj, LoraModule::kVProj}, dropout) -
           kept({LoraModule::kQProj}, dropout);
  };
  EXPECT_DOUBLE_EQ(another(0), 2 * kRank);
  EXPECT_DOUBLE_EQ(another(0.1), 2 * kRank + 64 * 3);
}

TEST(AdapterTargets, OfSingleMatricesNeverNeedLessMemoryWithAnotherOne) {
  expect_no_less_memory_with_each(
      small_llama(2),
      {LoraModule::kVProj, LoraModule::kQProj, LoraModule::kKProj, LoraModule::kUpProj,
       LoraModule::kGateProj, LoraModule::kOProj, LoraModule::kDownProj});
}

/// An MLP without gate has none to adapt, and engines have slots for packed matrices.
TEST(AdapterTargets, OfSingleMatricesAreRefusedWhereTheyAreNot) {
  EXPECT_THAT(message(megatron_gpt(2, 64, 4), adapted({LoraModule::kGateProj})),
              HasSubstr("has no matrix gate_proj"));
  EXPECT_EQ(message(megatron_gpt(2, 64, 4), adapted({LoraModule::kUpProj})), "");
  EXPECT_THAT(message(small_moe(2), adapted({LoraModule::kUpProj})),
              HasSubstr("adapters of experts"));
  InferenceConfig config;
  config.phase = Phase::kDecode;
  config.micro_batch = 6;
  config.kv_length = 9;
  config.lora = LoraConfig{.max_loras = 5, .max_lora_rank = 4};
  config.lora->target_modules = {LoraModule::kQProj};
  config.adapters = 3;
  EXPECT_THROW(require_supported(small_llama(1), config), config::KeyError);
}

/// Engines are not known to serve adapters of latent attention.
TEST(AdapterTargets, OfLatentAttentionAreRefusedInInference) {
  InferenceConfig config;
  config.phase = Phase::kDecode;
  config.micro_batch = 6;
  config.kv_length = 9;
  config.lora = LoraConfig{.max_loras = 5, .max_lora_rank = 4, .target_modules = kLatent};
  config.adapters = 3;
  EXPECT_THROW(require_supported(small_latent(1), config), config::KeyError);
}

}  // namespace
}  // namespace orrery::adapter_targets_test
