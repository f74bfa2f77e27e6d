// SPDX-License-Identifier: Apache-2.0
// Totals of published checkpoints of encoders and of models whose layers hold states: the parameter
// counts that the Hugging Face hub reads from the safetensors headers of the repository named,
// recalled, and where a row says so those of a paper.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "tests/printed_name.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/rank_parameters.h"
#include "workloads/models/huggingface/huggingface.h"

namespace orrery::published_states_test {
namespace {

struct StatesRow {
  const char* name;
  const char* fields;
  std::int64_t total;
};

void PrintTo(const StatesRow& row, std::ostream* out) { *out << row.name; }

class PublishedStates : public testing::TestWithParam<StatesRow> {};

TEST_P(PublishedStates, HaveThePublishedNumberOfParameters) {
  const LlmConfig model =
      from_huggingface(nlohmann::json::parse(GetParam().fields), GetParam().name);
  EXPECT_EQ(count_parameters(model).total, GetParam().total);
  EXPECT_EQ(stage_parameters(model, {}, 0).total(), GetParam().total);
}

// BERT-large is BAAI/bge-large-en-v1.5, whose class pools.
INSTANTIATE_TEST_SUITE_P(
    Encoders, PublishedStates,
    testing::Values(
        StatesRow{"bge-base-en-v1.5", R"({"model_type": "bert", "hidden_size": 768,
            "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
            "max_position_embeddings": 512, "type_vocab_size": 2, "vocab_size": 30522})",
                  109482240},
        StatesRow{"bge-large-en-v1.5", R"({"model_type": "bert", "hidden_size": 1024,
            "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096,
            "max_position_embeddings": 512, "type_vocab_size": 2, "vocab_size": 30522})",
                  335141888},
        StatesRow{"all-MiniLM-L6-v2", R"({"model_type": "bert", "hidden_size": 384,
            "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536,
            "max_position_embeddings": 512, "type_vocab_size": 2, "vocab_size": 30522})",
                  22713216},
        StatesRow{"roberta-base", R"({"model_type": "roberta", "hidden_size": 768,
            "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
            "max_position_embeddings": 514, "type_vocab_size": 1, "vocab_size": 50265})",
                  124645632},
        StatesRow{"multilingual-e5-large", R"({"model_type": "xlm-roberta", "hidden_size": 1024,
            "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096,
            "max_position_embeddings": 514, "type_vocab_size": 1, "vocab_size": 250002})",
                  559890432},
        StatesRow{"distilbert-base-uncased", R"({"model_type": "distilbert", "dim": 768,
            "n_layers": 6, "n_heads": 12, "hidden_dim": 3072, "max_position_embeddings": 512,
            "vocab_size": 30522})",
                  66362880},
        StatesRow{"modernbert-embed-base", R"({"model_type": "modernbert", "hidden_size": 768,
            "num_hidden_layers": 22, "num_attention_heads": 12, "intermediate_size": 1152,
            "local_attention": 128, "global_attn_every_n_layers": 3, "vocab_size": 50368})",
                  149014272},
        StatesRow{"nomic-embed-text-v1.5", R"({"model_type": "nomic_bert", "n_embd": 768,
            "n_layer": 12, "n_head": 12, "n_inner": 3072, "n_positions": 8192,
            "rotary_emb_fraction": 1.0, "activation_function": "swiglu", "qkv_proj_bias": false,
            "mlp_fc1_bias": false, "mlp_fc2_bias": false, "type_vocab_size": 2,
            "vocab_size": 30528})",
                  136731648}),
    PrintedName());

struct StatesFile {
  const char* file;  // below configs/models
  std::int64_t total;
};

void PrintTo(const StatesFile& row, std::ostream* out) { *out << row.file; }

class PublishedStatesFiles : public testing::TestWithParam<StatesFile> {};

TEST_P(PublishedStatesFiles, HaveThePublishedNumberOfParameters) {
  const LlmConfig model = library_model(GetParam().file);
  EXPECT_EQ(count_parameters(model).total, GetParam().total);
  EXPECT_EQ(stage_parameters(model, {}, 0).total(), GetParam().total);
  EXPECT_TRUE(model.warnings.empty());
}

// The papers of RWKV give 3.06 B and 7.64 B (arXiv 2404.05892, table 2) and 1.53 B (2503.14456).
INSTANTIATE_TEST_SUITE_P(Files, PublishedStatesFiles,
                         testing::Values(StatesFile{"falcon_h1_7b", 7585654880},
                                         StatesFile{"granite_4_h_tiny", 6939037248},
                                         StatesFile{"rwkv_5_3b", 3062999040},
                                         StatesFile{"rwkv_6_7b", 7635746816},
                                         StatesFile{"rwkv_7_1_5b", 1527404544},
                                         StatesFile{"zamba2_7b", 7356749648}),
                         PrintedName());

// With the layers of Zamba2-1.2B that have its shared block in front.
INSTANTIATE_TEST_SUITE_P(
    States, PublishedStates,
    testing::Values(StatesRow{"Falcon-H1-0.5B", R"({"model_type": "falcon_h1", "hidden_size": 1024,
            "num_hidden_layers": 36, "num_attention_heads": 8, "num_key_value_heads": 2,
            "head_dim": 64, "intermediate_size": 2048, "mamba_d_ssm": 1536, "mamba_n_heads": 24,
            "mamba_d_head": 64, "mamba_d_state": 128, "mamba_rms_norm": false,
            "vocab_size": 32784})",
                              521411104},
                    StatesRow{"Falcon-H1-34B", R"({"model_type": "falcon_h1", "hidden_size": 5120,
            "num_hidden_layers": 72, "num_attention_heads": 20, "num_key_value_heads": 4,
            "head_dim": 128, "intermediate_size": 21504, "mamba_d_ssm": 4096, "mamba_n_heads": 32,
            "mamba_d_head": 128, "mamba_d_state": 256, "mamba_n_groups": 2, "mamba_rms_norm": true,
            "vocab_size": 261120})",
                              33642516224},
                    StatesRow{"mamba-2.8b-hf", R"({"model_type": "mamba", "hidden_size": 2560,
            "num_hidden_layers": 64, "state_size": 16, "expand": 2, "time_step_rank": 160,
            "vocab_size": 50280})",
                              2768345600},
                    StatesRow{"falcon-mamba-7b",
                              R"({"model_type": "falcon_mamba", "hidden_size": 4096,
            "num_hidden_layers": 64, "intermediate_size": 8192, "state_size": 16,
            "time_step_rank": "auto", "vocab_size": 65024, "tie_word_embeddings": false})",
                              7272665088},
                    StatesRow{"Jamba-v0.1", R"({"model_type": "jamba", "hidden_size": 4096,
            "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
            "intermediate_size": 14336, "attn_layer_period": 8, "attn_layer_offset": 4,
            "expert_layer_period": 2, "expert_layer_offset": 1, "num_experts": 16,
            "num_experts_per_tok": 2, "mamba_dt_rank": 256, "vocab_size": 65536,
            "tie_word_embeddings": false})",
                              51570323328},
                    StatesRow{"Mamba-Codestral-7B", R"({"model_type": "mamba2", "hidden_size": 4096,
            "num_hidden_layers": 64, "num_heads": 128, "head_dim": 64, "state_size": 128,
            "n_groups": 8, "vocab_size": 32768, "tie_word_embeddings": false})",
                              7285403648},
                    StatesRow{"rwkv-5-world-1b5", R"({"model_type": "rwkv5", "hidden_size": 2048,
            "num_hidden_layers": 24, "vocab_size": 65536})",
                              1577754624},
                    StatesRow{"rwkv-6-world-1b6", R"({"model_type": "rwkv6", "hidden_size": 2048,
            "num_hidden_layers": 24, "vocab_size": 65536})",
                              1599873024},
                    StatesRow{"Zamba-7B-v1", R"({"model_type": "zamba", "hidden_size": 3712,
            "num_hidden_layers": 76, "attn_layer_period": 6, "attn_layer_offset": 4,
            "num_attention_heads": 16, "attention_head_dim": 464, "intermediate_size": 14848,
            "n_mamba_heads": 2, "mamba_dt_rank": 232, "vocab_size": 32000})",
                              7232490496},
                    StatesRow{"Zamba2-1.2B", R"({"model_type": "zamba2", "hidden_size": 2048,
            "num_hidden_layers": 38, "layers_block_type": ["mamba", "mamba", "mamba", "mamba",
            "mamba", "hybrid", "mamba", "mamba", "mamba", "mamba", "mamba", "hybrid", "mamba",
            "mamba", "mamba", "mamba", "mamba", "hybrid", "mamba", "mamba", "mamba", "mamba",
            "mamba", "hybrid", "mamba", "mamba", "mamba", "mamba", "mamba", "hybrid", "mamba",
            "mamba", "mamba", "mamba", "mamba", "hybrid", "mamba", "mamba"], "num_mem_blocks": 1,
            "num_attention_heads": 32, "intermediate_size": 8192, "adapter_rank": 128,
            "use_shared_attention_adapter": true, "use_mem_rope": true, "mamba_d_state": 128,
            "mamba_ngroups": 1, "n_mamba_heads": 64, "vocab_size": 32000})",
                              1215064704}),
    PrintedName());

}  // namespace
}  // namespace orrery::published_states_test
