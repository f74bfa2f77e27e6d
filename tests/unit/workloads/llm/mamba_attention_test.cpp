// SPDX-License-Identifier: Apache-2.0
// Mamba-2 and attention beside each other are what each is alone, with one input.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/config/diagnostics.h"
#include "tests/unit/workloads/balanced_tensors.h"
#include "tests/unit/workloads/step_kernels.h"
#include "workloads/layers/layers.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/models/huggingface/huggingface.h"
#include "workloads/steps/figures/memory.h"

namespace orrery::mamba_attention_test {
namespace {

LlmConfig small_beside(bool norm) {
  return from_huggingface({{"model_type", "falcon_h1"},
                           {"hidden_size", 64},
                           {"num_hidden_layers", 4},
                           {"num_attention_heads", 8},
                           {"num_key_value_heads", 4},
                           {"intermediate_size", 128},
                           {"mamba_d_ssm", 128},
                           {"mamba_n_heads", 8},
                           {"mamba_d_state", 32},
                           {"mamba_n_groups", 4},
                           {"mamba_chunk_size", 16},
                           {"mamba_rms_norm", norm},
                           {"vocab_size", 512}},
                          "small");
}

LayerConfig layer_with(MixerKind mixer) {
  LayerConfig layer;
  layer.mixer = mixer;
  layer.feeds = false;
  return layer;
}

double all_flops(const StepList& list) {
  double sum = 0;
  for (const Step& step : list.steps())
    if (step.kernel()) sum += step.kernel()->matrix_flops.base();
  return sum;
}

RankWork beside_work(Phase phase, int tp) {
  RankWork work;
  work.batch.phase = phase;
  work.batch.sequences = 3;
  work.batch.query = work.batch.context = 64;
  work.split.tp = tp;
  work.split.sp = phase == Phase::kTraining && tp > 1;
  return work;
}

TEST(MambaAttention, HasTheProductsOfBoth) {
  for (const bool norm : {true, false}) {
    const LlmConfig model = small_beside(norm);
    for (const Phase phase : {Phase::kTraining, Phase::kPrefill}) {
      for (const int tp : {1, 2, 4}) {
        const RankWork work = beside_work(phase, tp);
        const auto forward = [&](MixerKind mixer) {
          return all_flops(layer_forward(model, layer_with(mixer), work));
        };
        EXPECT_DOUBLE_EQ(forward(MixerKind::kMambaAttention),
                         forward(MixerKind::kMamba2) + forward(MixerKind::kAttention));
        if (phase != Phase::kTraining) continue;
        const auto backward = [&](MixerKind mixer) {
          return all_flops(layer_backward(model, layer_with(mixer), work));
        };
        EXPECT_DOUBLE_EQ(backward(MixerKind::kMambaAttention),
                         backward(MixerKind::kMamba2) + backward(MixerKind::kAttention));
      }
    }
  }
}

// Input of the norm and what it gives, 192 tokens of 64 columns in 16 bits, are kept once.
TEST(MambaAttention, KeepsTheInputOfBothOnce) {
  const LlmConfig model = small_beside(true);
  const RankWork work = beside_work(Phase::kTraining, 1);
  const auto kept = [&](MixerKind mixer) {
    return layer_activation_bytes(model, layer_with(mixer), work).base();
  };
  EXPECT_DOUBLE_EQ(kept(MixerKind::kMambaAttention),
                   kept(MixerKind::kMamba2) + kept(MixerKind::kAttention) - 2 * 192.0 * 64 * 2);
}

TEST(MambaAttention, TensorsOfTrainingAreBalanced) {
  for (const bool norm : {true, false})
    test::expect_balanced_tensors(small_beside(norm), 64,
                                  {{}, {.tp = 2, .sp = true}, {.tp = 4, .pp = 2}});
}

TEST(MambaAttention, IsSplitByTheHeadsAndGroupsOfBoth) {
  const LlmConfig model = small_beside(true);  // 8 heads each, 4 groups
  const LayerConfig& layer = model.layers.front();
  EXPECT_NO_THROW(mixer_of(MixerKind::kMambaAttention).require_split(model, layer, 4));
  EXPECT_THROW(mixer_of(MixerKind::kMambaAttention).require_split(model, layer, 8),
               config::KeyError);
}

// One group of 32 is on every rank: B and C, their inputs and taps of four and a bias.
TEST(MambaAttention, AGroupAloneIsCopied) {
  LlmConfig model = small_beside(true);
  model.mamba.groups = 1;
  const LayerConfig layer = layer_with(MixerKind::kMamba2);
  const auto own = [&](int tp) {
    return mixer_of(MixerKind::kMamba2).weights(model, layer, tp).parameters().total();
  };
  EXPECT_EQ(4 * own(4) - own(1), 3 * 2 * 32 * (64 + 5));
  const auto held = [&](int tp) {
    return mixer_of(MixerKind::kMamba2).cache(model, layer, tp).state_bytes;
  };
  EXPECT_DOUBLE_EQ(4 * held(4) - held(1), 3 * 2 * 32 * 3 * 2.0);
  const StepList steps = layer_forward(model, layer, beside_work(Phase::kPrefill, 4));
  EXPECT_EQ(std::count_if(steps.steps().begin(), steps.steps().end(),
                          [](const Step& s) { return s.name() == "mamba norm all-reduce"; }),
            1);
}

// Without a norm the gate is a kernel of inference, and part of the scan in training.
TEST(MambaAttention, WithoutANormTheGateAloneFollowsTheScan) {
  const LlmConfig model = small_beside(false);
  const LayerConfig layer = layer_with(MixerKind::kMamba2);
  const StepList prompt = layer_forward(model, layer, beside_work(Phase::kPrefill, 1));
  EXPECT_EQ(test::kernel(prompt, "mamba gate").read.base(), 2 * 192.0 * 128 * 2);
  EXPECT_THROW(test::kernel(prompt, "mamba gated norm"), std::logic_error);
  const StepList training = layer_forward(model, layer, beside_work(Phase::kTraining, 1));
  EXPECT_THROW(test::kernel(training, "mamba group norm"), std::logic_error);
}

}  // namespace
}  // namespace orrery::mamba_attention_test
