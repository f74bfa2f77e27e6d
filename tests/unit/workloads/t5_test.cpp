// SPDX-License-Identifier: Apache-2.0
// Encoder-decoder models (T5): parameters, FLOPs, messages, memory of their training steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/graph/memory_profile.h"
#include "sim/graph/verify.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/closed_forms.h"
#include "workloads/layers/rank_parameters.h"
#include "workloads/models/huggingface/huggingface.h"
#include "workloads/software/training_software.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/figures/statistics.h"
#include "workloads/steps/training/training.h"

namespace orrery::t5_test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

LlmConfig t5(int hidden, int ff, int layers, int heads, int head_dim, int vocabulary = 32128,
             bool newer = false) {
  json config = {{"model_type", "t5"},      {"d_model", hidden},  {"d_ff", ff},
                 {"num_layers", layers},    {"num_heads", heads}, {"d_kv", head_dim},
                 {"vocab_size", vocabulary}};
  if (newer) {
    config["feed_forward_proj"] = "gated-gelu";
    config["tie_word_embeddings"] = false;
  }
  return from_huggingface(config, "t5", "a test");
}

/// Two layers and two: hidden 64, 8 heads of 8, MLP of 192.
LlmConfig small_t5() { return t5(64, 192, 2, 8, 8, 96); }

TrainingConfig config_of(const ParallelConfig& plan) {
  TrainingConfig config;
  config.parallel = plan;
  config.global_batch = 4 * plan.dp;
  config.sequence = 16;
  config.encoder_sequence = 64;
  return config;
}

/// Elements of the checkpoints on the Hugging Face hub, tied tables once.
TEST(T5, HasThePublishedParameters) {
  const auto total = [](const LlmConfig& model) { return count_parameters(model).total; };
  EXPECT_EQ(total(t5(512, 2048, 6, 8, 64)), 60'506'624);                   // t5-small
  EXPECT_EQ(total(t5(768, 3072, 12, 12, 64)), 222'903'552);                // t5-base
  EXPECT_EQ(total(t5(1024, 4096, 24, 16, 64)), 737'668'096);               // t5-large
  EXPECT_EQ(total(t5(1024, 16384, 24, 32, 128)), 2'851'598'336);           // t5-3b
  EXPECT_EQ(total(t5(1024, 65536, 24, 128, 128)), 11'307'321'344);         // t5-11b
  EXPECT_EQ(total(t5(768, 2048, 12, 12, 64, 32128, true)), 247'577'856);   // flan-t5-base
  EXPECT_EQ(total(t5(768, 2048, 12, 12, 64, 250112, true)), 582'401'280);  // mt5-base
}

TEST(T5, RanksTogetherHoldThemAll) {
  const LlmConfig model = small_t5();
  const std::int64_t all = count_parameters(model).total;
  const std::int64_t table = 96 * 64;
  EXPECT_EQ(stage_parameters(model, {}, 0).total(), all);
  std::int64_t sum = 0;
  for (int stage = 0; stage < 4; ++stage) sum += stage_parameters(model, {.pp = 4}, stage).total();
  EXPECT_EQ(sum, all + 2 * table);  // copies where the decoder begins, and of the head
  const RankParameters half = stage_parameters(model, {.tp = 2}, 0);
  EXPECT_EQ(2 * half.split + half.whole, all);
}

/// An encoder layer has, by hand, 4 h^2 + 2 h f multiply-adds a token and 2 h a key, all of which a
/// token sees; a decoder layer half of its keys, and queries and outputs of its tokens, keys and
/// values of the encoder's, with all of these keys. Executed causal attention has the diagonal too,
/// and gradients of attention five products for two.
TEST(T5, HasTheFlopsOfItsTwoLengths) {
  const LlmConfig model = small_t5();
  const TrainingConfig config = config_of({});
  const double h = 64, f = 192, e = 64, d = 16, v = 96, batch = 4;
  const double layer = 4 * h * h + 2 * h * f;
  const double linear = 2 * e * layer + 2 * d * layer + 2 * (2 * d + 2 * e) * h * h + d * h * v;
  const double keys = 2 * h * (2 * e * e + 2 * d * e);
  const double forward = 2 * (linear + keys + 2 * h * 2 * d * d / 2);
  EXPECT_DOUBLE_EQ(encoder_decoder_flops(model, 64, 16).base(), forward);
  EXPECT_DOUBLE_EQ(model_flops(model, config).base(), 3 * batch * forward);
  const Program program = build_training(model, config).program;
  EXPECT_THAT(verify(program), IsEmpty());
  const double pairs = keys + 2 * h * 2 * d * (d + 1) / 2;
  EXPECT_DOUBLE_EQ(program_statistics(program).matrix_flops().base(),
                   2 * batch * (3 * linear + 3.5 * pairs));
}

/// Failed once: the head of 2 h v FLOPs a token stayed in, as a model cut to its encoder has none.
TEST(T5, LayersAloneHaveNoFlopsOfTheHead) {
  const LlmConfig model = small_t5();
  TrainingConfig config = config_of({});
  const double h = 64, f = 192, e = 64, d = 16, v = 96, batch = 4;
  const double encoder = 2 * e * (4 * h * h + 2 * h * f + 2 * h * e);
  for (const int layers : {1, 2}) {
    config.layers_only = layers;
    EXPECT_DOUBLE_EQ(model_flops(model, config).base(), 3 * batch * layers * encoder);
  }
  const double whole = encoder_decoder_flops(model, 64, 16).base();
  config.layers_only = 4;
  EXPECT_DOUBLE_EQ(model_flops(model, config).base(), 3 * batch * (whole - 2 * d * h * v));
}

TEST(T5, ComputesAgainWhatFullRecomputationDoes) {
  const LlmConfig model = small_t5();
  TrainingConfig config = config_of({});
  const auto flops = [&] {
    return program_statistics(build_training(model, config).program).matrix_flops().base();
  };
  const double without = flops();
  config.recompute = Recompute::kFull;
  const double head = 2.0 * 4 * 16 * 64 * 96;
  const double pairs = 2 * 64.0 * (2 * 64 * 64 + 2 * 16 * 64 + 2 * 16 * 17 / 2);
  const double attention = 2 * 4 * pairs;
  EXPECT_DOUBLE_EQ(flops() - without, (without - 3.5 * attention - 3 * head) / 3 + attention);
}

/// The encoder's tokens alone up to its end, then those and the decoder's.
TEST(T5, StagesOfTheDecoderSendTheEncodersOutputOn) {
  const Program program = build_training(small_t5(), config_of({.pp = 4})).program;
  EXPECT_THAT(verify(program), IsEmpty());
  const auto bytes = [&](const std::string& name) {
    for (const Transfer& transfer : program.transfers)
      if (transfer.name == name) return transfer.bytes.base();
    return 0.0;
  };
  EXPECT_EQ(bytes("forward 0->1"), 64 * 64 * 2);
  EXPECT_EQ(bytes("forward 1->2"), 64 * 64 * 2);
  EXPECT_EQ(bytes("forward 2->3"), (64 + 16) * 64 * 2);
  EXPECT_EQ(bytes("backward 3->2"), (64 + 16) * 64 * 2);
  EXPECT_EQ(bytes("backward 2->1"), 64 * 64 * 2);
  int tied = 0;
  for (const Transfer& transfer : program.transfers)
    if (transfer.purpose == "embedding") tied = transfer.participants;
  EXPECT_EQ(tied, 3);  // stages 0, 2 and 3
}

/// What passes make they free, and the tensors of steps are those that memory counts.
TEST(T5, TensorsOfItsPassesAreFreedAndCounted) {
  for (const ParallelConfig& plan : {ParallelConfig{}, ParallelConfig{.tp = 2, .sp = true, .pp = 4},
                                     ParallelConfig{.tp = 2, .pp = 2, .dp = 2}}) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      TrainingConfig config = config_of(plan);
      config.recompute = recompute;
      const LlmConfig model = small_t5();
      const Program program = build_training(model, config, true).program;
      EXPECT_THAT(verify(program), IsEmpty());
      EXPECT_THAT(verify_tensors(program), IsEmpty());
      const auto memory = training_memory(model, config);
      for (std::size_t stage = 0; stage < memory.size(); ++stage) {
        const MemoryProfile profile = memory_profile(program, program.roles[stage]);
        EXPECT_LE(memory[stage].activations, profile.peak(TensorRole::kActivation));
        EXPECT_GE(memory[stage].activations + memory[stage].working + memory[stage].logits,
                  profile.peak());
      }
    }
  }
}

/// Korthikanti's equation 2 by tensor for two lengths: a layer of the encoder keeps as many bytes a
/// token as one of a decoder, and attention to the encoder 12 h a token (input of the norm, of the
/// query, the query, result), 4 h a token of the encoder (keys, values) and 4 a head of sums.
TEST(T5, KeepsWhatItsBackwardPassesNeed) {
  const LlmConfig model = small_t5();
  const TrainingConfig config = config_of({});
  const RankWork work = rank_work(config);
  const auto kept = [&](std::size_t layer, RankWork of) {
    return layer_activation_bytes(model, model.layers[layer], of).base();
  };
  LayerConfig plain = model.layers[3];
  plain.kind = LayerKind::kDecoder;
  const double decoder = layer_activation_bytes(model, plain, work).base();
  EXPECT_EQ(kept(1, encoder_work(work)), decoder / 16 * 64);
  const double h = 64;
  EXPECT_EQ(kept(3, work) - decoder, 16 * (4 * 2 * h + 4 * 8) + 64 * 2 * 2 * h);
  RankWork first = work;
  first.passes.keeps_encoder_output = true;
  EXPECT_EQ(kept(2, first) - kept(3, work), 64 * 2 * h);
}

TEST(T5, SaysWhatIsNotModelledOfIt) {
  const auto fault = [](const TrainingConfig& config) -> std::string {
    try {
      require_supported(small_t5(), config);
    } catch (const config::ConfigError& error) {
      return error.what();
    }
    return "";
  };
  TrainingConfig config = config_of({});
  EXPECT_EQ(fault(config), "");
  config = config_of({.cp = 2});
  EXPECT_THAT(fault(config), HasSubstr("context parallelism"));
  config = config_of({});
  config.mtp = 1;
  EXPECT_THAT(fault(config), HasSubstr("multi-token prediction"));
}

/// Compilers of the software join dropout and addition behind each part of a layer alike.
TEST(T5, ResidualsBehindAttentionToTheEncoderRunAsFastAsOthers) {
  TrainingSoftware software;
  software.compiled_rate.value = software.elementwise_rate.value / 2;
  TrainingConfig config = config_of({});
  config.dropout = true;
  config.software = std::make_shared<const TrainingSoftware>(software);
  const Program program = build_training(small_t5(), config).program;
  std::map<std::string, double> rates;
  for (const Kernel& kernel : program.kernels) rates[kernel.name] = kernel.rate;
  for (const std::string pass : {"", " backward"})
    EXPECT_EQ(rates.at("cross residual" + pass), rates.at("mlp residual" + pass));
  EXPECT_LT(rates.at("cross residual"), rates.at("cross norm"));
}

}  // namespace
}  // namespace orrery::t5_test
