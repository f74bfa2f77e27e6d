// SPDX-License-Identifier: Apache-2.0
// One step of prefill and one of decode for a model of each family, by hand from its sizes: a row
// a family. Weights, cache and FLOPs are those of one accelerator with all of the model in bf16.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "sim/graph/verify.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/inference/inference.h"
#include "workloads/memory.h"
#include "workloads/statistics.h"

namespace orrery {
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

INSTANTIATE_TEST_SUITE_P(Published, FamilySteps, testing::Values(llama4()));

}  // namespace
}  // namespace orrery
