// SPDX-License-Identifier: Apache-2.0
// What training launches for latent attention, for attention sinks and around matrices that every
// rank holds whole, by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/layers.h"
#include "workloads/software/training_software.h"

namespace orrery::latent_training_test {
namespace {

/// 4 heads with 8 columns and 4 rotated ones, and values of 8; latents of 24 and 16, hidden 64.
LlmConfig small_latent(std::int64_t query_latent = 24) {
  LlmConfig model = small_llama(1);
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

/// 8 tokens.
RankWork work_of(const TrainingSoftware& software, Precision precision = Precision::kBf16) {
  RankWork work;
  work.batch.phase = Phase::kTraining;
  work.batch.sequences = 1;
  work.batch.query = work.batch.context = 8;
  work.formats.precision = precision;
  work.software = std::make_shared<const TrainingSoftware>(software);
  return work;
}

TrainingSoftware with(Fact<Fusion> TrainingSoftware::*member, Fusion value) {
  TrainingSoftware software;
  (software.*member).value = value;
  return software;
}

StepList forward(const LlmConfig& model, const RankWork& work) {
  return layer_forward(model, model.layers[0], work);
}
StepList backward(const LlmConfig& model, const RankWork& work) {
  return layer_backward(model, model.layers[0], work);
}

const Kernel* find(const StepList& list, const std::string& name) {
  for (const Step& step : list.steps())
    if (step.name() == name) return step.kernel();
  return nullptr;
}

const Kernel& kernel(const StepList& list, const std::string& name) {
  const Kernel* found = find(list, name);
  EXPECT_NE(found, nullptr) << name;
  static const Kernel none;
  return found != nullptr ? *found : none;
}

constexpr double kTokens = 8, kElement = 2;

TEST(LatentTraining, ProjectsQueriesAndKeysByProductsOfTheirOwn) {
  const RankWork apart = work_of({});
  const RankWork joined = work_of(with(&TrainingSoftware::latent_projections, Fusion::kFused));
  const StepList two = forward(small_latent(), apart), one = forward(small_latent(), joined);
  EXPECT_EQ(kernel(two, "query latent down").n, 24);
  EXPECT_EQ(kernel(two, "key-value latent down").n, 16 + 4);
  EXPECT_EQ(kernel(one, "latent down").n, 24 + 16 + 4);
  EXPECT_EQ(find(two, "latent down"), nullptr);
  EXPECT_EQ(kernel(two, "latent norm").launches, 2);
  EXPECT_EQ(kernel(one, "latent norm").launches, 1);
  EXPECT_EQ(kernel(two, "latent norm").read, kernel(one, "latent norm").read);
  EXPECT_EQ(kernel(two, "query latent down").matrix_flops +
                kernel(two, "key-value latent down").matrix_flops,
            kernel(one, "latent down").matrix_flops);
}

TEST(LatentTraining, AddsUpTheGradientsOfTheInputOfBothProducts) {
  for (const std::int64_t query_latent : {24, 0}) {
    const LlmConfig model = small_latent(query_latent);
    const StepList list = backward(model, work_of({}));
    EXPECT_EQ(kernel(list, "latent input gradient add").read.base(), kTokens * 64 * 2 * kElement);
    EXPECT_EQ(kernel(list, "latent gradient copy").written.base(), kTokens * (16 + 4) * kElement);
    const RankWork joined = work_of(with(&TrainingSoftware::latent_projections, Fusion::kFused));
    EXPECT_EQ(find(backward(model, joined), "latent input gradient add"), nullptr);
  }
}

// Queries: 4 columns of 4 heads are read and written. Keys and values: 4 x (8 + 8) from the product
// and the shared 4 are read, 4 x (12 + 8) written; backwards the other way.
TEST(LatentTraining, FusedRotaryTouchesRotatedQueriesAndWritesKeysAndValuesApart) {
  const RankWork fused = work_of(with(&TrainingSoftware::latent_rotary, Fusion::kFused));
  const StepList list = forward(small_latent(), fused), back = backward(small_latent(), fused);
  EXPECT_EQ(kernel(list, "rotary").read.base(), kTokens * 16 * kElement);
  EXPECT_EQ(kernel(list, "rotary").written.base(), kTokens * 16 * kElement);
  EXPECT_EQ(kernel(list, "key-value rotary").read.base(), kTokens * (64 + 4) * kElement);
  EXPECT_EQ(kernel(list, "key-value rotary").written.base(), kTokens * 80 * kElement);
  EXPECT_EQ(kernel(back, "key-value rotary backward").read.base(), kTokens * 80 * kElement);
  EXPECT_EQ(kernel(back, "key-value rotary backward").written.base(),
            kTokens * (64 + 4) * kElement);
}

// Copies: queries 4 x 12; keys 4 x 8 and the shared 4 to 4 x 12, values 4 x 8. The rotation itself
// reads 7.5 and writes 6.5 times 4 x 4 of queries, and 4 of keys.
TEST(LatentTraining, RotaryByItselfCopiesQueriesKeysAndValues) {
  const StepList list = forward(small_latent(), work_of({}));
  const StepList back = backward(small_latent(), work_of({}));
  EXPECT_EQ(kernel(list, "rotary").read.base(), kTokens * 16 * 7.5 * kElement);
  EXPECT_EQ(kernel(list, "rotary").launches, 13);
  EXPECT_EQ(kernel(list, "key rotary").written.base(), kTokens * 4 * 6.5 * kElement);
  EXPECT_EQ(kernel(list, "query copy").written.base(), kTokens * 48 * kElement);
  EXPECT_EQ(kernel(list, "key-value copy").read.base(), kTokens * (32 + 4 + 32) * kElement);
  EXPECT_EQ(kernel(list, "key-value copy").written.base(), kTokens * (48 + 32) * kElement);
  EXPECT_EQ(kernel(back, "rotary key sum").read.base(), kTokens * 16 * kElement);
  EXPECT_EQ(kernel(back, "key-value copy backward").written.base(), kTokens * 64 * kElement);
}

TEST(LatentTraining, CastsTheInputOfEachProductOfNarrowOperands) {
  TrainingSoftware software;
  software.fp8_scaling.value = NarrowScaling::kBlocks;
  const StepList list = forward(small_latent(), work_of(software, Precision::kFp8));
  const StepList back = backward(small_latent(), work_of(software, Precision::kFp8));
  // 16 bits are read; a row-wise and a column-wise copy of 8 bits are written.
  for (const char* name : {"query latent down", "key-value latent down"}) {
    EXPECT_EQ(kernel(list, name + std::string(" input cast")).read.base(), kTokens * 64 * 2);
    EXPECT_EQ(kernel(list, name + std::string(" input cast")).written.base(), kTokens * 64 * 2);
  }
  EXPECT_EQ(kernel(list, "key-value up input cast").read.base(), kTokens * 16 * 2);
  EXPECT_EQ(kernel(back, "key-value latent down gradient cast").read.base(), kTokens * 20 * 2);
}

TEST(SharedExperts, OfNarrowProductsHaveCastsAsOtherMatricesHave) {
  TrainingSoftware software;
  software.fp8_scaling.value = NarrowScaling::kBlocks;
  const RankWork work = work_of(software, Precision::kFp8);
  const StepList list = forward(small_moe(1), work), back = backward(small_moe(1), work);
  EXPECT_EQ(kernel(list, "shared expert up input cast").read.base(), kTokens * 64 * 2);
  EXPECT_EQ(kernel(list, "shared expert down input cast").read.base(), kTokens * 32 * 2);
  EXPECT_EQ(kernel(back, "shared expert down gradient cast").read.base(), kTokens * 64 * 2);
  EXPECT_EQ(kernel(back, "shared expert up gradient cast").read.base(), kTokens * 2 * 32 * 2);
  EXPECT_EQ(find(list, "router input cast"), nullptr);
  EXPECT_EQ(find(forward(small_moe(1), work_of(software)), "shared expert up input cast"), nullptr);
}

/// Whether there is an all-reduce of a largest value, behind the pass that finds it.
bool reduces_largest(const StepList& list, const std::string& operand) {
  const auto& steps = list.steps();
  for (std::size_t i = 1; i < steps.size(); ++i) {
    if (steps[i].name() != operand + " largest all-reduce") continue;
    EXPECT_EQ(steps[i].collective()->bytes.base(), 4);
    EXPECT_EQ(steps[i - 1].name(), operand + " largest");
    return true;
  }
  return false;
}

TEST(Casts, OfSharesThatAreGatheredScaleThemAlike) {
  TrainingSoftware software;
  software.fp8_scaling.value = NarrowScaling::kCurrent;
  RankWork work = work_of(software, Precision::kFp8);
  work.split.tp = 2;
  EXPECT_FALSE(reduces_largest(forward(small_llama(1), work), "qkv input"));
  work.split.sp = true;
  const StepList list = forward(small_llama(1), work), back = backward(small_llama(1), work);
  EXPECT_TRUE(reduces_largest(list, "qkv input"));
  EXPECT_TRUE(reduces_largest(list, "gate-up input"));
  EXPECT_TRUE(reduces_largest(back, "down gradient"));
  // What a rank has whole it scales by itself.
  EXPECT_FALSE(reduces_largest(list, "down input"));
  EXPECT_FALSE(reduces_largest(back, "qkv gradient"));
  software.fp8_scaling.value = NarrowScaling::kBlocks;
  work.software = std::make_shared<const TrainingSoftware>(software);
  EXPECT_FALSE(reduces_largest(forward(small_llama(1), work), "qkv input"));
}

TEST(Sinks, OfTrainingAreALogitOfEachHead) {
  LlmConfig plain = small_llama(1), sinks = plain;
  sinks.attention.sinks = true;
  const RankWork work = work_of({});
  const auto more = [&](StepList (*pass)(const LlmConfig&, const RankWork&), const char* name) {
    const StepList with_sinks = pass(sinks, work), without = pass(plain, work);
    Kernel difference = kernel(with_sinks, name);
    difference.read -= kernel(without, name).read;
    difference.written -= kernel(without, name).written;
    difference.exponentials -= kernel(without, name).exponentials;
    return difference;
  };
  const Kernel ahead = more(forward, "attention"), back = more(backward, "attention backward");
  // 8 heads of 8 queries.
  EXPECT_EQ(ahead.exponentials.base(), 64);
  EXPECT_EQ(ahead.read.base(), 8 * 4);
  EXPECT_EQ(ahead.written.base(), 0);
  EXPECT_EQ(back.read.base(), 8 * 4 + 64 * 2 * 4);
  EXPECT_EQ(back.written.base(), 8 * 4);
}

}  // namespace
}  // namespace orrery::latent_training_test
