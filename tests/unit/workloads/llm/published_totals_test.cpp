// SPDX-License-Identifier: Apache-2.0
// Totals of published checkpoints, of whose configurations the sizes alone are needed: the
// parameter counts that the Hugging Face hub reads from the safetensors headers of the repository
// named, recalled.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "tests/printed_name.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/models/huggingface/huggingface.h"

namespace orrery::published_totals_test {
namespace {

struct DenseRow {
  const char* repository;
  const char* type;
  std::int64_t hidden, layers, heads, kv_heads, head_dim, intermediate, vocabulary;
  bool tied;
  std::int64_t total;
};

void PrintTo(const DenseRow& row, std::ostream* out) { *out << row.repository; }

class DenseTotals : public testing::TestWithParam<DenseRow> {};

TEST_P(DenseTotals, AreThoseOfTheHub) {
  const DenseRow& row = GetParam();
  const nlohmann::json configuration = {{"model_type", row.type},
                                        {"hidden_size", row.hidden},
                                        {"num_hidden_layers", row.layers},
                                        {"num_attention_heads", row.heads},
                                        {"num_key_value_heads", row.kv_heads},
                                        {"head_dim", row.head_dim},
                                        {"intermediate_size", row.intermediate},
                                        {"vocab_size", row.vocabulary},
                                        {"tie_word_embeddings", row.tied}};
  EXPECT_EQ(count_parameters(from_huggingface(configuration, row.repository)).total, row.total);
}

INSTANTIATE_TEST_SUITE_P(
    Hub, DenseTotals,
    testing::Values(
        DenseRow{"meta-llama/Llama-3.2-3B", "llama", 3072, 28, 24, 8, 128, 8192, 128256, true,
                 3212749824},
        DenseRow{"codellama/CodeLlama-7b-hf", "llama", 4096, 32, 32, 32, 128, 11008, 32016, false,
                 6738546688},
        DenseRow{"codellama/CodeLlama-34b-hf", "llama", 8192, 48, 64, 8, 128, 22016, 32000, false,
                 33743970304},
        DenseRow{"TinyLlama/TinyLlama-1.1B-Chat-v1.0", "llama", 2048, 22, 32, 4, 64, 5632, 32000,
                 false, 1100048384},
        DenseRow{"HuggingFaceTB/SmolLM2-135M", "llama", 576, 30, 9, 3, 64, 1536, 49152, true,
                 134515008},
        DenseRow{"HuggingFaceTB/SmolLM2-360M", "llama", 960, 32, 15, 5, 64, 2560, 49152, true,
                 361821120},
        DenseRow{"HuggingFaceTB/SmolLM2-1.7B", "llama", 2048, 24, 32, 32, 64, 8192, 49152, true,
                 1711376384},
        DenseRow{"01-ai/Yi-6B", "llama", 4096, 32, 32, 4, 128, 11008, 64000, false, 6061035520},
        DenseRow{"01-ai/Yi-34B", "llama", 7168, 60, 56, 8, 128, 20480, 64000, false, 34388917248},
        DenseRow{"mistralai/Mistral-7B-v0.3", "mistral", 4096, 32, 32, 8, 128, 14336, 32768, false,
                 7248023552},
        DenseRow{"mistralai/Mistral-Nemo-Base-2407", "mistral", 5120, 40, 32, 8, 128, 14336, 131072,
                 false, 12247782400},
        DenseRow{"mistralai/Mistral-Small-24B-Base-2501", "mistral", 5120, 40, 32, 8, 128, 32768,
                 131072, false, 23572403200},
        DenseRow{"mistralai/Mistral-Large-Instruct-2407", "mistral", 12288, 88, 96, 8, 128, 28672,
                 32768, false, 122610069504},
        DenseRow{"Qwen/Qwen2-0.5B", "qwen2", 896, 24, 14, 2, 64, 4864, 151936, true, 494032768},
        DenseRow{"Qwen/Qwen2.5-1.5B", "qwen2", 1536, 28, 12, 2, 128, 8960, 151936, true,
                 1543714304},
        DenseRow{"Qwen/Qwen2.5-14B", "qwen2", 5120, 48, 40, 8, 128, 13824, 152064, false,
                 14770033664},
        DenseRow{"Qwen/Qwen2.5-32B", "qwen2", 5120, 64, 40, 8, 128, 27648, 152064, false,
                 32763876352},
        DenseRow{"Qwen/Qwen2.5-72B", "qwen2", 8192, 80, 64, 8, 128, 29568, 152064, false,
                 72706203648},
        DenseRow{"Qwen/Qwen3-4B", "qwen3", 2560, 36, 32, 8, 128, 9728, 151936, true, 4022468096},
        DenseRow{"Qwen/Qwen3-14B", "qwen3", 5120, 40, 40, 8, 128, 17408, 151936, false,
                 14768307200},
        DenseRow{"google/gemma-2b", "gemma", 2048, 18, 8, 1, 256, 16384, 256000, true, 2506172416},
        DenseRow{"google/gemma-2-2b", "gemma2", 2304, 26, 8, 4, 256, 9216, 256000, true,
                 2614341888},
        DenseRow{"google/gemma-2-27b", "gemma2", 4608, 46, 32, 16, 128, 36864, 256000, true,
                 27227128320},
        DenseRow{"microsoft/Phi-3-mini-4k-instruct", "phi3", 3072, 32, 32, 32, 96, 8192, 32064,
                 false, 3821079552},
        DenseRow{"microsoft/phi-4", "phi3", 5120, 40, 40, 10, 128, 17920, 100352, false,
                 14659507200},
        DenseRow{"allenai/OLMo-2-1124-13B", "olmo2", 5120, 40, 40, 40, 128, 13824, 100352, false,
                 13716198400},
        DenseRow{"allenai/OLMo-2-0325-32B", "olmo2", 5120, 64, 40, 8, 128, 27648, 100352, false,
                 32234279936},
        DenseRow{"internlm/internlm2-20b", "internlm2", 6144, 48, 48, 8, 128, 16384, 92544, false,
                 19861149696}),
    PrintedName());

/// A figure as it is printed, in 10^9, and what of a model it counts.
struct FigureRow {
  const char* file;
  double printed;
  double digit;  ///< last digit of what is printed
  double (*counted)(const ParameterCount&);
};

void PrintTo(const FigureRow& row, std::ostream* out) { *out << row.file << " " << row.printed; }

class PrintedTotals : public testing::TestWithParam<FigureRow> {};

TEST_P(PrintedTotals, AreThoseOfTheModelAsTheyAreRounded) {
  const FigureRow& row = GetParam();
  EXPECT_NEAR(row.counted(count_parameters(library_model(row.file))) / 1e9, row.printed,
              row.digit / 2);
}

double total(const ParameterCount& count) { return double(count.total); }
double of_text(const ParameterCount& count) { return double(count.total - count.vision); }
double active(const ParameterCount& count) { return double(count.active); }
double without_tables(const ParameterCount& count) {
  return double(count.total - count.embedding - count.head);
}
double active_without_tables(const ParameterCount& count) {
  return double(count.active - count.embedding - count.head);
}

// Llama 4 Scout: "17B active parameters" (ai.meta.com, April 2025). Gemma 4: 25.2 B, of which 3.8 B
// are active, and 30.7 B, beside towers of 550 M (model card at ai.google.dev). MiMo-V2-Flash:
// "309B total parameters and 15B active" (its card). Step-3.5-Flash, whose trunk Step-3.7-Flash
// has: a backbone of 196 B, "11B per token" (its card), which count neither table.
INSTANTIATE_TEST_SUITE_P(Cards, PrintedTotals,
                         testing::Values(FigureRow{"llama_4_scout", 17, 1, active},
                                         FigureRow{"gemma_4_26b_a4b", 25.2, 0.1, of_text},
                                         FigureRow{"gemma_4_26b_a4b", 3.8, 0.1, active},
                                         FigureRow{"gemma_4_31b", 30.7, 0.1, of_text},
                                         FigureRow{"mimo_v2_flash", 309, 1, total},
                                         FigureRow{"mimo_v2_flash", 15, 1, active},
                                         FigureRow{"step_3_7_flash", 196, 1, without_tables},
                                         FigureRow{"step_3_7_flash", 11, 1, active_without_tables}),
                         PrintedName());

}  // namespace
}  // namespace orrery::published_totals_test
