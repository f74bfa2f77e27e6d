// SPDX-License-Identifier: Apache-2.0
// Training of mixers whose tokens choose what they see, by hand: DeepSeek-V3.2's sparse stage
// (arXiv 2512.02556, section 2.1.1), MiniMax-M3, DeepSeek-V4; Kimi delta attention; and of what
// connects their layers.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sim/config/diagnostics.h"
#include "tests/unit/workloads/balanced_tensors.h"
#include "tests/unit/workloads/sparse_models.h"
#include "tests/unit/workloads/step_kernels.h"
#include "workloads/layers/layers.h"
#include "workloads/software/training_software.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/training/training.h"

namespace orrery::sparse_training_test {
namespace {

using test::kernel;

constexpr double kTokens = 2 * 200;  // two sequences of 200 tokens

/// Pairs of a token and one that it sees, and of a token and one of `most` that it attends to.
double pairs(double tokens) { return tokens * (tokens + 1) / 2; }
double chosen_of(double tokens, double most) { return pairs(most) + (tokens - most) * most; }

RankWork training_work(int tp = 1, std::int64_t tokens = 200) {
  RankWork work;
  work.batch.sequences = 2;
  work.batch.query = work.batch.context = tokens;
  work.split.tp = tp;
  work.split.sp = tp > 1;
  return work;
}

double matrix_flops(const StepList& list) {
  double sum = 0;
  for (const Step& step : list.steps())
    if (step.kernel()) sum += step.kernel()->matrix_flops.base();
  return sum;
}

double kept(const LlmConfig& model, std::size_t layer, const RankWork& work) {
  return layer_activation_bytes(model, model.layers[layer], work).base();
}

int collectives(const StepList& list, TransferKind kind) {
  return static_cast<int>(
      std::count_if(list.steps().begin(), list.steps().end(), [kind](const Step& step) {
        return step.collective() != nullptr && step.collective()->kind == kind;
      }));
}

/// The mixer alone.
LlmConfig without_mlp(LlmConfig model) {
  for (LayerConfig& layer : model.layers) layer.feeds = false;
  return model;
}

// Of 200 tokens the first hundred attend to all that they see, the others to 100.
const double kPairs = 2 * pairs(200);            // 40,200
const double kChosen = 2 * chosen_of(200, 100);  // 30,100
constexpr double kIndexer = 24 * 64 + 64 * 16 + 64 * 4;
// Down to latents and a rotary key, queries up, absorption, values up, output.
constexpr double kMatrices = 64 * 64 + 24 * 192 + 8 * 16 * 32 + 8 * 32 * 16 + 128 * 64;

TEST(SparseTraining, ForwardScoresAllPairsAndAttendsToTheChosen) {
  const LlmConfig model = without_mlp(small_sparse());
  const StepList steps = layer_forward(model, model.layers[0], training_work());
  EXPECT_DOUBLE_EQ(matrix_flops(steps), 2 * kTokens * (kMatrices + kIndexer) + 2 * kPairs * 4 * 16 +
                                            2 * kChosen * 8 * (40 + 32));
  // Places and softmax scores of all that was chosen; the scores themselves stay on chip.
  EXPECT_EQ(kernel(steps, "index choice").written.base(), kChosen * 8);
  EXPECT_EQ(kernel(steps, "index choice").precision, Precision::kBf16);
  // Results and fp32 sums of rows.
  EXPECT_EQ(kernel(steps, "attention").written.base(), kTokens * 8 * (32 * 2 + 4));
}

// Five products of attention, the scores of heads again for what the indexer learns, three products
// of its gradient; its matrices have gradients of weights alone.
TEST(SparseTraining, BackwardHasFiveProductsAndThoseOfTheIndexer) {
  const LlmConfig model = without_mlp(small_sparse());
  const StepList steps = layer_backward(model, model.layers[0], training_work());
  const double attention = 2 * kChosen * 8 * (3 * 40 + 2 * 32);
  EXPECT_DOUBLE_EQ(kernel(steps, "attention backward").matrix_flops.base(), attention);
  EXPECT_DOUBLE_EQ(kernel(steps, "index target").matrix_flops.base(), 2 * kChosen * 8 * 40);
  EXPECT_DOUBLE_EQ(kernel(steps, "index gradient").matrix_flops.base(), 3 * 2 * kChosen * 4 * 16);
  EXPECT_DOUBLE_EQ(matrix_flops(steps), 2 * kTokens * (2 * kMatrices + kIndexer) + attention +
                                            2 * kChosen * (8 * 40 + 3 * 4 * 16));
  const LlmConfig shared = without_mlp(small_sparse());
  EXPECT_DOUBLE_EQ(matrix_flops(layer_backward(shared, shared.layers[1], training_work())),
                   2 * kTokens * 2 * kMatrices + attention);
}

TEST(SparseTraining, KeepsWhatAttentionAndTheIndexerRead) {
  const LlmConfig model = without_mlp(small_sparse());
  // Inputs of norm and first product; latents in front of their norm, those of queries behind it;
  // queries before and in the latent space, latent keys, results in it and behind values; sums.
  const double columns = 2 * 64 + 64 + 24 + 8 * 16 + 8 * 40 + 40 + 8 * 32 + 8 * 16;
  const double shared = kTokens * (2 * columns + 4 * 8);
  EXPECT_EQ(kept(model, 1, training_work()), shared);
  // Index keys in front of their norm; queries, keys and weights; places and scores.
  const double selection = kChosen * 8;
  EXPECT_EQ(kept(model, 0, training_work()),
            shared + kTokens * 2 * (16 + 4 * 16 + 16 + 4) + selection);
  // Layers that share a selection need it before it could be made again.
  RankWork again = training_work();
  again.passes.recompute = Recompute::kFull;
  EXPECT_EQ(kept(model, 0, again), kTokens * 2 * 64 + selection);
  EXPECT_EQ(kept(model, 1, again), kTokens * 2 * 64);
}

// Attention computed again: results in the latent space are not kept; up-projections too: queries.
TEST(SparseTraining, PartsComputedAgainAreNotKept) {
  const LlmConfig model = without_mlp(small_sparse());
  const auto recomputed = [&](RecomputeModule module) {
    RankWork work = training_work();
    work.passes.recompute = Recompute::kSelective;
    work.passes.modules = {};
    work.passes.modules[static_cast<std::size_t>(module)] = true;
    return work;
  };
  const double all = kept(model, 1, training_work());
  EXPECT_EQ(all - kept(model, 1, recomputed(RecomputeModule::kCoreAttn)), kTokens * 2 * 8 * 32);
  EXPECT_EQ(all - kept(model, 1, recomputed(RecomputeModule::kMlaUpProj)),
            kTokens * 2 * 8 * (16 + 40));
  const StepList steps =
      layer_backward(model, model.layers[1], recomputed(RecomputeModule::kCoreAttn));
  EXPECT_EQ(kernel(steps, "attention").matrix_flops.base(), 2 * kChosen * 8 * (40 + 32));
}

// The indexer is whole on every rank: its inputs are gathered, and what its heads learn is added up
// over the ranks' heads of attention.
TEST(SparseTraining, TensorRanksGatherTheIndexersInputAndAddUpItsTarget) {
  const LlmConfig model = without_mlp(small_sparse());
  const auto ranks = [&](std::size_t layer) {
    const StepList forward = layer_forward(model, model.layers[layer], training_work(2));
    const StepList backward = layer_backward(model, model.layers[layer], training_work(2));
    return std::pair{collectives(forward, TransferKind::kAllGather),
                     collectives(backward, TransferKind::kAllReduce)};
  };
  EXPECT_EQ(ranks(0).first - ranks(1).first, 1);
  EXPECT_EQ(ranks(0).second - ranks(1).second, 1);
}

// Two ranks have half of the pairs each and the keys of all, which they gather; gradients of keys
// are reduced and scattered, of latents and of the indexer.
TEST(SparseTraining, RanksThatShareSequencesGatherLatentsAndIndexKeys) {
  const LlmConfig model = without_mlp(small_sparse());
  RankWork half = training_work(1, 100);
  half.split.context = {.ranks = 2, .heads = 1, .gathers = true};
  const StepList forward = layer_forward(model, model.layers[0], half);
  const StepList backward = layer_backward(model, model.layers[0], half);
  EXPECT_EQ(kernel(forward, "index choice").matrix_flops.base(), 2 * kPairs / 2 * 4 * 16);
  EXPECT_EQ(kernel(forward, "attention").matrix_flops.base(), 2 * kChosen / 2 * 8 * (40 + 32));
  EXPECT_EQ(kernel(backward, "attention backward").matrix_flops.base(),
            2 * kChosen / 2 * 8 * (3 * 40 + 2 * 32));
  double gathered = 0, scattered = 0;
  for (const StepList* list : {&forward, &backward}) {
    for (const Step& step : list->steps()) {
      if (step.collective() == nullptr) continue;
      EXPECT_EQ(step.collective()->scope, Scope::kContext);
      const bool gathers = step.collective()->kind == TransferKind::kAllGather;
      (gathers ? gathered : scattered) += step.collective()->bytes.base();
    }
  }
  EXPECT_EQ(gathered, kTokens * 2 * (40 + 16));
  EXPECT_EQ(scattered, kTokens * 2 * (40 + 16));
  // Their own rows of everything but keys, which they keep of both.
  EXPECT_EQ(kept(model, 1, half), kept(model, 1, training_work()) / 2 + kTokens / 2 * 2 * 40);
}

TEST(SparseTraining, SharesSequencesByGathersAlone) {
  TrainingConfig config;
  config.parallel.cp = 2;
  config.global_batch = 2;
  config.sequence = 200;
  EXPECT_THROW(build_training(small_sparse(), config, true), config::KeyError);
  auto software = std::make_shared<TrainingSoftware>(*config.software);
  software->cp_comm_type.value = ContextExchange::kAllGather;
  config.software = software;
  EXPECT_TRUE(verify_tensors(build_training(small_sparse(), config, true).program).empty());
}

const std::vector<ParallelConfig> kPlans = {ParallelConfig{},
                                            ParallelConfig{.tp = 2, .sp = true, .dp = 2},
                                            ParallelConfig{.tp = 2, .sp = true, .pp = 2, .dp = 2}};

LlmConfig repeated(LlmConfig model, std::size_t times) {
  const std::vector<LayerConfig> once = model.layers;
  for (std::size_t i = 1; i < times; ++i)
    model.layers.insert(model.layers.end(), once.begin(), once.end());
  return model;
}

TEST(SparseTraining, TensorsOfStepsAreMadeUsedAndFreed) {
  test::expect_balanced_tensors(repeated(small_sparse(), 2), 200, kPlans);
  test::expect_balanced_tensors(repeated(small_block_sparse(), 2), 200, kPlans);
  test::expect_balanced_tensors(repeated(small_kimi(), 4), 128, kPlans);
  test::expect_balanced_tensors(repeated(small_compressed(), 2), 200, kPlans);
}

// 48 of 200 keys in blocks of 16; a query of 16 columns for each of 4 groups and one key.
TEST(BlockSparseTraining, HeadsOfAGroupTeachItsIndexQuery) {
  const LlmConfig model = without_mlp(small_block_sparse());
  const StepList forward = layer_forward(model, model.layers[1], training_work());
  const StepList backward = layer_backward(model, model.layers[1], training_work());
  const double chosen = 2 * chosen_of(200, 48), index = 64 * 5 * 16;
  const double matrices = 64 * (8 + 2 * 4) * 8 + 64 * 64;
  EXPECT_DOUBLE_EQ(matrix_flops(forward),
                   2 * kTokens * (matrices + index) + 2 * kPairs * 4 * 16 + 2 * chosen * 8 * 16);
  EXPECT_DOUBLE_EQ(matrix_flops(backward), 2 * kTokens * (2 * matrices + index) +
                                               2 * chosen * 8 * (5 * 8) + 2 * chosen * 8 * 8 +
                                               3 * 2 * chosen * 4 * 16);
  // Beside queries, keys and values, results and sums: index queries and keys, places of blocks.
  EXPECT_EQ(kept(model, 1, training_work()) - kept(model, 0, training_work()),
            kTokens * 2 * 5 * 16 + chosen / 16 * 4 * 4);
}

// 2 sequences of 128 tokens, 4 heads of 16 columns of keys and values, chunks of 64.
TEST(KimiDeltaTraining, KeepsWhatTheRuleReads) {
  const LlmConfig model = without_mlp(small_kimi());
  const double tokens = 256, keys = 64, values = 64, heads = 4;
  const double columns = 2 * 64 + 16 + 3 * 64     // inputs, narrow columns, convolution
                         + keys + heads + values  // decays and steps, gate
                         + 2 * keys + values +
                         2 * heads * 64  // keys of length 1, scores, triangles
                         + 2 * values;   // result and what the last product reads
  EXPECT_EQ(kept(model, 0, training_work(1, 128)), tokens * (2 * columns + 4 * 4 * heads));
}

// A token and head, with K = V = 16 and C = 64: w and u, and states again; scores and values
// 4 C V; states 6 K V; keys 6 K V + 4 C V + 4 C K + 4 C C; four products of blocks below the
// diagonal, 6 of 16.
TEST(KimiDeltaTraining, BackwardComputesStatesAgain) {
  const LlmConfig model = without_mlp(small_kimi());
  const double tokens = 256, k = 16, v = 16, c = 64;
  const double matrices = 64 * (4 * 64 + 4 + 16) + 16 * 64 + 64 * 64;
  const double again = 2 * c * (k + v) + 4 * k * v;
  const double gradients =
      4 * c * v + 12 * k * v + 4 * c * v + 4 * c * k + 4 * c * c + 4 * 2 * c * k * 6 / 16;
  const StepList steps = layer_backward(model, model.layers[0], training_work(1, 128));
  EXPECT_DOUBLE_EQ(matrix_flops(steps), tokens * (2 * 2 * matrices + 4 * (again + gradients)));
}

// Windows of 10 keys; all entries of 8 tokens; 6 entries of 2.
TEST(CompressedTraining, AttendsToTheWindowAndItsEntries) {
  const LlmConfig model = without_mlp(small_compressed());
  const double window = 2 * chosen_of(200, 10);
  const double entries[] = {0, kPairs / 8, 2 * chosen_of(200, 12) / 2};
  const double projected[] = {0, 2 * 32, 4 * (32 + 16) + 4};
  const double detached[] = {0, 0, 64.0 * (4 * 16 + 4) + 24 * 4 * 16};
  for (std::size_t layer = 0; layer < 3; ++layer) {
    const double scored = layer == 2 ? kPairs / 2 * 4 * 16 : 0;
    const double chosen = window + entries[layer];
    const double shared = 64 * (24 + 32) + 24 * 256 + 256 * 12 + 48 * 64;
    const double whole = shared + 64 * projected[layer] + (layer == 2 ? 24 * 4 * 16 : 0);
    const StepList forward = layer_forward(model, model.layers[layer], training_work());
    EXPECT_DOUBLE_EQ(matrix_flops(forward), 2 * kTokens * whole + 2 * scored + 2 * chosen * 8 * 64);
    const double learns = layer == 2 ? 2 * entries[2] * (8 * 32 + 3 * 4 * 16) : 0;
    const StepList backward = layer_backward(model, model.layers[layer], training_work());
    EXPECT_DOUBLE_EQ(matrix_flops(backward), 2 * kTokens * (2 * whole - detached[layer]) +
                                                 2 * chosen * 8 * (5 * 32) + learns);
  }
}

LlmConfig four_streams() {
  LlmConfig model = small_llama(4);
  model.residual_streams = 4;
  model.sinkhorn_steps = 20;
  return model;
}

// Four streams in front of each half in the place of one, and what each half gives.
TEST(HyperConnectionTraining, KeepsStreamsAndWhatHalvesGive) {
  const double row = 2 * 64;
  EXPECT_EQ(kept(four_streams(), 0, training_work()) - kept(small_llama(1), 0, training_work()),
            kTokens * 2 * (4 + 1) * row);
  RankWork again = training_work();
  again.passes.recompute = Recompute::kFull;
  EXPECT_EQ(kept(four_streams(), 0, again), kTokens * 4 * row);
}

TEST(HyperConnectionTraining, GradientsReadStreamsAndTheirGradients) {
  const LlmConfig model = four_streams();
  const StepList steps = layer_backward(model, model.layers[0], training_work());
  const double row = kTokens * 64 * 2;
  EXPECT_EQ(kernel(steps, "hyper connection out backward").read.base(), (4 + 4 + 1) * row);
  EXPECT_EQ(kernel(steps, "hyper connection out backward").written.base(), (4 + 1) * row);
  EXPECT_EQ(kernel(steps, "hyper connection in backward").written.base(), 4 * row);
  EXPECT_EQ(kernel(steps, "hyper connection weights dgrad").matrix_flops.base(),
            2 * kTokens * 24 * 256);
  test::expect_balanced_tensors(model, 16, kPlans);
}

/// Blocks of two layers.
LlmConfig residual_blocks() {
  LlmConfig model = small_llama(4);
  model.residual_block = 2;
  for (std::size_t i = 0; i < 4; ++i) {
    model.layers[i].sources = 2 + static_cast<std::int64_t>(i) / 2;
    model.layers[i].begins_block = i % 2 == 0;
  }
  return model;
}

// Each half keeps its mixture and the sum of its block so far; the first layer of a block keeps
// what it is the first to read, the first of a rank all that it reads.
TEST(AttentionResidualTraining, KeepsSumsOfBlocksAndTheOutputsOfThoseBefore) {
  const double plain = kept(small_llama(1), 0, training_work());
  const double row = kTokens * 2 * 64;
  const LlmConfig model = residual_blocks();
  EXPECT_EQ(kept(model, 1, training_work()), plain + 2 * row);
  EXPECT_EQ(kept(model, 2, training_work()), plain + 3 * row);
  RankWork first = training_work();
  first.passes.keeps_sources = true;
  EXPECT_EQ(kept(model, 3, first), plain + 4 * row);
  test::expect_balanced_tensors(model, 16, kPlans);
}

TEST(AttentionResidualTraining, GradientsOfEachSourceAreAddedUp) {
  const LlmConfig model = residual_blocks();
  const StepList steps = layer_backward(model, model.layers[3], training_work());
  const double row = kTokens * 64 * 2;
  EXPECT_EQ(kernel(steps, "residual mixture backward").read.base(), (2 * 3 + 1) * row);
  EXPECT_EQ(kernel(steps, "residual mixture backward").written.base(), 3 * row);
}

}  // namespace
}  // namespace orrery::sparse_training_test
