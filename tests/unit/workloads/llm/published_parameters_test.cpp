// SPDX-License-Identifier: Apache-2.0
// Exact totals of published checkpoints against what their configurations give. The totals are the
// parameter counts that the Hugging Face hub reads from the safetensors headers, except where a row
// says otherwise.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "tests/printed_name.h"
#include "workloads/layers/rank_parameters.h"
#include "workloads/models/huggingface/huggingface.h"

namespace orrery::published_parameters_test {
namespace {

struct PublishedFile {
  const char* file;  // below configs/models/hf
  std::int64_t total;
  std::int64_t active;  // by the same count; of a dense model the total
};

void PrintTo(const PublishedFile& row, std::ostream* out) { *out << row.file; }

class PublishedFiles : public testing::TestWithParam<PublishedFile> {};

TEST_P(PublishedFiles, HaveThePublishedNumberOfParameters) {
  const std::string path =
      std::string(ORRERY_SOURCE_DIR "/configs/models/hf/") + GetParam().file + ".json";
  const LlmConfig model = load_huggingface(path);
  const ParameterCount count = count_parameters(model);
  EXPECT_EQ(count.total, GetParam().total);
  EXPECT_EQ(count.active, GetParam().active);
  EXPECT_TRUE(model.warnings.empty());
}

// The active counts are total - MoE layers x unused experts x 3 x hidden x intermediate, for
// example Mixtral 8x22B (as counted by a Hugging Face engineer,
// mistral-community/Mixtral-8x22B-v0.1, discussion 6): 140,620,634,112 - 56 x 6 x 3 x 6144 x 16384
// = 39,152,031,744.
INSTANTIATE_TEST_SUITE_P(
    Hub, PublishedFiles,
    testing::Values(PublishedFile{"llama_2_7b", 6738415616, 6738415616},
                    PublishedFile{"llama_2_70b", 68976648192, 68976648192},
                    PublishedFile{"llama_3_1_8b", 8030261248, 8030261248},
                    PublishedFile{"llama_3_1_70b", 70553706496, 70553706496},
                    PublishedFile{"llama_3_1_405b", 405853388800, 405853388800},
                    PublishedFile{"mistral_7b", 7241732096, 7241732096},
                    PublishedFile{"mixtral_8x7b", 46702792704, 12879925248},
                    PublishedFile{"mixtral_8x22b", 140620634112, 39152031744},
                    PublishedFile{"qwen2_5_3b", 3085938688, 3085938688},
                    PublishedFile{"qwen3_8b", 8190735360, 8190735360},
                    PublishedFile{"qwen3_32b", 32762123264, 32762123264},
                    PublishedFile{"qwen3_30b_a3b", 30532122624, 3353032704},
                    PublishedFile{"qwen3_235b_a22b", 235093634560, 22190763520},
                    PublishedFile{"deepseek_moe_16b", 16375728128, 2828650496},
                    PublishedFile{"deepseek_v2_lite", 15706484224, 2661150208},
                    // Main model of 671B, without the 14B of the MTP module (README_WEIGHTS.md of
                    // the deepseek-ai/DeepSeek-V3 repository).
                    PublishedFile{"deepseek_v3", 671026419200, 37552297472},
                    PublishedFile{"deepseek_r1", 671026419200, 37552297472},
                    PublishedFile{"kimi_k2", 1026408232448, 32861500928},
                    PublishedFile{"gpt_oss_20b", 20914757184, 4187440704},
                    PublishedFile{"gpt_oss_120b", 116829156672, 5711982912},
                    PublishedFile{"gpt2", 124439808, 124439808},
                    PublishedFile{"t5_3b", 2851598336, 2851598336},
                    PublishedFile{"flan_t5_xxl", 11135332352, 11135332352},
                    PublishedFile{"gemma_2_9b", 9241705984, 9241705984},
                    PublishedFile{"gemma_3_1b", 999885952, 999885952},
                    PublishedFile{"olmo_2_7b", 7298617344, 7298617344},
                    PublishedFile{"phi_4_mini", 3836021760, 3836021760},
                    PublishedFile{"phi_2", 2779683840, 2779683840},
                    PublishedFile{"gpt_j_6b", 6050882784, 6050882784},
                    PublishedFile{"command_r_35b", 34980831232, 34980831232},
                    PublishedFile{"command_r7b", 8028033024, 8028033024},
                    PublishedFile{"falcon_40b", 41303293952, 41303293952},
                    PublishedFile{"nemotron_super_49b", 49867145216, 49867145216},
                    // Qwen3-Coder-Next, the same model without a module: all of its file.
                    PublishedFile{"qwen3_next_80b_a3b", 79674391296, 3874929408}),
    PrintedName());

struct PublishedTower {
  const char* file;    // below configs/models/hf
  std::int64_t total;  // of the checkpoint, with its module of multi-token prediction and its tower
  std::int64_t digit;  // last digit that is published
};

void PrintTo(const PublishedTower& row, std::ostream* out) { *out << row.file; }

class PublishedTowers : public testing::TestWithParam<PublishedTower> {};

TEST_P(PublishedTowers, MakeThePublishedTotalWithTheModelAndItsModule) {
  const LlmConfig model = load_huggingface(std::string(ORRERY_SOURCE_DIR "/configs/models/hf/") +
                                           GetParam().file + ".json");
  EXPECT_NEAR(
      static_cast<double>(count_parameters(model).total + module_parameters(model, {}).total()),
      static_cast<double>(GetParam().total), static_cast<double>(GetParam().digit) / 2);
}

// Totals of the safetensors headers; those of the two largest of Qwen3.5 as the hub rounds them.
// Qwen3-Next's configuration does not name its module, which its checkpoint holds.
INSTANTIATE_TEST_SUITE_P(
    Hub, PublishedTowers,
    testing::Values(PublishedTower{"qwen3_next_80b_a3b", 81324862720, 0},
                    PublishedTower{"glm_5", 753864139008, 0},
                    PublishedTower{"glm_5_2", 753329940480, 0},
                    PublishedTower{"qwen3_5_27b", 27781427952, 0},
                    PublishedTower{"qwen3_5_35b_a3b", 35951822704, 0},
                    PublishedTower{"qwen3_5_122b_a10b", 125090000000, 10000000},
                    PublishedTower{"qwen3_5_397b_a17b", 403400000000, 100000000}),
    PrintedName());

// The hub counts 684,531,386,000 for DeepSeek-V3 and 685,396,921,376 for V3.2-Exp, one fp32 scale
// for each 128 x 128 weights in fp8 included: what the second has more is an indexer in each of 61
// layers and of the module, with the scales of 8,192 x 1,536 and 128 x 7,168 of its weights.
TEST(ParameterCount, OfDeepSeekV32IsThatOfV3WithIndexers) {
  const auto total = [](const char* file) {
    return count_parameters(load_huggingface(std::string(ORRERY_SOURCE_DIR) +
                                             "/configs/models/hf/" + file + ".json"))
        .total;
  };
  const std::int64_t indexers = total("deepseek_v3_2") - total("deepseek_v3");
  EXPECT_EQ(indexers % 61, 0);
  EXPECT_EQ(62 * (indexers / 61 + 64 * 12 + 1 * 56), 685396921376 - 684531386000);
}

struct PublishedFigure {
  const char* file;  // below configs/models/hf
  double total;      // parameters as they are printed, in 10^9
  double active;     // those without the embedding table; 0: not printed
  double digit;      // last digit of what is printed
};

void PrintTo(const PublishedFigure& row, std::ostream* out) { *out << row.file; }

class PublishedFigures : public testing::TestWithParam<PublishedFigure> {};

TEST_P(PublishedFigures, AreThoseOfTheModelsAsTheyAreRounded) {
  const PublishedFigure& row = GetParam();
  const ParameterCount count = count_parameters(
      load_huggingface(std::string(ORRERY_SOURCE_DIR "/configs/models/hf/") + row.file + ".json"));
  EXPECT_NEAR(static_cast<double>(count.total) / 1e9, row.total, row.digit / 2);
  if (row.active > 0) {
    EXPECT_NEAR(static_cast<double>(count.active - count.embedding) / 1e9, row.active,
                row.digit / 2);
  }
}

// Nemotron 3 Nano: "3.2B active (3.6B with embeddings), 31.6B total" (its release page,
// research.nvidia.com/labs/nemotron). Super and Ultra are named after their rounded counts: 120B
// and 12B active, 550B and 55B active. Nemotron-H-56B: arXiv 2504.03624.
// MiniMax-M3: 427 B on the hub with its vision tower. Kimi K3: the index of its
// checkpoint has 1,560,860,324,864 bytes, of which 92 x 896 experts of 33,030,144 take 17,547,264
// each and 114.4 GB are in bf16: 57.2 G, with the vision tower. DeepSeek-V4: 284 B and 13 B, 1.6 T
// and 49 B (model cards).
INSTANTIATE_TEST_SUITE_P(Sparse, PublishedFigures,
                         testing::Values(PublishedFigure{"minimax_m3", 427, 0, 2},
                                         PublishedFigure{"kimi_k3", 57.2 + 92 * 896 * 0.033030144,
                                                         0, 1},
                                         PublishedFigure{"deepseek_v4_flash", 284, 13, 2},
                                         PublishedFigure{"deepseek_v4_pro", 1600, 49, 100}),
                         PrintedName());

INSTANTIATE_TEST_SUITE_P(Hybrids, PublishedFigures,
                         testing::Values(PublishedFigure{"nemotron_3_nano", 31.6, 3.2, 0.1},
                                         PublishedFigure{"nemotron_3_super", 120, 12, 2},
                                         PublishedFigure{"nemotron_3_ultra", 550, 55, 2},
                                         PublishedFigure{"nemotron_h_56b", 56, 0, 1}),
                         PrintedName());

// Table 1 of the gpt-oss model card (arXiv 2508.10925) counts active parameters without the
// embedding table: 5.13 B and 3.61 B of 116.83 B and 20.91 B.
TEST(ParameterCount, OfGptOssIsThatOfItsModelCard) {
  const auto of = [](const char* file) {
    return count_parameters(
        load_huggingface(std::string(ORRERY_SOURCE_DIR) + "/configs/models/hf/" + file + ".json"));
  };
  const ParameterCount large = of("gpt_oss_120b");
  EXPECT_NEAR(static_cast<double>(large.total), 116.83e9, 0.005e9);
  EXPECT_NEAR(static_cast<double>(large.active - large.embedding), 5.13e9, 0.005e9);
  const ParameterCount small = of("gpt_oss_20b");
  EXPECT_NEAR(static_cast<double>(small.total), 20.91e9, 0.005e9);
  EXPECT_NEAR(static_cast<double>(small.active - small.embedding), 3.61e9, 0.005e9);
}

struct PublishedFields {
  const char* name;
  const char* fields;
  std::int64_t total;
};

void PrintTo(const PublishedFields& row, std::ostream* out) { *out << row.name; }

class PublishedFieldsTest : public testing::TestWithParam<PublishedFields> {};

TEST_P(PublishedFieldsTest, HaveThePublishedNumberOfParameters) {
  const LlmConfig model =
      from_huggingface(nlohmann::json::parse(GetParam().fields), GetParam().name);
  EXPECT_EQ(count_parameters(model).total, GetParam().total);
}

INSTANTIATE_TEST_SUITE_P(
    Hub, PublishedFieldsTest,
    testing::Values(
        PublishedFields{"Llama-2-13b", R"({"model_type": "llama", "hidden_size": 5120,
            "num_hidden_layers": 40, "num_attention_heads": 40, "intermediate_size": 13824,
            "vocab_size": 32000})",
                        13015864320},
        PublishedFields{"Llama-3.2-1B", R"({"model_type": "llama", "hidden_size": 2048,
            "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
            "intermediate_size": 8192, "vocab_size": 128256, "tie_word_embeddings": true})",
                        1235814400},
        PublishedFields{"Qwen2-7B", R"({"model_type": "qwen2", "hidden_size": 3584,
            "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
            "intermediate_size": 18944, "vocab_size": 152064})",
                        7615616512},
        // The hub lists 0.752 B and 2.032 B for these two, because their files hold the tied
        // table twice; the table is one.
        PublishedFields{"Qwen3-0.6B", R"({"model_type": "qwen3", "hidden_size": 1024,
            "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8,
            "head_dim": 128, "intermediate_size": 3072, "vocab_size": 151936,
            "tie_word_embeddings": true})",
                        751632384 - 151936 * 1024},
        PublishedFields{"Qwen3-1.7B", R"({"model_type": "qwen3", "hidden_size": 2048,
            "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8,
            "head_dim": 128, "intermediate_size": 6144, "vocab_size": 151936,
            "tie_word_embeddings": true})",
                        2031739904 - 151936 * 2048},
        PublishedFields{"Qwen1.5-MoE-A2.7B", R"({"model_type": "qwen2_moe", "hidden_size": 2048,
            "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16,
            "intermediate_size": 5632, "moe_intermediate_size": 1408, "num_experts": 60,
            "num_experts_per_tok": 4, "shared_expert_intermediate_size": 5632,
            "vocab_size": 151936})",
                        14315784192},
        PublishedFields{"Qwen-1_8B", R"({"model_type": "qwen", "hidden_size": 2048,
            "num_hidden_layers": 24, "num_attention_heads": 16, "kv_channels": 128,
            "intermediate_size": 11008, "vocab_size": 151936, "no_bias": true})",
                        1836828672},
        PublishedFields{"chatglm3-6b", R"({"model_type": "chatglm", "hidden_size": 4096,
            "num_layers": 28, "num_attention_heads": 32, "multi_query_attention": true,
            "multi_query_group_num": 2, "kv_channels": 128, "ffn_hidden_size": 13696,
            "padded_vocab_size": 65024, "add_qkv_bias": true, "add_bias_linear": false,
            "rmsnorm": true})",
                        6243584000},
        PublishedFields{"internlm2-7b", R"({"model_type": "internlm2", "hidden_size": 4096,
            "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
            "intermediate_size": 14336, "vocab_size": 92544, "bias": false})",
                        7737708544},
        PublishedFields{"gemma-7b", R"({"model_type": "gemma", "hidden_size": 3072,
            "num_hidden_layers": 28, "num_attention_heads": 16, "head_dim": 256,
            "intermediate_size": 24576, "vocab_size": 256000})",
                        8537680896},
        PublishedFields{"stablelm-3b", R"({"model_type": "stablelm", "hidden_size": 2560,
            "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 6912,
            "vocab_size": 50304, "use_qkv_bias": false})",
                        2795443200},
        PublishedFields{"starcoder2-7b", R"({"model_type": "starcoder2", "hidden_size": 4608,
            "num_hidden_layers": 32, "num_attention_heads": 36, "num_key_value_heads": 4,
            "intermediate_size": 18432, "vocab_size": 49152, "use_bias": true,
            "sliding_window": 4096})",
                        7173923840},
        PublishedFields{"RedPajama-3B", R"({"model_type": "gpt_neox", "hidden_size": 2560,
            "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 10240,
            "vocab_size": 50432, "use_parallel_residual": false, "tie_word_embeddings": false})",
                        2775864320},
        PublishedFields{"phi-1_5", R"({"model_type": "phi-msft", "n_embd": 2048, "n_layer": 24,
            "n_head": 32, "rotary_dim": 32, "vocab_size": 51200, "tie_word_embeddings": false})",
                        1418270720},
        PublishedFields{"pythia-6.9b", R"({"model_type": "gpt_neox", "hidden_size": 4096,
            "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 16384,
            "vocab_size": 50432, "use_parallel_residual": true, "rotary_pct": 0.25})",
                        6857302016},
        PublishedFields{"gpt_bigcode-santacoder", R"({"model_type": "gpt_bigcode", "n_embd": 2048,
            "n_layer": 24, "n_head": 16, "n_inner": 8192, "n_positions": 2048,
            "multi_query": true, "vocab_size": 49280})",
                        1124886528},
        PublishedFields{"gpt2-medium", R"({"model_type": "gpt2", "n_embd": 1024, "n_layer": 24,
            "n_head": 16, "n_positions": 1024, "vocab_size": 50257})",
                        354823168},
        PublishedFields{"gpt2-large", R"({"model_type": "gpt2", "n_embd": 1280, "n_layer": 36,
            "n_head": 20, "n_positions": 1024, "vocab_size": 50257})",
                        774030080},
        PublishedFields{"gpt2-xl", R"({"model_type": "gpt2", "n_embd": 1600, "n_layer": 48,
            "n_head": 25, "n_positions": 1024, "vocab_size": 50257})",
                        1557611200}),
    PrintedName());

}  // namespace
}  // namespace orrery::published_parameters_test
