// SPDX-License-Identifier: Apache-2.0
// One step of prefill and one of decode for a model of each family, by hand from its sizes: a row
// a family. Weights, cache and FLOPs are those of one accelerator with all of the model in bf16.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "sim/graph/verify.h"
#include "tests/printed_name.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/figures/statistics.h"
#include "workloads/steps/inference/inference.h"

namespace orrery::family_steps_test {
namespace {

/// Layers whose attention sees the same.
struct Seen {
  double layers = 0;
  double keys = 0;            ///< keys that a decode at `context` sees
  double kept = 0;            ///< tokens of a sequence of `context` in the cache
  double pairs = 0;           ///< query-key pairs of a prompt of `context`
  double cache_elements = 0;  ///< elements per token
  double multiply_adds =
      0;  ///< multiply-adds per token and key: heads x (columns of keys + of values)
};

struct FamilyRow {
  const char* file;      ///< name of the file in configs/models/hf
  std::int64_t context;  ///< tokens of the prompt, and of the sequence after the decode
  double matrices;       ///< multiply-adds of a token in the matrices of all layers
  double head;           ///< and in the head
  std::vector<Seen> seen;
};

void PrintTo(const FamilyRow& row, std::ostream* out) { *out << row.file; }

/// s (s + 1) / 2.
double triangle(double tokens) { return tokens * (tokens + 1) / 2; }
/// The same where a token sees so many at most.
double in_window(double tokens, double window) {
  return triangle(window) + (tokens - window) * window;
}

class FamilySteps : public testing::TestWithParam<FamilyRow> {};

TEST_P(FamilySteps, HaveTheFlopsAndTheCacheThatFollowFromItsSizes) {
  const FamilyRow& row = GetParam();
  const LlmConfig model = library_model(row.file);
  double decode_adds = row.matrices + row.head, cache = 0;
  double prefill_adds = row.matrices * double(row.context) + row.head;
  for (const Seen& seen : row.seen) {
    decode_adds += seen.layers * seen.keys * seen.multiply_adds;
    prefill_adds += seen.layers * seen.pairs * seen.multiply_adds;
    cache += 2 * seen.layers * seen.kept * seen.cache_elements;
  }
  InferenceConfig decode;
  decode.micro_batch = 1;
  decode.kv_length = row.context - 1;
  const Program step = build_inference(model, decode);
  EXPECT_TRUE(verify(step).empty());
  EXPECT_DOUBLE_EQ(program_statistics(step).matrix_flops().base(), 2 * decode_adds);
  const MemoryUse use = inference_memory(model, decode).front();
  EXPECT_DOUBLE_EQ(use.kv_cache.base(), cache);
  EXPECT_DOUBLE_EQ(use.weights.base(), 2 * double(count_parameters(model).total));
  InferenceConfig prefill;
  prefill.phase = Phase::kPrefill;
  prefill.micro_batch = 1;
  prefill.sequence = row.context;
  EXPECT_DOUBLE_EQ(program_statistics(build_inference(model, prefill)).matrix_flops().base(),
                   2 * prefill_adds);
}

/// Llama 4 Scout: 36 layers see chunks of 8,192, 12 see all; 40 heads of 128, 8 of keys and values;
/// a routed and a shared expert of 8,192 and a router of 16 in each layer. Of 12,288 tokens the
/// last is the 4,096th of its chunk.
FamilyRow llama4() {
  const double hidden = 5120, attention = hidden * 128 * (2 * 40 + 2 * 8);
  const double experts = 2 * 3 * hidden * 8192 + 16 * hidden;
  const double keys = 40 * (128 + 128), elements = 2 * 8 * 128;
  return {"llama_4_scout",
          12288,
          48 * (attention + experts),
          202048 * hidden,
          {{36, 4096, 8192, triangle(8192) + triangle(4096), elements, keys},
           {12, 12288, 12288, triangle(12288), elements, keys}}};
}

/// Gemma 4 26B-A4B: 25 layers with a window of 1,024 and 8 heads of 256 of keys and values, 5 that
/// see all with 2 of 512 and no matrix of values; 16 heads. Beside 8 of 128 experts of 704 and the
/// router stands an MLP of 2,112 in each layer.
FamilyRow gemma4() {
  const double hidden = 2816;
  const double windowed = hidden * 256 * (2 * 16 + 2 * 8), global = hidden * 512 * (2 * 16 + 2);
  const double experts = 3 * hidden * (8 * 704 + 2112) + 128 * hidden;
  return {"gemma_4_26b_a4b",
          4096,
          25 * windowed + 5 * global + 30 * experts,
          262144 * hidden,
          {{25, 1024, 1024, in_window(4096, 1024), 2 * 8 * 256, 16 * 2 * 256},
           {5, 4096, 4096, triangle(4096), 2 * 2 * 512, 16 * 2 * 512}}};
}

/// MiMo-V2-Flash: 9 layers see all with 4 heads of keys and values, 39 a window of 128 with 8; keys
/// of 192 and values of 128 columns, 64 heads. The first layer is dense, the others have 8 of 256
/// experts of 2,048.
FamilyRow mimo_v2() {
  const double hidden = 4096;
  const auto attention = [&](double kv) { return hidden * (64 + kv) * (192 + 128); };
  const double experts = 8 * 3 * hidden * 2048 + 256 * hidden;
  return {"mimo_v2_flash",
          4096,
          9 * attention(4) + 39 * attention(8) + 3 * hidden * 16384 + 47 * experts,
          152576 * hidden,
          {{9, 4096, 4096, triangle(4096), 4 * 320, 64 * 320},
           {39, 128, 128, in_window(4096, 128), 8 * 320, 64 * 320}}};
}

/// Step-3.7-Flash: 12 layers see all with 64 heads, 33 a window of 512 with 96; 8 heads of 128 of
/// keys and values, a gate of a column for each head. Three dense layers, then 8 of 288 experts and
/// a shared one, all of 1,280.
FamilyRow step3() {
  const double hidden = 4096;
  const auto attention = [&](double heads) {
    return hidden * 128 * (2 * heads + 2 * 8) + hidden * heads;
  };
  const double experts = 9 * 3 * hidden * 1280 + 288 * hidden;
  return {"step_3_7_flash",
          4096,
          12 * attention(64) + 33 * attention(96) + 3 * 3 * hidden * 11264 + 42 * experts,
          128896 * hidden,
          {{12, 4096, 4096, triangle(4096), 2 * 8 * 128, 64 * 256},
           {33, 512, 512, in_window(4096, 512), 2 * 8 * 128, 96 * 256}}};
}

/// Nemotron-Super-49B: 49 of 80 layers have attention, 64 heads and 8 of keys and values of 128;
/// widths of MLPs are 28,672, 17,920, 14,336, 7,168, 5,632 and 2,816 in 49, 1, 6, 10, 8 and 6.
FamilyRow nemotron_nas() {
  const double hidden = 8192, attention = hidden * 128 * (2 * 64 + 2 * 8);
  const double widths = 49 * 28672.0 + 17920 + 6 * 14336.0 + 10 * 7168.0 + 8 * 5632.0 + 6 * 2816.0;
  return {"nemotron_super_49b",
          4096,
          49 * attention + 3 * hidden * widths,
          128256 * hidden,
          {{49, 4096, 4096, triangle(4096), 2 * 8 * 128, 64 * 256}}};
}

/// Phi-2: 32 layers of 32 heads of 80, attention and an MLP of four times the width in parallel.
FamilyRow phi() {
  const double hidden = 2560;
  return {"phi_2",
          1024,
          32 * 12 * hidden * hidden,
          51200 * hidden,
          {{32, 1024, 1024, triangle(1024), 2 * hidden, 2 * hidden}}};
}

/// GPT-J: 28 such layers of 16 heads of 256.
FamilyRow gptj() {
  const double hidden = 4096;
  return {"gpt_j_6b",
          1024,
          28 * 12 * hidden * hidden,
          50400 * hidden,
          {{28, 1024, 1024, triangle(1024), 2 * hidden, 2 * hidden}}};
}

/// Falcon-40B: 60 such layers of 128 heads of 64, of keys and values 8.
FamilyRow falcon() {
  const double hidden = 8192;
  return {"falcon_40b",
          1024,
          60 * (hidden * 64 * (2 * 128 + 2 * 8) + 8 * hidden * hidden),
          65024 * hidden,
          {{60, 1024, 1024, triangle(1024), 2 * 8 * 64, 2 * hidden}}};
}

/// Command R7B: 24 layers see a window of 4,096, 8 all; 32 heads and 8 of keys and values of 128.
FamilyRow cohere2() {
  const double hidden = 4096;
  const double layer = hidden * 128 * (2 * 32 + 2 * 8) + 3 * hidden * 14336;
  return {"command_r7b",
          8192,
          32 * layer,
          256000 * hidden,
          {{24, 4096, 4096, in_window(8192, 4096), 2 * 8 * 128, 32 * 256},
           {8, 8192, 8192, triangle(8192), 2 * 8 * 128, 32 * 256}}};
}

INSTANTIATE_TEST_SUITE_P(Published, FamilySteps,
                         testing::Values(llama4(), gemma4(), mimo_v2(), step3(), nemotron_nas(),
                                         phi(), gptj(), falcon(), cohere2()),
                         PrintedName());

}  // namespace
}  // namespace orrery::family_steps_test
