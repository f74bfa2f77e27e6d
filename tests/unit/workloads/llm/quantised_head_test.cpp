// SPDX-License-Identifier: Apache-2.0
// Heads that a checkpoint packs, and the scales of packed weights.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "workloads/layers/layers.h"
#include "workloads/models/huggingface/checkpoint_format.h"
#include "workloads/models/huggingface/huggingface.h"
#include "workloads/software/engine_switches.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/inference/inference.h"

namespace orrery::quantised_head_test {
namespace {

using nlohmann::json;

constexpr double kHidden = 512, kVocabulary = 1000, kWide = 1024;

LlmConfig small_llama(const json& quantization) {
  return from_huggingface({{"model_type", "llama"},
                           {"hidden_size", 512},
                           {"num_hidden_layers", 2},
                           {"num_attention_heads", 8},
                           {"num_key_value_heads", 8},
                           {"intermediate_size", 1024},
                           {"vocab_size", 1000},
                           {"quantization_config", quantization}},
                          "m");
}

json gptq() { return {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}}; }

json grouped(const json& targets, int bits) {
  return {{"targets", targets},
          {"weights", {{"num_bits", bits}, {"type", "int"}, {"group_size", 32}}},
          {"input_activations", nullptr}};
}

json compressed(const json& groups) {
  return {{"quant_method", "compressed-tensors"}, {"config_groups", groups}};
}

Kernel decoded(const LlmConfig& model, const std::string& name) {
  InferenceConfig config;
  config.kv_length = 16;
  for (const Kernel& kernel : build_inference(model, config).kernels)
    if (kernel.name == name) return kernel;
  ADD_FAILURE() << name;
  return {};
}

double weights_of(const json& quantization) {
  InferenceConfig config;
  config.kv_length = 16;
  return inference_memory(small_llama(quantization), config).front().weights.base();
}

TEST(QuantisedHead, StaysIn16BitsUnlessSomebodyNamesIt) {
  const json awq = {{"quant_method", "awq"}, {"bits", 4}, {"group_size", 128}};
  for (const json& plain : {gptq(), awq, compressed({{"group_0", grouped({"Linear"}, 4)}}),
                            json{{"quant_method", "fp8"}}, json{{"quant_algo", "NVFP4"}}})
    EXPECT_EQ(small_llama(plain).head, StoredFormat::kSixteenBit) << plain;
  EXPECT_EQ(decoded(small_llama(gptq()), "head").weights.bits, 0);
}

TEST(QuantisedHead, IsPackedAsTheRestWhereGptqSaysSo) {
  json packed = gptq();
  packed["lm_head"] = false;
  EXPECT_EQ(small_llama(packed).head, StoredFormat::kSixteenBit);
  packed["lm_head"] = true;
  EXPECT_EQ(small_llama(packed).head, StoredFormat::kFourBit);
  const Kernel head = decoded(small_llama(packed), "head");
  EXPECT_EQ(head.weights.bits, 4);
  // A row of inputs in 16 bits; of each weight 4 bits, and 16 + 4 for 32 of them.
  EXPECT_DOUBLE_EQ(head.read.base(), 2 * kHidden + kHidden * kVocabulary * (4 + 20.0 / 32) / 8);
  EXPECT_DOUBLE_EQ(weights_of(gptq()) - weights_of(packed),
                   kHidden * kVocabulary * (2 - (4 + 20.0 / 32) / 8));
}

TEST(QuantisedHead, HasTheFormatOfTheGroupThatNamesIt) {
  const json other = grouped({"re:.*lm_head"}, 8);
  const LlmConfig model =
      small_llama(compressed({{"group_0", grouped({"Linear"}, 4)}, {"group_1", other}}));
  EXPECT_EQ(model.head, StoredFormat::kEightBit);
  EXPECT_EQ(model.layers[0].feed, StoredFormat::kFourBit);
  // Also where the head's group comes first.
  const json first = compressed({{"a", other}, {"b", grouped({"Linear"}, 4)}});
  LlmConfig unmarked = small_llama({{"quant_method", "none"}});
  EXPECT_EQ(read_quantization({{"quantization_config", first}}, unmarked)->weight_bits, 4);
  const json same = grouped({"Linear", "lm_head"}, 4);
  EXPECT_EQ(small_llama(compressed({{"group_0", same}})).head, StoredFormat::kFourBit);
  const json listed = {{"quant_algo", "MIXED_PRECISION"},
                       {"quantized_layers",
                        {{"lm_head", {{"quant_algo", "FP8"}}},
                         {"model.layers.0.mlp.down_proj", {{"quant_algo", "FP8"}}}}}};
  EXPECT_EQ(small_llama(listed).head, StoredFormat::kPrecision);
}

TEST(QuantisedHead, IsLeftOutWhereAListSaysSo) {
  json ignored = compressed({{"group_0", grouped({"Linear", "lm_head"}, 4)}});
  ignored["ignore"] = {"lm_head"};
  EXPECT_EQ(small_llama(ignored).head, StoredFormat::kSixteenBit);
  json unconverted = gptq();
  unconverted["lm_head"] = true;
  unconverted["modules_to_not_convert"] = {"lm_head"};
  EXPECT_EQ(small_llama(unconverted).head, StoredFormat::kSixteenBit);
}

TEST(QuantisedHead, OfMlxIsPackedAndHasScalesAndOffsets) {
  const LlmConfig model = small_llama({{"bits", 4}, {"group_size", 64}});
  EXPECT_TRUE(model.warnings.empty());
  EXPECT_EQ(model.head, StoredFormat::kFourBit);
  EXPECT_EQ(model.layers[1].attention, StoredFormat::kFourBit);
  EXPECT_DOUBLE_EQ(model.scale_bits, 0.5);
}

TEST(QuantisedHead, IsNoneInTraining) {
  json packed = gptq();
  packed["lm_head"] = true;
  const LlmConfig model = small_llama(packed);
  RankWork work;
  work.batch.sequences = 1;
  work.batch.query = 8;
  const StepList head = head_forward(model, work);
  for (const Step& step : head.steps()) {
    if (const Kernel* kernel = step.kernel()) {
      EXPECT_EQ(kernel->weights.bits, 0) << kernel->name;
    }
  }
}

TEST(PackedWeights, AreReadWithTheirScales) {
  const Kernel up = decoded(small_llama(compressed({{"g", grouped({"Linear"}, 4)}})), "gate-up");
  EXPECT_DOUBLE_EQ(up.read.base(), 2 * kHidden + kHidden * 2 * kWide * (4 + 16.0 / 32) / 8);
  json zeros = grouped({"Linear"}, 4);
  zeros["weights"]["symmetric"] = false;
  EXPECT_DOUBLE_EQ(small_llama(compressed({{"g", zeros}})).scale_bits, 20.0 / 32);
  EXPECT_DOUBLE_EQ(small_llama({{"quant_algo", "W4A16_NVFP4"}}).scale_bits, 8.0 / 16);
}

/// Launches of a layer, of which the program has the kernels once, for both layers are alike.
std::int64_t launches_of_layer(const json& quantization, bool quantises) {
  RankWork work;
  work.batch.phase = Phase::kDecode;
  work.batch.sequences = 1;
  work.batch.query = 1;
  work.batch.context = 17;
  work.kernels.set(kOperatorsApart, true);
  work.kernels.set("quantises_widened", quantises);
  const LlmConfig model = small_llama(quantization);
  std::int64_t all = 0;
  const StepList layer = layer_forward(model, model.layers[0], work);
  for (const Step& step : layer.steps())
    if (const Kernel* kernel = step.kernel()) all += kernel->launches;
  return all;
}

// Residual, norm and weight; queries, keys, values; both rotated, both written; scores, softmax,
// values, copy; output. Residual, norm and weight; gate, up; function, product; down.
TEST(OperatorsApart, HaveALaunchEach) {
  EXPECT_EQ(launches_of_layer(gptq(), false), 3 + 3 + 4 + 4 + 1 + 3 + 2 + 2 + 1);
  // And one in front of each of seven products of narrow weights.
  EXPECT_EQ(launches_of_layer(gptq(), true), 23 + 7);
  const json wide = {{"quant_method", "none"}};
  EXPECT_EQ(launches_of_layer(wide, true), 23);
}

TEST(DecodesByHead, ReadKeysAndValuesForEachHeadOfQueries) {
  RankWork work;
  work.batch.phase = Phase::kDecode;
  work.batch.sequences = 3;
  work.batch.query = 1;
  work.batch.context = 100;
  LlmConfig model = small_llama(gptq());
  model.attention.kv_heads = 2;
  const auto attention = [&] {
    const StepList layer = layer_forward(model, model.layers[0], work);
    for (const Step& step : layer.steps())
      if (const Kernel* kernel = step.kernel(); kernel && kernel->name == "attention")
        return *kernel;
    return Kernel();
  };
  const Kernel shared = attention();
  work.kernels.set("decodes_by_head", true);
  const Kernel apart = attention();
  EXPECT_EQ(shared.attention.kv_heads, 2);
  EXPECT_EQ(apart.attention.kv_heads, 8);
  // Keys and values of 64 columns in 16 bits.
  EXPECT_DOUBLE_EQ(apart.read.base() - shared.read.base(), 3 * 100 * (8 - 2) * 2 * 64 * 2);
}

}  // namespace
}  // namespace orrery::quantised_head_test
