// SPDX-License-Identifier: Apache-2.0
// Mamba-2 layers by hand: arXiv 2405.21060, and the kernels of mamba_ssm (ops/triton/ssd_*.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "sim/config/diagnostics.h"
#include "tests/unit/workloads/balanced_tensors.h"
#include "tests/unit/workloads/example_models.h"
#include "tests/unit/workloads/step_kernels.h"
#include "workloads/layers/closed_forms.h"
#include "workloads/layers/layers.h"
#include "workloads/layers/rank_parameters.h"
#include "workloads/layers/recurrent/mamba_kernels.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/inference/inference.h"
#include "workloads/steps/training/training.h"

namespace orrery::mamba_test {
namespace {

using test::kernel;

constexpr std::int64_t kHidden = 64, kHeads = 8, kHeadDim = 16, kState = 32, kGroups = 4, kTaps = 4;
constexpr std::int64_t kInner = kHeads * kHeadDim;                 // 128
constexpr std::int64_t kChannels = kInner + 2 * kGroups * kState;  // 384
constexpr std::int64_t kProjected = kInner + kChannels + kHeads;   // 520

/// Mamba, experts, attention and an MLP in layers of their own: "ME*-ME*-".
LlmConfig small_hybrid() {
  LlmConfig model = small_moe(0);
  model.name = "small hybrid";
  model.mlp.gated = false;
  model.moe.latent = 16;
  model.mamba = {.heads = kHeads,
                 .head_dim = kHeadDim,
                 .state = kState,
                 .groups = kGroups,
                 .conv_kernel = kTaps,
                 .chunk = 16};
  for (int i = 0; i < 2; ++i) {
    model.layers.push_back({.mixer = MixerKind::kMamba2, .feeds = false});
    model.layers.push_back({.moe = true, .mixer = MixerKind::kNone});
    model.layers.push_back({.feeds = false});
    model.layers.push_back({.mixer = MixerKind::kNone});
  }
  return model;
}

RankWork training_work(std::int64_t sequences, std::int64_t sequence, int tp = 1) {
  RankWork work;
  work.batch.sequences = sequences;
  work.batch.query = work.batch.context = sequence;
  work.split.tp = tp;
  work.split.sp = tp > 1;
  return work;
}

RankWork inference_work(Phase phase, std::int64_t sequences, std::int64_t query,
                        std::int64_t context) {
  RankWork work;
  work.batch.phase = phase;
  work.batch.sequences = sequences;
  work.batch.query = query;
  work.batch.context = context;
  return work;
}

double matrix_flops(const StepList& list) {
  double sum = 0;
  for (const Step& step : list.steps())
    if (step.kernel()) sum += step.kernel()->matrix_flops.base();
  return sum;
}

// 3 sequences of 64 tokens: 192 tokens, 12 chunks of 16. A token of a chunk sees 8.5 of its tokens
// on average. States: 2 x 128 x 32 = 8,192 FLOPs a token. C B^T, whole squares by group:
// 2 x 4 x 16 x 32 = 4,096. Outputs: 8,192 of states and 2 x 128 x 8.5 = 2,176 of chunks.
constexpr double kTokens = 192, kSquares = 4096, kStates = 8192, kInside = 2176;

TEST(Mamba, ForwardFlopsAreThoseOfProjectionsStatesAndChunks) {
  const LlmConfig model = small_hybrid();
  for (const int tp : {1, 2, 4}) {
    const StepList steps = layer_forward(model, model.layers[0], training_work(3, 64, tp));
    const double matrices = 2.0 * kHidden * (kProjected + kInner);
    EXPECT_DOUBLE_EQ(tp * matrix_flops(steps),
                     kTokens * (matrices + kStates + kSquares + kStates + kInside));
  }
}

// The backward pass computes states and squares again. Gradients of states, B and C take what the
// states took, that of x the same and what is inside of chunks, that of C B^T and of decays what is
// inside; those of B and C through the squares each what the squares took.
TEST(Mamba, BackwardComputesStatesAgain) {
  const LlmConfig model = small_hybrid();
  const StepList steps = layer_backward(model, model.layers[0], training_work(3, 64));
  const double matrices = 2 * 2.0 * kHidden * (kProjected + kInner);
  const double again = kStates + kSquares;
  const double gradients = 4 * kStates + 3 * kInside + 2 * kSquares;
  EXPECT_DOUBLE_EQ(matrix_flops(steps), kTokens * (matrices + again + gradients));
}

TEST(Mamba, KernelsReadAndWriteEachOperandOnce) {
  const LlmConfig model = small_hybrid();
  const StepList steps = layer_forward(model, model.layers[0], training_work(3, 64));
  // x, B and C of 2 bytes in and out.
  EXPECT_EQ(kernel(steps, "mamba convolution").read.base(), kTokens * kChannels * 2);
  EXPECT_EQ(kernel(steps, "mamba convolution").written.base(), kTokens * kChannels * 2);
  // x, B, steps and sums of decays in fp32; states of 12 chunks in fp32.
  const double by_head = kTokens * kHeads * 4;
  EXPECT_EQ(kernel(steps, "mamba chunk state").read.base(),
            kTokens * (kInner + kGroups * kState) * 2 + 2 * by_head);
  EXPECT_EQ(kernel(steps, "mamba chunk state").written.base(), 12 * kInner * kState * 4);
  EXPECT_EQ(kernel(steps, "mamba state passing").read.base(), 12 * kInner * kState * 4);
  EXPECT_EQ(kernel(steps, "mamba state passing").written.base(), 12 * kInner * kState * 2);
  // B and C; squares of 16 x 16 a group and chunk in fp32.
  EXPECT_EQ(kernel(steps, "mamba chunk products").read.base(), 2 * kTokens * kGroups * kState * 2);
  EXPECT_EQ(kernel(steps, "mamba chunk products").written.base(), 12 * kGroups * 16 * 16 * 4);
  EXPECT_EQ(kernel(steps, "mamba chunk scan").read.base(),
            kTokens * (2 * kInner + kGroups * kState) * 2 + 2 * by_head +
                12 * kGroups * 16 * 16 * 4 + 12 * kInner * kState * 2);
  // Outputs before and behind the gate.
  EXPECT_EQ(kernel(steps, "mamba chunk scan").written.base(), 2 * kTokens * kInner * 2);
  EXPECT_EQ(kernel(steps, "mamba group norm").read.base(), kTokens * kInner * 2);
  const StepList backward = layer_backward(model, model.layers[0], training_work(3, 64));
  // z, outputs and their gradients in, gradients of z and of ungated outputs out.
  EXPECT_EQ(kernel(backward, "mamba gate backward").read.base(), 3 * kTokens * kInner * 2);
  EXPECT_EQ(kernel(backward, "mamba gate backward").written.base(), 2 * kTokens * kInner * 2);
}

// Prompts go through vLLM's norm, which multiplies by the gate itself.
TEST(Mamba, PromptsMultiplyByTheGateInTheNorm) {
  const LlmConfig model = small_hybrid();
  const StepList steps =
      layer_forward(model, model.layers[0], inference_work(Phase::kPrefill, 3, 64, 64));
  EXPECT_EQ(kernel(steps, "mamba gated norm").read.base(), 2 * kTokens * kInner * 2);
  EXPECT_EQ(kernel(steps, "mamba chunk scan").written.base(), kTokens * kInner * 2);
}

// Megatron's tensors have the sequences inside of the tokens, mamba_ssm's the other way round: what
// is projected, the outputs and the gradient of what is projected are copied, where there is more
// than one sequence.
TEST(Mamba, SeveralSequencesAreTransposed) {
  const LlmConfig model = small_hybrid();
  const auto moved = [&](std::int64_t sequences) {
    double bytes = 0;
    for (const StepList& steps :
         {layer_forward(model, model.layers[0], training_work(sequences, 64)),
          layer_backward(model, model.layers[0], training_work(sequences, 64))}) {
      for (const Step& step : steps.steps())
        if (step.name().find("transposed") != std::string::npos)
          bytes += (step.kernel()->read + step.kernel()->written).base();
    }
    return bytes;
  };
  EXPECT_EQ(moved(1), 0);
  EXPECT_EQ(moved(3), kTokens * 2 * 2 * (2 * kProjected + kInner));
}

TEST(Mamba, SequencesThatFillNoChunkHaveShorterOnes) {
  const ScanShape s = scan_shape(small_hybrid().mamba, 1, 5, 9, 2);
  EXPECT_EQ(s.length, 9);
  EXPECT_EQ(s.chunks(), 5);
  EXPECT_EQ(scan_shape(small_hybrid().mamba, 1, 5, 17, 2).chunks(), 10);
}

TEST(Mamba, ADecodeReadsAndWritesItsStateWhateverTheContext) {
  const LlmConfig model = small_hybrid();
  const auto step = [&](std::int64_t context) {
    return layer_forward(model, model.layers[0], inference_work(Phase::kDecode, 7, 1, context));
  };
  const StepList steps = step(1000);
  // fp32 states; x, B, C and dt in, one value an element of a head out.
  const Kernel& update = kernel(steps, "mamba state update");
  EXPECT_EQ(update.read.base(),
            7 * (kInner * kState * 4 + (kInner + 2 * kGroups * kState + kHeads) * 2));
  EXPECT_EQ(update.written.base(), 7 * (kInner * kState * 4 + kInner * 2));
  // Three earlier inputs of each channel, and the new one.
  EXPECT_EQ(kernel(steps, "mamba convolution update").read.base(), 7 * kChannels * kTaps * 2);
  for (std::size_t i = 0; i < steps.steps().size(); ++i)
    EXPECT_EQ(*steps.steps()[i].kernel(), *step(100000).steps()[i].kernel());
}

TEST(Mamba, APromptLeavesItsLastStateAndAPieceReadsTheOneBefore) {
  const LlmConfig model = small_hybrid();
  const auto passing = [&](Phase phase, std::int64_t context) {
    return kernel(layer_forward(model, model.layers[0], inference_work(phase, 3, 64, context)),
                  "mamba state passing");
  };
  const double states = 3 * kInner * kState * 4;
  const Kernel training =
      kernel(layer_forward(model, model.layers[0], training_work(3, 64)), "mamba state passing");
  const Kernel whole = passing(Phase::kPrefill, 64), piece = passing(Phase::kPrefill, 128);
  EXPECT_EQ((whole.written - training.written).base(), states);
  EXPECT_EQ(whole.read, training.read);
  EXPECT_EQ((piece.read - whole.read).base(), states);
}

TEST(Mamba, WeightsOfARankAreItsShareOfAll) {
  const LlmConfig model = small_hybrid();
  // Projections; taps and bias of each channel, norm, and A, D and bias of dt by head.
  const std::int64_t mamba =
      kHidden * (kProjected + kInner) + kChannels * (kTaps + 1) + kInner + 3 * kHeads;
  const ParameterCount count = count_parameters(model);
  EXPECT_EQ(count.mamba_per_layer, mamba);
  const RankParameters whole = layer_parameters(model, model.layers[0], {});
  EXPECT_EQ(whole.total(), mamba + kHidden);
  EXPECT_EQ(whole.sixteen_bit, kChannels * (kTaps + 1) + kInner + 3 * kHeads + kHidden);
  EXPECT_EQ(4 * layer_parameters(model, model.layers[0], {.tp = 4, .sp = true}).split, mamba);
  // Each layer has one norm; experts of two matrices in a latent width of 16 that all share.
  const std::int64_t experts = 8 * 2 * 16 * 32 + 2 * kHidden * 32 + kHidden * 8 + 2 * kHidden * 16;
  EXPECT_EQ(count.moe_per_layer, experts);
  const std::int64_t attention = count.attention_per_layer, mlp = 2 * kHidden * 192;
  EXPECT_EQ(count.total,
            2 * (mamba + experts + attention + mlp) + 8 * kHidden + 2 * 96 * kHidden + kHidden);
  EXPECT_EQ(stage_parameters(model, {}, 0).total(), count.total);
}

// A forward pass leaves its input, what the projections read, what the first of them gives, and
// the output of the scan before and behind the gate, with an fp32 deviation by group of the norm;
// in 16 bits. All else is computed again.
TEST(Mamba, KeepsInputsOutputsOfTheScanAndWhatIsProjected) {
  const LlmConfig model = small_hybrid();
  const auto kept = [&](Recompute recompute, int tp) {
    RankWork work = training_work(3, 64, tp);
    work.passes.recompute = recompute;
    return layer_activation_bytes(model, model.layers[0], work).base();
  };
  const double columns = kHidden + kHidden + kProjected + 3 * kInner;
  EXPECT_EQ(kept(Recompute::kNone, 1), kTokens * (2 * columns + 4 * kGroups));
  EXPECT_EQ(2 * kept(Recompute::kNone, 2), kTokens * (2 * columns + 4 * kGroups));
  EXPECT_EQ(kept(Recompute::kFull, 1), kTokens * 2 * kHidden);
}

TEST(Mamba, TensorsOfHybridStepsAreMadeUsedAndFreed) {
  test::expect_balanced_tensors(
      small_hybrid(), 32,
      {ParallelConfig{}, ParallelConfig{.tp = 2, .sp = true, .pp = 2, .dp = 2, .ep = 2},
       ParallelConfig{.pp = 2, .vpp = 2}});
}

TEST(Mamba, HoldsAStateOfEverySequenceInPlaceOfACache) {
  const LlmConfig model = small_hybrid();
  const auto cache = [&](std::int64_t context, int tp) {
    InferenceConfig config;
    config.phase = Phase::kDecode;
    config.micro_batch = 5;
    config.kv_length = context;
    config.parallel.tp = config.parallel.ep = tp;
    return inference_memory(model, config)[0].kv_cache.base();
  };
  // fp32 states and three inputs of each channel; two layers of Mamba, two of attention with 4 KV
  // heads of 8.
  const double state = kInner * kState * 4 + kChannels * 3 * 2;
  const double token = 2 * 4 * 8 * 2;
  EXPECT_EQ(cache(99, 1), 5 * 2 * (state + 100 * token));
  EXPECT_EQ(cache(999, 1), 5 * 2 * (state + 1000 * token));
  EXPECT_EQ(2 * cache(99, 2), cache(99, 1));
}

TEST(Mamba, HeadsAndGroupsAreSplitWhole) {
  const LlmConfig model = small_hybrid();
  EXPECT_NO_THROW(require_divisible(model, {.tp = 4, .sp = true}));
  EXPECT_THROW(require_divisible(model, {.tp = 8, .sp = true}), config::KeyError);  // 4 groups
}

TEST(Mamba, ContextsDoNotMoveItsFlops) {
  LlmConfig model = small_hybrid();
  model.layers.resize(1);
  EXPECT_EQ(model_flops_per_token(model, 64, true).base(),
            model_flops_per_token(model, 6400, true).base());
  // 7 FLOPs an element of a state (Megatron-LM).
  EXPECT_EQ(model_flops_per_token(model, 64, true).base(),
            2.0 * (kHidden * (kProjected + kInner) + 96 * kHidden) + 7.0 * kInner * kState);
}

// In latent width: 2 of 8 experts, 16 columns to each and back; router and projections see the
// hidden state.
TEST(LatentExperts, AreSentAndMultipliedInTheirWidth) {
  const LlmConfig model = small_hybrid();
  RankWork work = training_work(2, 16);
  work.split.ep = 2;
  const StepList steps = layer_forward(model, model.layers[1], work);
  EXPECT_EQ(kernel(steps, "expert latent down").matrix_flops.base(), 2.0 * 32 * kHidden * 16);
  EXPECT_EQ(kernel(steps, "expert latent up").matrix_flops.base(), 2.0 * 32 * kHidden * 16);
  EXPECT_EQ(kernel(steps, "expert up").k, 16);
  EXPECT_EQ(kernel(steps, "expert down").n, 16);
  double sent = 0;
  for (const Step& step : steps.steps())
    if (step.collective() && step.name() == "combine") sent = step.collective()->bytes.base();
  EXPECT_EQ(sent, 32 * 2 * 16 * 2);
}

}  // namespace
}  // namespace orrery::mamba_test
