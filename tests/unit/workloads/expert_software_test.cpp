// SPDX-License-Identifier: Apache-2.0
// What each switch of experts in the software of training runs adds to a layer, by hand; and blocks
// whose attention and MLP are beside each other.
#include "workloads/software/expert_software.h"
#include "workloads/software/training_software.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/layers.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/training/training.h"

namespace orrery::expert_software_test {
namespace {

/// 8 tokens of a rank, two of 8 experts each, 64 elements; 4 experts of 32 columns on a rank.
RankWork work_of(const TrainingSoftware& software, Precision precision = Precision::kBf16) {
  RankWork work;
  work.batch.sequences = 1;
  work.batch.query = work.batch.context = 8;
  work.split.ep = 2;
  work.formats.precision = precision;
  work.software = std::make_shared<const TrainingSoftware>(software);
  return work;
}

template <class Member, class Value>
TrainingSoftware with(Member member, Value value) {
  TrainingSoftware software;
  (software.experts.*member).value = value;
  return software;
}

const LlmConfig& moe() {
  static const LlmConfig model = small_moe(1);
  return model;
}

StepList forward(const RankWork& work) { return layer_forward(moe(), moe().layers[0], work); }
StepList backward(const RankWork& work) { return layer_backward(moe(), moe().layers[0], work); }

bool has(const StepList& list, const std::string& name) {
  return std::any_of(list.steps().begin(), list.steps().end(),
                     [&](const Step& step) { return step.name() == name; });
}

std::size_t find(const StepList& list, const std::string& name) {
  const auto& steps = list.steps();
  const auto found = std::find_if(steps.begin(), steps.end(),
                                  [&](const Step& step) { return step.name() == name; });
  EXPECT_NE(found, steps.end()) << "no step '" << name << "'";
  return static_cast<std::size_t>(found - steps.begin());
}

const Kernel& kernel(const StepList& list, const std::string& name) {
  return *list.steps()[find(list, name)].kernel();
}
const LayerCollective& collective(const StepList& list, const std::string& name) {
  return *list.steps()[find(list, name)].collective();
}
double moved(const Kernel& kernel) { return (kernel.read + kernel.written).base(); }

std::size_t collectives(const StepList& list, TransferKind kind) {
  return static_cast<std::size_t>(
      std::count_if(list.steps().begin(), list.steps().end(), [&](const Step& step) {
        return step.collective() != nullptr && step.collective()->kind == kind;
      }));
}

constexpr double kCopies = 16;     // 8 tokens, two experts each
constexpr double kRow = 64.0 * 2;  // bytes of a token in bf16

TEST(AllToAll, SendsEveryCopyAndSortsThoseThatCame) {
  const RankWork work = work_of(with(&ExpertSoftware::dispatcher, TokenDispatcher::kAllToAll));
  const StepList list = forward(work);
  EXPECT_EQ(collective(list, "dispatch").kind, TransferKind::kAllToAll);
  EXPECT_EQ(collective(list, "dispatch").bytes.base(), kCopies * kRow);
  EXPECT_EQ(collective(list, "combine").bytes.base(), kCopies * kRow);
  EXPECT_LT(find(list, "permute"), find(list, "dispatch"));
  EXPECT_EQ(moved(kernel(list, "dispatch sort")), 2 * kCopies * kRow);
  EXPECT_EQ(moved(kernel(list, "combine sort")), 2 * kCopies * kRow);
  EXPECT_EQ(moved(kernel(backward(work), "combine sort backward")), 2 * kCopies * kRow);
}

TEST(Flex, MakesRowsWhereTokensHaveCome) {
  const RankWork work = work_of(with(&ExpertSoftware::dispatcher, TokenDispatcher::kFlex));
  const StepList list = forward(work);
  EXPECT_EQ(collective(list, "dispatch").kind, TransferKind::kDispatch);
  EXPECT_GT(find(list, "permute"), find(list, "dispatch"));
  EXPECT_LT(find(list, "unpermute"), find(list, "combine"));
  // Of 16 tokens each misses this rank's half of the experts with (4 x 3) / (8 x 7): 12.57 come.
  EXPECT_EQ(kernel(list, "permute").m, 13);
  EXPECT_EQ(kernel(list, "permute").read.base(), 13 * kRow);
  EXPECT_NEAR(kernel(list, "permute").written.base(), kCopies * kRow * 13 / (16 * 22 / 28.0), 1e-6);
  EXPECT_FALSE(has(list, "combine add"));
}

// Two ranks have 16 tokens together, of which each takes the 16 rows of its experts; results of all
// 16 are added up over the ranks. A router says a bit-mask byte and an fp32 weight for 8 experts.
TEST(AllGather, BringsTheTokensOfAllRanksWhateverTheirExperts) {
  const RankWork work = work_of(with(&ExpertSoftware::dispatcher, TokenDispatcher::kAllGather));
  const StepList list = forward(work), back = backward(work);
  EXPECT_EQ(collective(list, "dispatch all-gather").kind, TransferKind::kAllGather);
  EXPECT_EQ(collective(list, "dispatch all-gather").bytes.base(), 16 * kRow);
  EXPECT_EQ(collective(list, "expert choices all-gather").bytes.base(), 16 * 8 * 5);
  EXPECT_EQ(collective(list, "combine reduce-scatter").bytes.base(), 16 * kRow);
  EXPECT_EQ(moved(kernel(list, "permute")), 2 * kCopies * kRow);
  EXPECT_EQ(moved(kernel(list, "unpermute")), (kCopies + 16) * kRow);
  EXPECT_EQ(collective(back, "combine backward all-gather").bytes.base(), 16 * kRow);
  EXPECT_EQ(collective(back, "dispatch backward reduce-scatter").bytes.base(), 16 * kRow);
  EXPECT_EQ(collective(back, "expert choices backward reduce-scatter").bytes.base(), 16 * 8 * 4);
  EXPECT_EQ(collectives(list, TransferKind::kDispatch), 0U);
  EXPECT_FALSE(has(list, "combine add"));
}

TEST(DispatchFormat, OfSixteenBitsHasTwiceTheBytesOfFp8AndNoScales) {
  const RankWork narrow = work_of({}, Precision::kFp8);
  const RankWork wide =
      work_of(with(&ExpertSoftware::dispatch_format, DispatchFormat::kSixteenBit), Precision::kFp8);
  EXPECT_EQ(collective(forward(wide), "dispatch").bytes.base(), kCopies * kRow);
  EXPECT_EQ(collective(forward(narrow), "dispatch").bytes.base(), kCopies * (64 + 2));
}

TEST(GateWeights, InFunctionsNeedNoResultsForTheirGradients) {
  const RankWork results = work_of({});
  const RankWork functions = work_of(with(&ExpertSoftware::gate_weights, GateWeights::kFunctions));
  // A token's gradient, and with weighted results those of its two copies too.
  EXPECT_EQ(kernel(backward(results), "combine add backward").read.base(), 8 * 3 * kRow);
  EXPECT_EQ(kernel(backward(functions), "combine add backward").read.base(), 8 * kRow);
  EXPECT_EQ((layer_activation_bytes(moe(), moe().layers[0], results) -
             layer_activation_bytes(moe(), moe().layers[0], functions))
                .base(),
            kCopies * kRow);
}

TEST(ExpertFunctions, ApartCastOperandsTwiceEachWay) {
  TrainingSoftware software = with(&ExpertSoftware::functions, ExpertFunctions::kApart);
  software.fp8_scaling.value = NarrowScaling::kCurrent;
  const RankWork work = work_of(software, Precision::kFp8);
  const StepList list = forward(work), back = backward(work);
  // 16 rows of 64 and of 32 elements: read in 2 B, written twice in one.
  EXPECT_EQ(moved(kernel(list, "expert up input cast")), 16.0 * 64 * 4);
  EXPECT_EQ(moved(kernel(list, "expert up input largest")), 16.0 * 64 * 2);
  EXPECT_EQ(moved(kernel(list, "expert down input cast")), 16.0 * 32 * 4);
  EXPECT_EQ(moved(kernel(back, "expert down gradient cast")), 16.0 * 64 * 4);
  EXPECT_EQ(moved(kernel(back, "expert up gradient cast")), 16.0 * 64 * 4);
}

TEST(ExpertFunctions, OfProductsLeaveOneCastEachWayAndNoFunction) {
  TrainingSoftware software = with(&ExpertSoftware::functions, ExpertFunctions::kProducts);
  software.fp8_scaling.value = NarrowScaling::kBlocks;
  const RankWork work = work_of(software, Precision::kFp8);
  const StepList list = forward(work), back = backward(work);
  EXPECT_TRUE(has(list, "expert up input cast"));
  EXPECT_FALSE(has(list, "expert activation"));
  EXPECT_FALSE(has(list, "expert down input cast"));
  EXPECT_FALSE(has(back, "expert up gradient cast"));
  // The first product writes its own 64 columns in 2 B and the 32 of the function twice in one.
  EXPECT_EQ(kernel(list, "expert up").written.base(), 16.0 * (64 * 2 + 32 * 2));
}

TEST(RowMultiple, FillsUpHalfOfOneAnExpertOnAverage) {
  const RankWork work = work_of(with(&ExpertSoftware::row_multiple, 16));
  // 4 experts, 7.5 rows each besides 16: 2 x 46 x 64 x 64.
  EXPECT_EQ(kernel(forward(work), "expert up").matrix_flops.base(), 2.0 * 46 * 64 * 64);
}

TEST(HostTime, IsThatOfAllLaunchesOutsideOfGraphs) {
  TrainingSoftware software = with(&ExpertSoftware::launches, ExpertLaunches::kPerExpert);
  software.experts.router_kernels.value = 31;
  software.kernel_issue.value = Seconds(10e-6);
  software.launch_issue.value = Seconds(2e-6);
  const auto issue = [&](GraphScope scope, const char* name) {
    software.graphs.value = scope;
    return kernel(forward(work_of(software)), name).issue.base();
  };
  EXPECT_DOUBLE_EQ(issue(GraphScope::kNone, "expert up"), 16e-6);       // 10 + 3 x 2
  EXPECT_DOUBLE_EQ(issue(GraphScope::kNone, "router kernels"), 68e-6);  // 30 of them
  EXPECT_DOUBLE_EQ(issue(GraphScope::kRouting, "router kernels"), 0);
  EXPECT_DOUBLE_EQ(issue(GraphScope::kRouting, "qkv"), 10e-6);
  EXPECT_DOUBLE_EQ(issue(GraphScope::kAttention, "qkv"), 0);
  EXPECT_DOUBLE_EQ(issue(GraphScope::kAttention, "router kernels"), 68e-6);
  EXPECT_DOUBLE_EQ(issue(GraphScope::kAttentionAndRouting, "qkv"), 0);
  EXPECT_DOUBLE_EQ(issue(GraphScope::kAttentionAndRouting, "expert up"), 16e-6);
  EXPECT_DOUBLE_EQ(issue(GraphScope::kIteration, "expert up"), 0);
}

TEST(ExpertGradients, WithProductsComeBeforeTheExchange) {
  const StepList behind = backward(work_of({}));
  const StepList with_products =
      backward(work_of(with(&ExpertSoftware::weight_gradients, ExpertGradients::kWithProducts)));
  EXPECT_GT(find(behind, "expert up wgrad"), find(behind, "dispatch backward"));
  EXPECT_LT(find(with_products, "expert up wgrad"), find(with_products, "dispatch backward"));
}

TEST(SharedExperts, BeforeTheDispatchAreIssuedBeforeTheRouter) {
  const StepList list =
      forward(work_of(with(&ExpertSoftware::shared_experts, SharedExperts::kBeforeDispatch)));
  EXPECT_LT(find(list, "shared expert down"), find(list, "router"));
}

TEST(Biases, ApartTakeSixBytesEachWayAnElementAndLimitsFour) {
  LlmConfig model = moe();
  model.moe.expert_bias = model.moe.clamped = true;
  const RankWork work = work_of(with(&ExpertSoftware::biases_apart, true));
  const StepList list = layer_forward(model, model.layers[0], work);
  EXPECT_EQ(moved(kernel(list, "expert bias")), 16.0 * 64 * 12);
  EXPECT_EQ(moved(kernel(list, "expert function limits")), 16.0 * 64 * 8);
  EXPECT_FALSE(has(layer_forward(model, model.layers[0], work_of({})), "expert bias"));
}

TEST(Filling, ApartCopiesRowsOnTheirWayInAndOut) {
  TrainingSoftware software = with(&ExpertSoftware::filling_apart, true);
  software.experts.row_multiple.value = 2;
  software.experts.functions.value = ExpertFunctions::kApart;
  const RankWork work = work_of(software, Precision::kFp8);
  // 4 experts, half a row each: 18 rows.
  EXPECT_EQ(moved(kernel(forward(work), "expert rows filled")), 2 * 18 * kRow);
  EXPECT_EQ(moved(kernel(forward(work), "expert rows cut")), 2 * 18 * kRow);
  EXPECT_EQ(moved(kernel(backward(work), "expert rows filled backward")), 2 * 18 * kRow);
}

TEST(Stash, CopiesWhatExpertsKeep) {
  const RankWork work = work_of(with(&ExpertSoftware::stash, true));
  // Inputs of 64, functions of 64 and second inputs of 32 elements a row, there and back.
  EXPECT_NEAR(moved(kernel(forward(work), "expert stash")), 2 * 16.0 * (64 + 64 + 32) * 2, 1e-6);
  EXPECT_TRUE(has(backward(work), "expert stash backward"));
}

TEST(HostWaits, UntilTheRowsAreKnownUnlessExpertsHaveACapacity) {
  RankWork work = work_of(with(&ExpertSoftware::host_waits, true));
  EXPECT_TRUE(kernel(forward(work), "dispatch preprocess").host_waits);
  work.passes.expert_capacity = 1;
  EXPECT_FALSE(has(forward(work), "dispatch preprocess"));
}

TEST(HostWaits, BehindThePermutationWhereNumbersOfRowsComeWithTheTokens) {
  for (const TokenDispatcher dispatcher : {TokenDispatcher::kFlex, TokenDispatcher::kAllGather}) {
    TrainingSoftware software = with(&ExpertSoftware::host_waits, true);
    software.experts.dispatcher.value = dispatcher;
    const StepList list = forward(work_of(software));
    EXPECT_TRUE(kernel(list, "permute").host_waits);
    EXPECT_FALSE(has(list, "dispatch preprocess"));
  }
}

TEST(ExpertCapacity, IsRowsOverTheMeanWhoeverGetsThem) {
  RankWork work = work_of(with(&ExpertSoftware::dispatcher, TokenDispatcher::kAllToAll));
  work.passes.expert_capacity = 1.5;
  const StepList list = forward(work);
  EXPECT_EQ(kernel(list, "expert up").matrix_flops.base(), 2.0 * 24 * 64 * 64);
  EXPECT_EQ(collective(list, "dispatch").bytes.base(), 24 * kRow);
}

TEST(TrainingRouting, MakesTheHeaviestRankWorkByItsShare) {
  TrainingConfig config;
  config.parallel.dp = config.parallel.ep = 2;
  config.global_batch = 2;
  config.sequence = 8;
  config.expert_routing = ExpertRoutingConfig{};
  config.expert_routing->loads = {3, 3, 3, 3, 1, 1, 1, 1};
  const RankWork work = rank_work(moe(), config);
  ASSERT_TRUE(work.split.heaviest);
  EXPECT_DOUBLE_EQ(work.split.heaviest->skew, 1.5);
  const StepList list = layer_forward(moe(), moe().layers[0], work);
  EXPECT_EQ(kernel(list, "expert up").matrix_flops.base(), 2.0 * 24 * 64 * 64);
  EXPECT_DOUBLE_EQ(collective(list, "dispatch").routing->skew, 1.5);
  // With a capacity all ranks have the same rows.
  config.expert_capacity = 1;
  EXPECT_FALSE(rank_work(moe(), config).split.heaviest);
}

LlmConfig parallel_llama() {
  LlmConfig model = small_llama(1);
  model.parallel_block = true;
  model.norms_per_layer = 1;
  return model;
}

TEST(ParallelBlock, ReducesAndGathersOnceEachWay) {
  const LlmConfig serial = small_llama(1), beside = parallel_llama();
  RankWork work = work_of({});
  work.split.ep = 1;
  work.split.tp = 2;
  for (const bool sp : {false, true}) {
    work.split.sp = sp;
    const auto count = [&](const LlmConfig& model, TransferKind kind) {
      return std::pair{collectives(layer_forward(model, model.layers[0], work), kind),
                       collectives(layer_backward(model, model.layers[0], work), kind)};
    };
    for (const TransferKind kind :
         {TransferKind::kAllReduce, TransferKind::kAllGather, TransferKind::kReduceScatter}) {
      EXPECT_EQ(count(serial, kind).first, 2 * count(beside, kind).first);
      EXPECT_EQ(count(serial, kind).second, 2 * count(beside, kind).second);
    }
  }
}

TEST(ParallelBlock, HasTheProductsOfTheSerialOneAndOneNormAndResidualLess) {
  const LlmConfig serial = small_llama(1), beside = parallel_llama();
  RankWork work = work_of({});
  work.split.ep = 1;
  const auto flops = [](const StepList& list) {
    double sum = 0;
    for (const Step& step : list.steps())
      if (const Kernel* kernel = step.kernel()) sum += kernel->matrix_flops.base();
    return sum;
  };
  const StepList list = layer_forward(beside, beside.layers[0], work);
  EXPECT_EQ(flops(list), flops(layer_forward(serial, serial.layers[0], work)));
  EXPECT_EQ(flops(layer_backward(beside, beside.layers[0], work)),
            flops(layer_backward(serial, serial.layers[0], work)));
  EXPECT_FALSE(has(list, "mlp norm"));
  EXPECT_FALSE(has(list, "attention residual"));
  EXPECT_TRUE(has(list, "parallel block addition"));
}

}  // namespace
}  // namespace orrery::expert_software_test
