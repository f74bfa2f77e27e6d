// SPDX-License-Identifier: Apache-2.0
// What the quantization_config of a checkpoint says of its layers.
#include "workloads/models/huggingface/checkpoint_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "workloads/models/huggingface/huggingface.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/inference/inference.h"

namespace orrery::checkpoint_format_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// Two dense layers and two of four experts, with a shared one.
json deepseek_like(const json& quantization) {
  return {{"model_type", "deepseek_v3"},
          {"hidden_size", 512},
          {"num_hidden_layers", 4},
          {"num_attention_heads", 8},
          {"intermediate_size", 1024},
          {"vocab_size", 1000},
          {"q_lora_rank", 64},
          {"kv_lora_rank", 64},
          {"qk_nope_head_dim", 32},
          {"qk_rope_head_dim", 16},
          {"v_head_dim", 32},
          {"n_routed_experts", 4},
          {"num_experts_per_tok", 2},
          {"n_shared_experts", 1},
          {"moe_intermediate_size", 256},
          {"first_k_dense_replace", 2},
          {"quantization_config", quantization}};
}

json group(int bits, const char* type, int size, bool inputs) {
  json weights = {{"num_bits", bits}, {"type", type}, {"group_size", size}};
  json group = {{"weights", weights}, {"targets", {"Linear"}}};
  group["input_activations"] = inputs ? weights : json(nullptr);
  return {{"quant_method", "compressed-tensors"}, {"config_groups", {{"group_0", group}}}};
}

Quantization format_of(const json& quantization) {
  LlmConfig model = from_huggingface(deepseek_like(quantization), "m");
  const auto format = read_quantization(deepseek_like(quantization), model);
  EXPECT_TRUE(format.has_value()) << quantization;
  return format.value_or(Quantization());
}

LlmConfig model_with(const json& quantization) {
  return from_huggingface(deepseek_like(quantization), "m");
}

TEST(CheckpointFormat, EveryPublishedFormatIsKnown) {
  const json block = {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
  EXPECT_EQ(format_of(block).precision, Precision::kFp8Block);
  EXPECT_EQ(format_of({{"quant_method", "fp8"}}).precision, Precision::kFp8);
  EXPECT_EQ(format_of(group(8, "float", 0, true)).precision, Precision::kFp8);
  EXPECT_EQ(format_of(group(8, "int", 0, true)).precision, Precision::kInt8);
  EXPECT_EQ(format_of(group(4, "float", 16, true)).precision, Precision::kNvfp4);
  for (const json& widened :
       {group(4, "int", 32, false), group(4, "float", 32, false), json{{"quant_method", "mxfp4"}},
        json{{"quant_method", "awq"}, {"bits", 4}, {"group_size", 128}},
        json{{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 128}}}) {
    EXPECT_EQ(format_of(widened).precision, Precision::kBf16) << widened;
    EXPECT_EQ(format_of(widened).weight_bits, 4) << widened;
  }
}

TEST(CheckpointFormat, AlgorithmsOfModelOptAreKnownWithoutAMethod) {
  const auto of = [](const char* algorithm) { return format_of({{"quant_algo", algorithm}}); };
  EXPECT_EQ(of("FP8").precision, Precision::kFp8);
  EXPECT_EQ(of("FP8_PB_WO").precision, Precision::kFp8Block);
  EXPECT_EQ(of("NVFP4").precision, Precision::kNvfp4);
  EXPECT_EQ(of("W8A8_SQ_PER_CHANNEL").precision, Precision::kInt8);
  for (const char* widened : {"W4A16_AWQ", "W4A16_NVFP4"}) {
    EXPECT_EQ(of(widened).precision, Precision::kBf16) << widened;
    EXPECT_EQ(of(widened).stored, StoredFormat::kFourBit) << widened;
  }
  EXPECT_EQ(of("W8A16").stored, StoredFormat::kEightBit);
  const Quantization with_cache =
      format_of({{"quant_algo", "NVFP4"}, {"kv_cache_quant_algo", "FP8"}});
  EXPECT_EQ(with_cache.kv_cache, Precision::kFp8);
}

TEST(CheckpointFormat, PackedMxfp4OfCompressedTensorsIsThatOfTensorCores) {
  json packed = group(4, "float", 32, false);
  packed["format"] = "mxfp4-pack-quantized";
  EXPECT_EQ(format_of(packed).stored, StoredFormat::kMxFourBit);
  packed["format"] = "pack-quantized";
  EXPECT_EQ(format_of(packed).stored, StoredFormat::kFourBit);
}

// ModelOpt's mixed precision: experts in nvfp4, attention of two layers in fp8, nothing else.
TEST(CheckpointFormat, AFormatForEachModuleIsThatOfItsPart) {
  json mixed = {{"quant_algo", "MIXED_PRECISION"}, {"quantized_layers", json::object()}};
  json& layers = mixed["quantized_layers"];
  for (const char* layer : {"2", "3"}) {
    const std::string name = std::string("model.layers.") + layer;
    layers[name + ".mlp.experts"] = {{"quant_algo", "NVFP4"}, {"group_size", 16}};
    layers[name + ".self_attn.o_proj"] = {{"quant_algo", "FP8"}};
    layers[name + ".mlp.shared_experts.down_proj"] = {{"quant_algo", "UNQUANTIZED"}};
  }
  EXPECT_EQ(format_of(mixed).precision, Precision::kNvfp4);
  EXPECT_EQ(format_of(mixed).name, "fp8, nvfp4");
  const LlmConfig model = model_with(mixed);
  EXPECT_EQ(model.layers[0].attention, StoredFormat::kSixteenBit);
  EXPECT_EQ(model.layers[0].feed, StoredFormat::kSixteenBit);
  EXPECT_EQ(model.layers[2].attention, StoredFormat::kEightFloat);
  EXPECT_EQ(model.layers[2].feed, StoredFormat::kPrecision);
  EXPECT_EQ(model.layers[2].shared, StoredFormat::kSixteenBit);
  InferenceConfig config;
  config.precision = Precision::kNvfp4;
  config.kv_length = 16;
  std::map<std::string, std::set<Precision>> precisions;
  for (const Kernel& kernel : build_inference(model, config).kernels)
    precisions[kernel.name].insert(kernel.precision);
  using Set = std::set<Precision>;
  EXPECT_EQ(precisions["attention output"], (Set{Precision::kBf16, Precision::kFp8}));
  EXPECT_EQ(precisions["expert up"], Set{Precision::kNvfp4});
  EXPECT_EQ(precisions["shared expert up"], Set{Precision::kBf16});
}

TEST(CheckpointFormat, FourBitsBesideFp8AreWidenedAll) {
  json mixed = {{"quant_algo", "MIXED_PRECISION"},
                {"quantized_layers",
                 {{"model.layers.2.mlp.experts", {{"quant_algo", "W4A16_NVFP4"}}},
                  {"model.layers.2.self_attn.o_proj", {{"quant_algo", "FP8"}}}}}};
  EXPECT_EQ(format_of(mixed).precision, Precision::kFp8);
  const LlmConfig model = model_with(mixed);
  EXPECT_EQ(model.layers[2].attention, StoredFormat::kPrecision);
  EXPECT_EQ(model.layers[2].feed, StoredFormat::kWideFourBit);
  InferenceConfig config;
  config.precision = Precision::kFp8;
  config.kv_length = 16;
  bool widened = false;
  for (const Kernel& kernel : build_inference(model, config).kernels)
    widened = widened || (kernel.name == "expert up" && kernel.weights.bits == 4 &&
                          kernel.precision == Precision::kBf16);
  EXPECT_TRUE(widened);
}

/// A folder that is removed with what lies in it.
class QuantizationFile : public testing::Test {
 protected:
  QuantizationFile()
      : folder_(std::filesystem::temp_directory_path() / ("orrery_" + std::to_string(::getpid())) /
                "Small-NVFP4") {
    std::filesystem::create_directories(folder_);
  }
  ~QuantizationFile() override { std::filesystem::remove_all(folder_.parent_path()); }

  std::filesystem::path write(const char* name, const json& text) const {
    std::ofstream(folder_ / name) << text.dump();
    return folder_ / name;
  }
  static json without_quantization() {
    json plain = deepseek_like({});
    plain.erase("quantization_config");
    return plain;
  }

  std::filesystem::path folder_;
};

TEST_F(QuantizationFile, IsReadWhereItLiesBeside) {
  const auto file = write("config.json", without_quantization());
  write("hf_quant_config.json",
        {{"producer", {{"name", "modelopt"}}},
         {"quantization",
          {{"quant_algo", "NVFP4"},
           {"kv_cache_quant_algo", "FP8"},
           {"exclude_modules", {"lm_head", "model.layers.*.self_attn*"}}}}});
  const auto stored = load_quantization(file);
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->precision, Precision::kNvfp4);
  EXPECT_EQ(stored->kv_cache, Precision::kFp8);
  const LlmConfig model = load_huggingface(file);
  EXPECT_EQ(model.layers[1].attention, StoredFormat::kSixteenBit);
  EXPECT_EQ(model.layers[1].feed, StoredFormat::kPrecision);
  EXPECT_TRUE(model.asks_precision.empty());
}

TEST_F(QuantizationFile, IsAskedForByANameThatSaysQuantised) {
  EXPECT_THAT(load_huggingface(write("config.json", without_quantization())).asks_precision,
              HasSubstr("its name says NVFP4"));
  EXPECT_THAT(load_huggingface(write("Other-FP8.json", without_quantization())).asks_precision,
              HasSubstr("its name says FP8"));
  EXPECT_EQ(load_huggingface(write("Other-BF16.json", without_quantization())).asks_precision, "");
}

TEST_F(QuantizationFile, IsNotThatOfAnotherFileOfItsFolder) {
  write("hf_quant_config.json", {{"quantization", {{"quant_algo", "NVFP4"}}}});
  EXPECT_FALSE(load_quantization(write("Other-BF16.json", without_quantization())));
  EXPECT_TRUE(load_quantization(write("Other-NVFP4.json", without_quantization())));
}

TEST(CheckpointFormat, Mxfp4IsOfExpertsAlone) {
  const LlmConfig model = model_with({{"quant_method", "mxfp4"}});
  for (const LayerConfig& layer : model.layers) {
    EXPECT_EQ(layer.attention, StoredFormat::kSixteenBit);
    EXPECT_EQ(layer.feed, layer.moe ? StoredFormat::kMxFourBit : StoredFormat::kSixteenBit);
  }
}

TEST(CheckpointFormat, AnUnknownFormatIsAWarning) {
  const LlmConfig model = model_with({{"quant_method", "spqr"}});
  EXPECT_THAT(model.warnings,
              testing::ElementsAre(HasSubstr("quantization_config 'spqr' is not known")));
  EXPECT_EQ(model.layers[0].attention, StoredFormat::kPrecision);
}

TEST(CheckpointFormat, ModulesLeftOutStayIn16Bits) {
  json nvfp4 = group(4, "float", 16, true);
  nvfp4["ignore"] = {"lm_head", "model.layers.0*", "model.layers.1.self_attn*",
                     "model.layers.2.self_attn*", "model.layers.2.mlp.shared_experts*"};
  const LlmConfig model = model_with(nvfp4);
  EXPECT_EQ(model.layers[0].feed, StoredFormat::kSixteenBit);
  EXPECT_EQ(model.layers[1].feed, StoredFormat::kPrecision);
  EXPECT_EQ(model.layers[1].attention, StoredFormat::kSixteenBit);
  EXPECT_EQ(model.layers[2].shared, StoredFormat::kSixteenBit);
  EXPECT_EQ(model.layers[2].feed, StoredFormat::kPrecision);
  EXPECT_EQ(model.layers[3].attention, StoredFormat::kPrecision);
}

TEST(CheckpointFormat, PatternsAreWordsGlobsAndRegularExpressions) {
  const std::string gate = "model.layers.1.mlp.gate_proj";
  EXPECT_FALSE(ModulePattern("gate").names(gate));  // that is the router's name
  EXPECT_TRUE(ModulePattern("gate").names("model.layers.1.mlp.gate"));
  EXPECT_TRUE(ModulePattern("model.layers.1").names(gate));
  EXPECT_FALSE(ModulePattern("model.layers.1").names("model.layers.11.mlp.gate_proj"));
  EXPECT_TRUE(ModulePattern("model.layers.*.mlp").names(gate));
  EXPECT_TRUE(ModulePattern("re:.*mlp\\.(gate|up)_proj.*").names(gate));
  EXPECT_FALSE(
      ModulePattern("re:.*mlp\\.(gate|up)_proj.*").names("model.layers.1.mlp.experts.0.gate_proj"));
  EXPECT_FALSE(ModulePattern("re:mlp").names(gate));  // an expression begins where the name does
  EXPECT_TRUE(ModulePattern("re:.*mlp").names(gate));
  EXPECT_TRUE(ModulePattern("re:.*lm_head|model").names(gate));
  EXPECT_FALSE(ModulePattern("re:.*lm_head|mlp").names(gate));
  EXPECT_FALSE(ModulePattern("re:.*?lm_head").names(gate));
  EXPECT_TRUE(ModulePattern("re:.*?mlp").names(gate));
  EXPECT_TRUE(ModulePattern("re:.*mlp.*").names(gate));
  EXPECT_FALSE(ModulePattern("re:.*lm_head.*").names(gate));
  EXPECT_TRUE(ModulePattern("re:.*1\\.*").names(gate));  // dots
  EXPECT_FALSE(ModulePattern("re:(").names(gate));
  EXPECT_FALSE(ModulePattern("re:.*(").names(gate));
}

/// Weights of one rank that holds all.
double weights(const json& quantization, Precision precision) {
  InferenceConfig config;
  config.precision = precision;
  config.kv_length = 16;
  return inference_memory(model_with(quantization), config).front().weights.base();
}

// Elements by hand. Attention of a layer: 512 x (64 + 64 + 16) latents down, 64 x 8 x 48 queries,
// 64 x 8 x 64 keys and values, 256 x 512 out; norms have 16 bits in any format. An expert: 3 x 512
// x 256.
TEST(CheckpointFormat, MemoryIsThatOfEachPart) {
  const double attention = 4 * (512 * 144 + 64 * 8 * 48 + 64 * 8 * 64 + 256 * 512);
  const double shared = 2 * 3 * 512 * 256;
  json left_out = group(4, "float", 16, true);
  left_out["ignore"] = {"re:.*self_attn.*", "re:.*shared_experts.*"};
  const double all = weights(group(4, "float", 16, true), Precision::kNvfp4);
  // A scale of 8 bits for 16 weights of 4 (arXiv 2509.25149, section 2).
  EXPECT_DOUBLE_EQ(weights(left_out, Precision::kNvfp4) - all,
                   (2 - 4.5 / 8) * (attention + shared));
  // 4-bit weights, with scales of 16 bits for 32 of them, are widened to bf16 operands: those of
  // the four experts of two layers.
  json widened = group(4, "int", 32, false);
  widened["ignore"] = {"re:.*self_attn.*", "re:.*shared_experts.*",
                       "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"};
  const double dense = weights({{"quant_method", "none"}}, Precision::kBf16);
  EXPECT_DOUBLE_EQ(dense - weights(widened, Precision::kBf16),
                   (2 - 4.5 / 8) * 2 * 4 * 3 * 512 * 256);
}

TEST(CheckpointFormat, ProductsRunInTheFormatOfTheirPart) {
  json nvfp4 = group(4, "float", 16, true);
  nvfp4["ignore"] = {"re:.*self_attn.*"};
  InferenceConfig config;
  config.precision = Precision::kNvfp4;
  config.kv_length = 16;
  for (const Kernel& kernel : build_inference(model_with(nvfp4), config).kernels) {
    if (kernel.name == "query up" || kernel.name == "attention output") {
      EXPECT_EQ(kernel.precision, Precision::kBf16) << kernel.name;
    }
    if (kernel.name == "gate-up" || kernel.name == "expert up") {
      EXPECT_EQ(kernel.precision, Precision::kNvfp4) << kernel.name;
    }
  }
  config.precision = Precision::kBf16;
  const LlmConfig widened = model_with(group(4, "int", 32, false));
  for (const Kernel& kernel : build_inference(widened, config).kernels) {
    if (kernel.name == "expert down") {
      EXPECT_EQ(kernel.weights.bits, 4);
    }
  }
}

// 27 layers of 4 x 1152^2 + 2 x 1152 x 4304.
TEST(CheckpointFormat, AVisionTowerThatIsNotModelledIsSaidWithItsSize) {
  json inner = deepseek_like({{"quant_method", "fp8"}});
  const json wrapper = {
      {"model_type", "some_vl"},
      {"text_config", inner},
      {"vision_config",
       {{"vt_hidden_size", 1152}, {"vt_intermediate_size", 4304}, {"vt_num_hidden_layers", 27}}}};
  EXPECT_THAT(from_huggingface(wrapper, "m").warnings.front(), HasSubstr("about 411 M parameters"));
}

/// Sizes and quantisation of nvidia/Kimi-K2.5-NVFP4 (config.json, 2026): attention stays in 16
/// bits.
json kimi_k25() {
  json ignored = {"language_model.lm_head", "mm_projector*", "vision_tower*"};
  for (int layer = 0; layer < 61; ++layer)
    ignored.push_back("language_model.model.layers." + std::to_string(layer) + ".self_attn*");
  const json four_bits = {
      {"dynamic", false}, {"num_bits", 4}, {"type", "float"}, {"group_size", 16}};
  json inner = {{"architectures", {"DeepseekV3ForCausalLM"}},
                {"model_type", "deepseek_v3"},
                {"hidden_size", 7168},
                {"num_hidden_layers", 61},
                {"num_attention_heads", 64},
                {"num_key_value_heads", 64},
                {"intermediate_size", 18432},
                {"moe_intermediate_size", 2048},
                {"n_routed_experts", 384},
                {"n_shared_experts", 1},
                {"num_experts_per_tok", 8},
                {"n_group", 1},
                {"topk_group", 1},
                {"first_k_dense_replace", 1},
                {"moe_layer_freq", 1},
                {"kv_lora_rank", 512},
                {"q_lora_rank", 1536},
                {"qk_nope_head_dim", 128},
                {"qk_rope_head_dim", 64},
                {"v_head_dim", 128},
                {"hidden_act", "silu"},
                {"norm_topk_prob", true},
                {"scoring_func", "sigmoid"},
                {"routed_scaling_factor", 2.827},
                {"tie_word_embeddings", false},
                {"max_position_embeddings", 262144},
                {"vocab_size", 163840}};
  return {
      {"architectures", {"KimiK25ForConditionalGeneration"}},
      {"model_type", "kimi_k25"},
      {"text_config", inner},
      {"quantization_config",
       {{"config_groups",
         {{"group_0",
           {{"input_activations", four_bits}, {"weights", four_bits}, {"targets", {"Linear"}}}}}},
        {"ignore", ignored},
        {"quant_algo", "NVFP4"},
        {"quant_method", "modelopt"},
        {"producer", {{"name", "modelopt"}, {"version", "0.41.0"}}}}}};
}

// Published: 1 T parameters in 4 bits but for attention (NVIDIA's card: about 600 GB with scales).
TEST(CheckpointFormat, KimiK25InNvfp4IsNot2Terabytes) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                     ("orrery_kimi_" + std::to_string(::getpid()) + ".json");
  std::ofstream(file) << kimi_k25().dump();
  InferenceConfig config;
  const auto stored = load_quantization(file);
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->precision, Precision::kNvfp4);
  config.precision = stored->precision;
  config.kv_length = 16;
  const double bytes = inference_memory(load_huggingface(file), config).front().weights.base();
  EXPECT_GT(bytes, 0.5e12);
  EXPECT_LT(bytes, 0.6e12);
  std::filesystem::remove(file);
}

TEST(CheckpointFormat, TheConfigurationsOfTheLibraryAreReadWithoutAnUnknownFormat) {
  int read = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(ORRERY_SOURCE_DIR "/configs/models/hf")) {
    if (entry.path().extension() != ".json") continue;
    ++read;
    for (const std::string& warning : load_huggingface(entry.path()).warnings)
      EXPECT_EQ(warning.find("quantization_config"), std::string::npos) << entry.path();
  }
  EXPECT_GE(read, 9);
}

}  // namespace
}  // namespace orrery::checkpoint_format_test
