// SPDX-License-Identifier: Apache-2.0
// One decode step of one sequence, whole on a rank, in bf16 with indexers in fp8: what the sequence
// holds, FLOPs of all products, and what mixers read of caches and states with the queries that
// meet them. Every row is worked out by hand from the sizes in the model's configuration.
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "tests/printed_name.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/layers.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/inference/inference.h"

namespace orrery::steps_by_hand_test {
namespace {

struct Row {
  const char* model;
  std::int64_t keys;  ///< tokens in view, the new one included
  double cache;       ///< bytes of the sequence
  double flops;       ///< FLOPs of matrix products
  double read;        ///< bytes that the kernels over caches and states read
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.model; }

class StepsByHand : public testing::TestWithParam<Row> {};

bool reads_cache(const Kernel& kernel) {
  return kernel.name == "attention" || kernel.name == "index scores" ||
         kernel.name == "delta state update";
}

TEST_P(StepsByHand, HaveTheBytesAndFlopsOfTheirSizes) {
  const Row& row = GetParam();
  const LlmConfig model = library_model(row.model);
  InferenceConfig config;
  config.micro_batch = 1;
  config.kv_length = row.keys - 1;
  EXPECT_DOUBLE_EQ(inference_memory(model, config)[0].kv_cache.base(), row.cache);
  const RankWork work = rank_work(config);
  double flops = 0, read = 0;
  const auto add = [&](const StepList& steps) {
    for (const Step& step : steps.steps()) {
      const Kernel* kernel = step.kernel();
      if (kernel == nullptr) continue;
      flops += kernel->matrix_flops.base();
      if (reads_cache(*kernel)) read += kernel->read.base();
    }
  };
  for (const LayerConfig& layer : model.layers) add(layer_forward(model, layer, work));
  add(head_forward(model, work));
  EXPECT_NEAR(flops / row.flops, 1, 1e-9);
  EXPECT_DOUBLE_EQ(read, row.read);
}

// Qwen3-Next, 1,000 keys. 36 layers of delta networks: fp32 states of 32 x 128 x 128 and three
// inputs of 8,192 channels; projections of 12,288 columns, 64 of gates and 4,096 back. 12 layers of
// attention: 16 heads of 256 with gates, 2 KV heads. 48 of experts: 512 and the gate of the shared
// one, 10 + 1 of 512.
constexpr Row kQwen3Next = {
    "qwen3_next_80b_a3b", 1000,
    36 * (32.0 * 128 * 128 * 4 + 8192 * 3 * 2) + 12 * 1000.0 * 2 * 2 * 256 * 2,
    2 * (36 * 2048.0 * (12288 + 64 + 4096) + 12 * 2048.0 * (2 * 16 * 256 + 4 * 256 + 16 * 256) +
         48 * 2048.0 * (513 + 11 * 3 * 512) + 151936.0 * 2048 + 12 * 1000.0 * 16 * 2 * 256),
    36 * (32.0 * 128 * 128 * 4 + (8192 + 64) * 2) + 12 * (16 * 256 * 2 + 1000.0 * 2 * 2 * 256 * 2)};

// DeepSeek-V3.2, 4,096 keys, of which 2,048 are chosen. 61 layers: latents of 1,536 and 576,
// queries of 128 x 192, absorbed and brought back by 128 x 128 x 512 each, 128 x 128 back; an
// indexer of 64 x 128 from the latents, a key of 128 and 64 weights. Three dense layers, 58 of
// experts: 256 scores, 8 + 1 of 2,048.
constexpr Row kDeepSeekV32 = {
    "deepseek_v3_2", 4096, 61 * 4096.0 * (576 * 2 + 128),
    2 * (61 * (7168.0 * (1536 + 576) + 1536.0 * 128 * 192 + 2 * 128.0 * 128 * 512 +
               128.0 * 128 * 7168 + 1536.0 * 64 * 128 + 7168.0 * (128 + 64) + 4096.0 * 64 * 128 +
               2048.0 * 128 * (576 + 512)) +
         3 * 3 * 7168.0 * 18432 + 58 * 7168.0 * (256 + 9 * 3 * 2048) + 129280.0 * 7168),
    61 * (64 * (128 + 4) + 4096.0 * 128 + 128 * 576 * 2 + 2048.0 * 576 * 2)};

// GLM-5.2, 4,096 keys: 78 layers, latents of 2,048 and 576, 64 heads of 256 (192 without positions)
// and 256 back; 21 layers have an indexer of 32 x 128.
constexpr Row kGlm52 = {
    "glm_5_2", 4096, 78 * 4096.0 * 576 * 2 + 21 * 4096.0 * 128,
    2 * (78 * (6144.0 * (2048 + 576) + 2048.0 * 64 * 256 + 64.0 * 512 * (192 + 256) +
               64.0 * 256 * 6144 + 2048.0 * 64 * (576 + 512)) +
         21 * (2048.0 * 32 * 128 + 6144.0 * (128 + 32) + 4096.0 * 32 * 128) +
         3 * 3 * 6144.0 * 12288 + 75 * 6144.0 * (256 + 9 * 3 * 2048) + 154880.0 * 6144),
    78 * (64 * 576 * 2 + 2048.0 * 576 * 2) + 21 * (32 * (128 + 4) + 4096.0 * 128)};

// MiniMax-M3, 4,096 keys, of which 16 blocks of 128 are chosen in 57 of 60 layers: 64 heads of 128,
// 4 KV heads, each with an index query of 128 beside one index key in bf16. Three dense layers, 57
// of experts: 128 scores, 4 + 1 of 3,072.
constexpr Row kMiniMaxM3 = {
    "minimax_m3", 4096, 60 * 4096.0 * 2 * 4 * 128 * 2 + 57 * 4096.0 * 128 * 2,
    2 * (60 * 6144.0 * (64 + 8 + 64) * 128 + 57 * 6144.0 * 5 * 128 + 57 * 4096.0 * 4 * 128 +
         (57 * 2048.0 + 3 * 4096.0) * 64 * 2 * 128 + 3 * 3 * 6144.0 * 12288 +
         57 * 6144.0 * (128 + 5 * 3 * 3072) + 200064.0 * 6144),
    60 * 64 * 128 * 2 + (57 * 2048.0 + 3 * 4096.0) * 2 * 4 * 128 * 2 +
        57 * (4 * 128 * 2 + 4096.0 * 128 * 2)};

// Kimi K3, 4,096 keys. 69 layers of delta attention: 96 heads of 128, fp32 states and three inputs
// of 36,864 channels, decays through 128 columns, a gate. 24 of latent attention with a gate. One
// dense layer, 92 of experts: 896 scores, 16 in a latent width of 3,584, 2 shared of 3,072.
constexpr Row kKimiK3 = {
    "kimi_k3", 4096, 69 * (96.0 * 128 * 128 * 4 + 36864 * 3 * 2) + 24 * 4096.0 * 576 * 2,
    2 * (69 * (7168.0 * (5 * 12288 + 96 + 128) + 128.0 * 12288) +
         24 * (7168.0 * (1536 + 576) + 1536.0 * 96 * 192 + 2 * 96.0 * 128 * 512 +
               2 * 7168.0 * 12288 + 4096.0 * 96 * (576 + 512)) +
         3 * 7168.0 * 33792 +
         92 * (7168.0 * (896 + 2 * 3584 + 2 * 3 * 3072) + 16 * 3 * 3584.0 * 3072) +
         163840.0 * 7168),
    69 * (96.0 * 128 * 128 * 4 + (36864 + 96 + 12288) * 2.0) +
        24 * (96 * 576 * 2 + 4096.0 * 576 * 2)};

// DeepSeek-V4-Flash, 4,096 keys. 43 layers: latents of 1,024, a key of 512, 64 heads of 512, 8
// groups of 4,096 columns to 1,024 each and back; 4 residual streams with 24 weights a half. Two
// layers see 128 keys alone; 20 besides 32 entries of 128 tokens, 21 chosen 512 of 1,024 entries of
// 4, by an indexer of 64 x 128. Compressors of those project twice 512 and 128 columns with gates.
// Cache: windows and what does not fill an entry yet in fp32 count as a state. Experts: 256 scores,
// 6 + 1 of 2,048.
constexpr Row kDeepSeekV4Flash = {
    "deepseek_v4_flash", 4096,
    21 * 4096.0 * (128 * 2 + 32) + 20 * 4096.0 * 4 * 2 + 43 * 128.0 * 512 * 2 +
        21 * 4 * 2 * 4 * 2 * 2 * (512.0 + 128) + 20 * 4 * 128.0 * 2 * 512,
    2 * (43 * (4096.0 * (1024 + 512) + 1024.0 * 64 * 512 + 64.0 * 512 * 1024 + 8 * 1024.0 * 4096 +
               4096.0 * (256 + 7 * 3 * 2048) + 2 * 24 * 4 * 4096.0 + 128.0 * 64 * 2 * 512) +
         21 * (4096.0 * 2 * 2 * (512 + 128) + 1024.0 * 64 * 128 + 4096.0 * 64 + 1024.0 * 64 * 128 +
               512.0 * 64 * 2 * 512) +
         20 * (4096.0 * 2 * 512 + 32.0 * 64 * 2 * 512) + 129280.0 * 4096 + 4 * 4 * 4096.0),
    43 * (64 * 512 * 2 + 128.0 * 512 * 2) + 21 * (512.0 * 512 * 2 + 64 * (128 + 4) + 1024.0 * 128) +
        20 * 32.0 * 512 * 2};

INSTANTIATE_TEST_SUITE_P(Families, StepsByHand,
                         testing::Values(kQwen3Next, kDeepSeekV32, kGlm52, kMiniMaxM3, kKimiK3,
                                         kDeepSeekV4Flash),
                         PrintedName());

}  // namespace
}  // namespace orrery::steps_by_hand_test
