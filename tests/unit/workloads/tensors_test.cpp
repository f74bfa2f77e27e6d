// SPDX-License-Identifier: Apache-2.0
// Memory as the sum of the tensors that steps make and free, against its closed forms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/graph/memory_profile.h"
#include "sim/graph/verify.h"
#include "tests/unit/workloads/activation_formulas.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/layers.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/training/training.h"

namespace orrery::tensors_test {
namespace {

using ::testing::IsEmpty;

constexpr TensorRole kKept = TensorRole::kActivation;

/// small_llama with norms behind its blocks and of its heads, as gemma has them.
LlmConfig normed_llama(std::int64_t layers) {
  LlmConfig model = small_llama(layers);
  model.norms_per_layer = 4;
  model.attention.qk_norm = true;
  return model;
}

/// small_moe with latent attention and a first layer without experts, as DeepSeek's.
LlmConfig latent_moe(std::int64_t layers) {
  LlmConfig model = small_moe(layers);
  model.attention.kind = AttentionKind::kLatent;
  model.attention.q_lora_rank = 24;
  model.attention.kv_lora_rank = 16;
  model.attention.qk_nope_head_dim = 8;
  model.attention.qk_rope_head_dim = 4;
  model.attention.v_head_dim = 8;
  model.layers.front().moe = false;
  return model;
}

struct Case {
  LlmConfig model;
  TrainingConfig config;
};

std::string text_of(const Case& c) {
  const ParallelConfig& p = c.config.parallel;
  return c.model.name + " norms " + std::to_string(c.model.norms_per_layer) + " pp " +
         std::to_string(p.pp) + " vpp " + std::to_string(p.vpp) + " tp " + std::to_string(p.tp) +
         " sp " + std::to_string(p.sp) + " ep " + std::to_string(p.ep) + " etp " +
         std::to_string(p.etp) + " recompute " + to_string(c.config.recompute.granularity) +
         " flash " + std::to_string(c.config.flash_attention) + " dropout " +
         std::to_string(c.config.dropout) + " micro-batches " +
         std::to_string(c.config.micro_batches());
}

std::vector<ParallelConfig> plans_of(const LlmConfig& model) {
  std::vector<ParallelConfig> plans = {{}, {.pp = 4}, {.tp = 2, .sp = true, .pp = 4, .vpp = 2}};
  if (!model.has_moe()) plans.push_back({.tp = 2, .pp = 2});
  if (model.has_moe()) {
    plans.push_back({.pp = 2, .dp = 4, .ep = 4});
    plans.push_back({.dp = 4, .ep = 2, .etp = 2});
    plans.push_back({.dp = 2, .etp = 2});
  }
  return plans;
}

/// What changes kept tensors, of each kind one after the other.
std::vector<TrainingConfig> settings_of(const ParallelConfig& parallel) {
  std::vector<TrainingConfig> all;
  for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    for (const int groups : {1, 4}) {
      for (const bool flash : {false, true}) {
        TrainingConfig config;
        config.parallel = parallel;
        config.micro_batch = 2;
        config.global_batch = std::int64_t{2} * groups * parallel.pp * parallel.dp;
        config.sequence = 16;
        config.recompute = recompute;
        config.flash_attention = flash;
        config.dropout = !flash;
        all.push_back(config);
      }
    }
  }
  TrainingConfig narrow = all.back();
  narrow.precision = Precision::kFp8;
  narrow.narrow_inputs = true;
  all.push_back(narrow);
  narrow.flash_attention = false;
  all.push_back(narrow);
  return all;
}

template <class Visit>
void each_case(Visit visit) {
  for (const LlmConfig& model : {small_llama(8), normed_llama(8), small_moe(8), latent_moe(8)}) {
    for (const ParallelConfig& parallel : plans_of(model)) {
      for (const TrainingConfig& config : settings_of(parallel)) {
        const Case c{model, config};
        SCOPED_TRACE(text_of(c));
        visit(c);
      }
    }
  }
}

/// The one place where the figures are more than a sum of tensors: a layer that is recomputed whole
/// has its input once, and the closed form counts it as kept and as recomputed.
double counted_twice(const Case& c) {
  const RankWork work = rank_work(c.config);
  return c.config.recompute.granularity == Recompute::kFull
             ? static_cast<double>(work.row_tokens() * c.model.hidden) *
                   activation_bytes(work.formats.precision)
             : 0;
}

/// Gradients of activations in the layer of a stage that has most.
double most_flow(const Case& c) {
  const RankWork work = rank_work(c.config);
  double most = 0;
  for (const LayerConfig& layer : c.model.layers)
    most = std::max(most, gradient_flow({c.model, layer, work}).base());
  return most;
}

// Figures are those of one time, at which gradients of activations may be there too.
TEST(Tensors, OfAStageAreFullestBetweenItsProgramAndTheFormulas) {
  each_case([](const Case& c) {
    const std::vector<MemoryUse> stages = training_memory(c.model, c.config);
    const Program program = build_training(c.model, c.config, true).program;
    for (int stage = 0; stage < c.config.parallel.pp; ++stage) {
      const auto most = formulas::stage_activations(c.model, c.config, stage);
      const MemoryUse& use = stages[static_cast<std::size_t>(stage)];
      EXPECT_LE(use.activations.base(), most.kept) << "stage " << stage;
      EXPECT_LE(use.working.base(), most.working - counted_twice(c) + most_flow(c));
      EXPECT_LE(use.logits.base(), most.logits);
      const double at_once =
          memory_profile(program, program.roles[static_cast<std::size_t>(stage)]).peak().base();
      const double all = (use.activations + use.working + use.logits).base();
      EXPECT_GE(all, at_once) << "stage " << stage;
      EXPECT_LE(all, at_once + most_flow(c)) << "stage " << stage;
    }
  });
}

TEST(Tensors, OfAProgramHaveThePeaksOfTheFormulasInItsOwnOrder) {
  each_case([](const Case& c) {
    const Program program = build_training(c.model, c.config, true).program;
    EXPECT_THAT(verify_tensors(program), IsEmpty());
    for (int stage = 0; stage < c.config.parallel.pp; ++stage) {
      const auto expected = formulas::stage_activations(c.model, c.config, stage);
      const MemoryProfile profile =
          memory_profile(program, program.roles[static_cast<std::size_t>(stage)]);
      EXPECT_EQ(profile.peak(kKept).base(), expected.kept) << "stage " << stage;
      EXPECT_EQ(profile.peak(TensorRole::kWorking).base(), expected.working - counted_twice(c));
      EXPECT_EQ(profile.peak(TensorRole::kLogits).base(), expected.logits);
      EXPECT_EQ(profile.left(), Bytes());
    }
  });
}

// The figures add up peaks that need not meet. Under 1F1B the most is kept just before the first
// backward pass: beside it are the logits, and when these are gone what a layer computes again.
// Selective recomputation comes later, when what the layer's second half kept is gone as well.
TEST(Tensors, OfOneTimeAreFewerThanThePeaksAddedUp) {
  each_case([](const Case& c) {
    const Program program = build_training(c.model, c.config, true).program;
    for (int stage = 0; stage < c.config.parallel.pp; ++stage) {
      const auto figure = formulas::stage_activations(c.model, c.config, stage);
      const double working = figure.working - counted_twice(c);
      const double at_once =
          memory_profile(program, program.roles[static_cast<std::size_t>(stage)]).peak().base();
      EXPECT_LE(at_once, figure.kept + working + figure.logits);
      const bool equal_layers = c.model.layers.front() == c.model.layers.back();
      const bool selective = c.config.recompute.granularity == Recompute::kSelective;
      if (c.config.parallel.vpp == 1 && equal_layers && !selective) {
        EXPECT_EQ(at_once, figure.kept + std::max(working, figure.logits)) << "stage " << stage;
      }
    }
  });
}

TEST(Tensors, OfPredictionModulesAreFreedByTheirBackwardPasses) {
  for (const LlmConfig& model : {small_moe(4), latent_moe(4)}) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      TrainingConfig config;
      config.parallel = {.tp = 2, .sp = true};
      config.sequence = 16;
      config.mtp = 2;
      config.recompute = recompute;
      EXPECT_THAT(verify_tensors(build_training(model, config, true).program), IsEmpty())
          << to_string(recompute);
    }
  }
}

TEST(Tensors, CostNothingWhereNobodyAsks) {
  const LlmConfig model = small_moe(4);
  TrainingConfig config;
  config.sequence = 16;
  const Program without = build_training(model, config).program;
  EXPECT_THAT(without.tensors, IsEmpty());
  EXPECT_THAT(without.tensor_events, IsEmpty());
  const StepList backward = layer_backward(model, model.layers[0], rank_work(config));
  for (const Step& step : backward.steps()) {
    EXPECT_EQ(step.makes.capacity() + step.uses.capacity() + step.frees.capacity(), 0U);
  }
  // And change nothing in what is run.
  const Program with = build_training(model, config, true).program;
  EXPECT_FALSE(with.tensors.empty());
  EXPECT_EQ(with.kernels, without.kernels);
  ASSERT_EQ(with.blocks.size(), without.blocks.size());
  for (std::size_t i = 0; i < with.blocks.size(); ++i)
    EXPECT_EQ(with.blocks[i].size(), without.blocks[i].size());
}

/// One forward, then the gradients of inputs and those of weights apart.
class InputsThenWeights final : public PipelineSchedule {
 public:
  ChunkLimits chunks() const override { return {1, 1}; }
  std::vector<Pass> passes(const PipelineShape& shape, int) const override {
    std::vector<Pass> all;
    using Kind = Pass::Kind;
    for (const Kind kind : {Kind::kForward, Kind::kInputGradient, Kind::kWeightGradient}) {
      for (std::int64_t i = 0; i < shape.micro_batches; ++i) all.push_back({kind, 0, i});
    }
    return all;
  }
};
const ScheduleRegistry::Register inputs_then_weights("inputs then weights", "of a test",
                                                     std::make_shared<InputsThenWeights>());

// What a product reads is kept until its weight gradient, everything else until the gradients of
// inputs are through. A layer of small_llama without attention's square, 16 tokens of 2 bytes: qkv,
// up and output projection read 64 columns each, down 192; in front of norms 2 x 64, queries, keys
// and values 128, log-sum-exp 8 heads of 4 bytes, in front of the function 384.
TEST(Tensors, OfProductsWaitForTheirWeightGradients) {
  const LlmConfig model = small_llama(2);
  TrainingConfig config;
  config.sequence = 16;
  config.global_batch = 3;
  config.schedule = "inputs then weights";
  config.layers_only = 2;
  const double products = 16 * 2 * (64 + 64 + 64 + 192);
  const double others = 16 * (2 * (128 + 128 + 384) + 32);
  const Program program = build_training(model, config, true).program;
  EXPECT_THAT(verify(program), IsEmpty());
  const Role& role = program.roles[0];
  const double all = 2 * (products + others);
  const std::vector<Bytes> expected = {Bytes(all),
                                       Bytes(2 * all),
                                       Bytes(3 * all),
                                       Bytes(3 * all - 2 * others),
                                       Bytes(3 * all - 4 * others),
                                       Bytes(6 * products),
                                       Bytes(4 * products),
                                       Bytes(2 * products),
                                       Bytes()};
  EXPECT_EQ(memory_after_calls(program, role), expected);
  EXPECT_EQ(training_memory(model, config)[0].activations, Bytes(3 * all));
}

}  // namespace
}  // namespace orrery::tensors_test
