// SPDX-License-Identifier: Apache-2.0
// What each switch of the software of training runs adds to a layer, by hand, and that it adds
// nothing else.
#include "workloads/software/training_software.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "sim/graph/verify.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/layers.h"
#include "workloads/software/narrow_casts.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/figures/statistics.h"
#include "workloads/steps/training/optimizer_step.h"
#include "workloads/steps/training/training.h"

namespace orrery::training_software_test {
namespace {

/// The software that does nothing beside the graph.
TrainingSoftware plain() {
  TrainingSoftware software;
  software.cross_entropy.value = Fusion::kFused;
  software.causal_softmax.value = MaskedSoftmax::kSquare;
  software.pp_overlap.value = MessageOverlap::kAll;
  software.fp8_scaling.value = NarrowScaling::kFused;
  return software;
}

template <class Member, class Value>
TrainingSoftware with(Member member, Value value) {
  TrainingSoftware software = plain();
  (software.*member).value = value;
  return software;
}

/// A micro-batch of GPT 175B on eight tensor parallel ranks.
RankWork work_of(const TrainingSoftware& software, bool sp = false) {
  RankWork work;
  work.batch.sequences = 1;
  work.batch.query = work.batch.context = 2048;
  work.split.tp = 8;
  work.split.sp = sp;
  work.formats.precision = Precision::kFp16;
  work.flash_attention = false;
  work.passes.dropout = true;
  work.software = std::make_shared<const TrainingSoftware>(software);
  return work;
}

const LlmConfig& gpt() {
  static const LlmConfig model = megatron_gpt(1, 12288, 96);
  return model;
}

StepList backward(const TrainingSoftware& software, bool sp = false) {
  return layer_backward(gpt(), gpt().layers[0], work_of(software, sp));
}
StepList forward(const TrainingSoftware& software, bool sp = false) {
  return layer_forward(gpt(), gpt().layers[0], work_of(software, sp));
}

double moved(const StepList& list) {
  double bytes = 0;
  for (const Step& step : list.steps())
    if (const Kernel* kernel = step.kernel()) bytes += (kernel->read + kernel->written).base();
  return bytes;
}

double moved_by(const StepList& list, const std::string& part) {
  double bytes = 0;
  for (const Step& step : list.steps()) {
    const Kernel* kernel = step.kernel();
    if (kernel != nullptr && step.name().find(part) != std::string::npos)
      bytes += (kernel->read + kernel->written).base();
  }
  return bytes;
}

std::size_t find(const StepList& list, const std::string& name) {
  const auto& steps = list.steps();
  const auto found = std::find_if(steps.begin(), steps.end(),
                                  [&](const Step& step) { return step.name() == name; });
  EXPECT_NE(found, steps.end()) << "no step '" << name << "'";
  return static_cast<std::size_t>(found - steps.begin());
}

std::set<std::size_t> ancestors(const StepList& list, std::size_t step) {
  std::set<std::size_t> all;
  for (const std::size_t earlier : list.steps()[step].after) {
    all.insert(earlier);
    all.merge(ancestors(list, earlier));
  }
  return all;
}

constexpr double kMatrices = 12.0 * 12288 * 12288 / 8;  // elements of a rank
constexpr double kRows = 2048.0 * 12288;                // elements of [tokens, hidden]

// The product writes 2 B an element instead of adding to the sum (4 B); the addition reads both
// and writes the sum (6 B). At the 1.63 TB/s that an A100 reaches 1.36 GB take 0.83 of the 14.6 ms
// of the layer's backward pass.
TEST(GradientAccumulation, ApartReadsAndWritesSixBytesOfAGradientInTheWeightsFormat) {
  const StepList list = backward(with(&TrainingSoftware::gradient_accumulation, Fusion::kApart));
  EXPECT_DOUBLE_EQ(moved_by(list, "gradient addition"), 6 * kMatrices);
  EXPECT_DOUBLE_EQ(moved(list) - moved(backward(plain())), (6 + 2 - 4) * kMatrices);
  EXPECT_NEAR(6 * kMatrices, 1.36e9, 0.005e9);
}

TEST(GradientAccumulation, InFp32ReadsAndWritesTenBytesApartAndEightInTheProduct) {
  TrainingSoftware software = with(&TrainingSoftware::main_gradients, GradientFormat::kFp32);
  EXPECT_DOUBLE_EQ(moved(backward(software)) - moved(backward(plain())), (8 - 4) * kMatrices);
  software.gradient_accumulation.value = Fusion::kApart;
  EXPECT_DOUBLE_EQ(moved_by(backward(software), "gradient addition"), 10 * kMatrices);
}

TEST(MainGradients, AreFp32ForBf16UnlessLossIsScaled) {
  const TrainingSoftware software =
      with(&TrainingSoftware::main_gradients, GradientFormat::kFp32ForBf16);
  EXPECT_EQ(software.gradient_bytes(Precision::kBf16), 4);
  EXPECT_EQ(software.gradient_bytes(Precision::kFp8), 4);
  EXPECT_EQ(software.gradient_bytes(Precision::kFp16), 2);
}

TEST(FullAccumulation, SlowsFp8ProductsOfBackwardPassesAlone) {
  RankWork work = work_of(plain(), true);
  work.formats.precision = Precision::kFp8;
  work.formats.fp8_gradient_rate = 0.8;
  const auto slow = [](const StepList& list) {
    std::set<std::string> names;
    for (const Step& step : list.steps())
      if (step.kernel() != nullptr && step.kernel()->rate == 0.8) names.insert(step.name());
    return names;
  };
  EXPECT_TRUE(slow(layer_forward(gpt(), gpt().layers[0], work)).empty());
  const std::set<std::string> gradients = {"qkv dgrad",
                                           "qkv wgrad",
                                           "attention output dgrad",
                                           "attention output wgrad",
                                           "up dgrad",
                                           "up wgrad",
                                           "down dgrad",
                                           "down wgrad"};
  EXPECT_EQ(slow(layer_backward(gpt(), gpt().layers[0], work)), gradients);
  work.formats.precision = Precision::kBf16;
  EXPECT_TRUE(slow(layer_backward(gpt(), gpt().layers[0], work)).empty());
}

TEST(ProductsOfMxfp8, TakeAsMuchLongerAsTransformerEngineMeasured) {
  const auto seconds_over_those_of_tensors = [](Precision precision, NarrowScaling scaling) {
    RankWork work = work_of(with(&TrainingSoftware::fp8_scaling, scaling), true);
    work.formats.precision = precision;
    double rates = 0, products = 0;
    for (const StepList& list : {layer_forward(gpt(), gpt().layers[0], work),
                                 layer_backward(gpt(), gpt().layers[0], work)}) {
      for (const Step& step : list.steps()) {
        if (step.kernel() == nullptr || step.kernel()->precision != precision ||
            step.kernel()->kind != KernelClass::kGemm)
          continue;
        rates += step.kernel()->rate;
        ++products;
      }
    }
    EXPECT_GE(products, 12);
    return products / rates;
  };
  EXPECT_NEAR(seconds_over_those_of_tensors(Precision::kFp8, NarrowScaling::kBlocks), 1.051, 0.001);
  EXPECT_EQ(seconds_over_those_of_tensors(Precision::kFp8, NarrowScaling::kCurrent), 1);
  EXPECT_EQ(seconds_over_those_of_tensors(Precision::kNvfp4, NarrowScaling::kBlocks), 1);
}

TrainingConfig step_config(const TrainingSoftware& software, ParallelConfig plan) {
  TrainingConfig config;
  config.parallel = plan;
  config.micro_batch = 2;
  config.global_batch = 8L * config.micro_batch * plan.dp;
  config.sequence = 16;
  config.software = std::make_shared<const TrainingSoftware>(software);
  return config;
}

TEST(MainGradients, OfFourBytesAreHeldAndReduced) {
  const LlmConfig model = small_llama(4);
  const auto parameters = static_cast<double>(count_parameters(model).total);
  const TrainingConfig config =
      step_config(with(&TrainingSoftware::main_gradients, GradientFormat::kFp32), {.dp = 4});
  EXPECT_EQ(training_memory(model, config).front().gradients.base(), 4 * parameters);
  const auto transfers = role_statistics(build_training(model, config).program, 0).transfers;
  EXPECT_EQ(transfers.at("reduce_scatter dp").bytes.base(), 4 * parameters);
  EXPECT_EQ(transfers.at("all_gather dp").bytes.base(), 2 * parameters);
  // No copy to fp32 (6 B) in front of Adam, two bytes more to clear behind it.
  const auto moved_by_optimizer = [](const TrainingSoftware& software) {
    double bytes = 0;
    for (const Kernel& kernel : optimizer_kernels(1000, Precision::kBf16, software))
      bytes += (kernel.read + kernel.written).base();
    return bytes;
  };
  EXPECT_EQ(moved_by_optimizer(plain()) - moved_by_optimizer(*config.software), (6 - 2) * 1000);
}

TEST(Bias, AddedApartIsReadAndWrittenOnceForQueriesKeysAndValues) {
  const TrainingSoftware apart = with(&TrainingSoftware::bias_addition, Fusion::kApart);
  EXPECT_DOUBLE_EQ(moved(forward(apart)) - moved(forward(plain())), 4 * 3 * kRows / 8);
  EXPECT_DOUBLE_EQ(moved(backward(apart)), moved(backward(plain())));
}

TEST(Bias, GradientsApartReadTheGradientsOfAllFourOutputs) {
  const TrainingSoftware apart = with(&TrainingSoftware::bias_gradients, Fusion::kApart);
  // 3 h / 8 and 4 h / 8 columns of all tokens, h of those of the rank's residual stream, twice.
  EXPECT_DOUBLE_EQ(moved(backward(apart)) - moved(backward(plain())),
                   2 * (7 * kRows / 8 + 2 * kRows));
  EXPECT_DOUBLE_EQ(moved(backward(apart, true)) - moved(backward(plain(), true)),
                   2 * (7 * kRows / 8 + 2 * kRows / 8));
}

TEST(Norms, ReadInputAndGradientAgainForTheirWeights) {
  const TrainingSoftware twice = with(&TrainingSoftware::norm_backward, NormBackward::kTwoPasses);
  EXPECT_DOUBLE_EQ(moved(backward(twice)) - moved(backward(plain())), 2 * 4 * kRows);
}

// Gradients of queries and keys are scaled, and those of all three put together.
TEST(AttentionLayout, ApartCopiesTheResultAndScalesAndCopiesGradients) {
  const TrainingSoftware apart = with(&TrainingSoftware::attention_layout, Fusion::kApart);
  EXPECT_DOUBLE_EQ(moved(forward(apart)) - moved(forward(plain())), 4 * kRows / 8);
  EXPECT_DOUBLE_EQ(moved(backward(apart)) - moved(backward(plain())), 4 * (2 + 3) * kRows / 8);
}

TEST(AttentionLayout, CopiesAreStridedAndNoSlowerThanOtherKernelsOfSlowSoftware) {
  const auto rate = [](double elementwise) {
    TrainingSoftware apart = with(&TrainingSoftware::attention_layout, Fusion::kApart);
    apart.elementwise_rate.value = elementwise;
    const StepList list = forward(apart);
    return list.steps()[find(list, "attention output transpose")].kernel()->rate;
  };
  EXPECT_DOUBLE_EQ(rate(1), 0.46);
  EXPECT_DOUBLE_EQ(rate(0.4), 0.4);
}

TEST(CompiledKernels, AreFunctionsAndResidualsForwardAndBackward) {
  const TrainingSoftware slow = with(&TrainingSoftware::compiled_rate, 0.5);
  std::set<std::string> slower;
  const auto compare = [&](const StepList& a, const StepList& b) {
    ASSERT_EQ(a.steps().size(), b.steps().size());
    for (std::size_t i = 0; i < a.steps().size(); ++i) {
      const Kernel* kernel = b.steps()[i].kernel();
      if (kernel == nullptr || kernel->rate == a.steps()[i].kernel()->rate) continue;
      EXPECT_DOUBLE_EQ(kernel->rate, 0.5) << kernel->name;
      slower.insert(kernel->name);
    }
  };
  compare(forward(plain()), forward(slow));
  compare(backward(plain()), backward(slow));
  EXPECT_EQ(slower, (std::set<std::string>{"activation", "activation backward",
                                           "attention residual", "attention residual backward",
                                           "mlp residual", "mlp residual backward"}));
}

TEST(GradientWidening, ApartWritesWideGradientsThatTheAdditionReads) {
  TrainingSoftware adds = with(&TrainingSoftware::gradient_accumulation, Fusion::kApart);
  adds.main_gradients.value = GradientFormat::kFp32;
  TrainingSoftware widens = adds;
  widens.gradient_widening.value = Fusion::kApart;
  const auto addition = [](const TrainingSoftware& software) {
    const StepList list = backward(software);
    return *list.steps()[find(list, "up gradient addition")].kernel();
  };
  const double elements = 12288.0 * 4 * 12288 / 8;
  EXPECT_DOUBLE_EQ((addition(adds).read + addition(adds).written).base(), 10 * elements);
  EXPECT_DOUBLE_EQ((addition(widens).read + addition(widens).written).base(), 18 * elements);
  EXPECT_EQ(addition(widens).launches, 2);
  widens.main_gradients.value = GradientFormat::kWeights;  // nothing is wider
  EXPECT_EQ(addition(widens).launches, 1);
}

TEST(CausalSoftmax, ReadsTheLowerTriangleAndWritesTheSquare) {
  const TrainingSoftware triangle =
      with(&TrainingSoftware::causal_softmax, MaskedSoftmax::kTriangle);
  const double square = 12.0 * 2048 * 2048, above = 12.0 * 2048 * 2047 / 2;
  EXPECT_NEAR(moved(forward(plain())) - moved(forward(triangle)), 2 * above, 1);
  EXPECT_NEAR(moved(backward(plain())) - moved(backward(triangle)), 2 * 2 * above, 1);
  EXPECT_DOUBLE_EQ(forward(triangle)
                       .steps()[find(forward(triangle), "attention softmax")]
                       .kernel()
                       ->written.base(),
                   2 * square);
}

TEST(CrossEntropy, ApartKeepsLogitsInFp32) {
  const TrainingSoftware apart = with(&TrainingSoftware::cross_entropy, Fusion::kApart);
  const double logits = 2048.0 * 51200 / 8;
  const auto head = [](const TrainingSoftware& software) {
    return moved(head_forward(gpt(), work_of(software)));
  };
  // Widened (6 B), maximum (4), difference, exponential and quotient (8 each), sum (4); fused 6.
  EXPECT_DOUBLE_EQ(head(apart) - head(plain()), (38 - 6) * logits);
  EXPECT_DOUBLE_EQ(
      moved(head_backward(gpt(), work_of(apart))) - moved(head_backward(gpt(), work_of(plain()))),
      (14 - 6) * logits);
}

TEST(TensorOverlap, NoneReducesBehindTheWeightGradientsAndAllWaitForIt) {
  for (const bool sp : {false, true}) {
    const StepList list = backward(with(&TrainingSoftware::tp_overlap, TensorOverlap::kNone), sp);
    const std::size_t reduce = find(list, sp ? "up dgrad reduce-scatter" : "up dgrad all-reduce");
    EXPECT_TRUE(ancestors(list, reduce).contains(find(list, "up wgrad")));
    EXPECT_TRUE(ancestors(list, find(list, "mlp norm backward")).contains(reduce));
    if (!sp) continue;
    const std::size_t gather = find(list, "up input all-gather again");
    EXPECT_TRUE(ancestors(list, find(list, "up dgrad")).contains(gather));
  }
}

TEST(TensorOverlap, UserBuffersMultiplyTheirOwnPartFirstAndLeaveOutNothing) {
  const TrainingSoftware chunks = with(&TrainingSoftware::tp_overlap, TensorOverlap::kUserBuffers);
  const auto flops = [](const StepList& list) {
    double sum = 0;
    for (const Step& step : list.steps())
      if (step.kernel()) sum += step.kernel()->matrix_flops.base();
    return sum;
  };
  const auto carried = [](const StepList& list) {
    double sum = 0;
    for (const Step& step : list.steps())
      if (step.collective()) sum += step.collective()->bytes.base();
    return sum;
  };
  EXPECT_NEAR(flops(forward(chunks, true)), flops(forward(plain(), true)), 1e3);
  EXPECT_NEAR(flops(backward(chunks, true)), flops(backward(plain(), true)), 1e3);
  EXPECT_NEAR(carried(forward(chunks, true)), carried(forward(plain(), true)), 1e3);
  EXPECT_NEAR(carried(backward(chunks, true)), carried(backward(plain(), true)), 1e3);
  const StepList list = forward(chunks, true);
  const std::size_t own = find(list, "qkv chunk"), gather = find(list, "qkv input all-gather part");
  EXPECT_FALSE(ancestors(list, own).contains(gather));
  // Without sequence parallelism there is nothing to gather.
  EXPECT_DOUBLE_EQ(moved(forward(chunks)), moved(forward(plain())));
}

// 2,048 tokens on eight ranks in fp8: four operands are copied into buffers (of two products each
// way) and two more for gradients of weights, and scales of blocks of 32 go before them.
TEST(UserBuffers, OperandsAreCopiedIntoThemAndScalesOfBlocksGatheredBefore) {
  const auto list = [](Fusion copies, bool blocks, bool back) {
    TrainingSoftware software = with(&TrainingSoftware::tp_overlap, TensorOverlap::kUserBuffers);
    software.buffer_copies.value = copies;
    software.fp8_scaling.value = blocks ? NarrowScaling::kBlocks : NarrowScaling::kCurrent;
    RankWork work = work_of(software, true);
    work.formats.precision = Precision::kFp8;
    return back ? layer_backward(gpt(), gpt().layers.front(), work)
                : layer_forward(gpt(), gpt().layers.front(), work);
  };
  const auto gathered = [](const StepList& steps) {
    double sum = 0;
    for (const Step& step : steps.steps())
      if (step.collective() && step.collective()->name.find("scales") != std::string::npos)
        sum += step.collective()->bytes.base();
    return sum;
  };
  const double rank = 2048.0 / 8 * 12288;
  for (const bool back : {false, true}) {
    for (const bool blocks : {false, true}) {
      const StepList fused = list(Fusion::kFused, blocks, back);
      const StepList apart = list(Fusion::kApart, blocks, back);
      const double operands = back ? 4 : 2;
      EXPECT_DOUBLE_EQ(moved(apart) - moved(fused), operands * 2 * rank);
      EXPECT_EQ(gathered(fused), 0);
      EXPECT_DOUBLE_EQ(gathered(apart), blocks ? operands * 8 * rank / 32 : 0);
    }
  }
}

// Two inputs that are gathered again and two gradients, 2,048 tokens of 12,288 values each: half a
// byte a value, and a sixteenth of scales, are read and written once more.
TEST(NarrowGathers, CopiesOfNvfp4ForWeightGradientsArePutInOrder) {
  const auto ordered = [](Precision precision, bool back) {
    TrainingSoftware software = with(&TrainingSoftware::fp8_scaling, NarrowScaling::kBlocks);
    RankWork work = work_of(software, true);
    work.formats.precision = precision;
    const LlmConfig model = gpt();
    double bytes = 0;
    const StepList list = back ? layer_backward(model, model.layers.front(), work)
                               : layer_forward(model, model.layers.front(), work);
    for (const Step& step : list.steps()) {
      const bool orders =
          step.name().ends_with(" order") && !step.name().ends_with("t scale order");
      if (step.kernel() && orders) bytes += (step.kernel()->read + step.kernel()->written).base();
    }
    return bytes;
  };
  EXPECT_EQ(ordered(Precision::kNvfp4, false), 0);
  EXPECT_EQ(ordered(Precision::kFp8, true), 0);
  EXPECT_DOUBLE_EQ(ordered(Precision::kNvfp4, true), 4 * 2048.0 * 12288 * 2 * (0.5 + 1.0 / 16));
}

TEST(Messages, OfSoftwareThatWaitsAreSentOnTheComputeStream) {
  const auto sends_on = [](MessageOverlap overlap, int chunks) {
    const TrainingConfig config =
        step_config(with(&TrainingSoftware::pp_overlap, overlap), {.pp = 4, .vpp = chunks});
    const Program program = build_training(small_llama(8), config).program;
    std::set<int> streams;
    for (const OperatorGraph& block : program.blocks) {
      for (OperatorId id = 0; id < block.size(); ++id)
        if (block[id].kind == OperatorKind::kSend) streams.insert(block[id].stream);
    }
    return streams;
  };
  EXPECT_EQ(sends_on(MessageOverlap::kNone, 1), std::set<int>{0});
  EXPECT_EQ(sends_on(MessageOverlap::kNone, 2), std::set<int>{0});
  EXPECT_EQ(sends_on(MessageOverlap::kInterleaved, 1), std::set<int>{0});
  EXPECT_FALSE(sends_on(MessageOverlap::kInterleaved, 2).contains(0));
  EXPECT_FALSE(sends_on(MessageOverlap::kAll, 1).contains(0));
}

TEST(Messages, ScatteredSendPartsAndGatherThem) {
  const auto transfers = [](bool scattered, bool sp) {
    TrainingSoftware software = plain();
    software.scattered_messages.value = scattered;
    const TrainingConfig config = step_config(software, {.tp = 2, .sp = sp, .pp = 4});
    return program_statistics(build_training(small_llama(8), config).program).transfers;
  };
  const double whole = transfers(false, false).at("send_receive pp").bytes.base();
  EXPECT_EQ(transfers(true, false).at("send_receive pp").bytes.base(), whole / 2);
  EXPECT_FALSE(transfers(false, false).contains("all_gather tp"));
  // 3 boundaries both ways, 8 micro-batches, 2 ranks: 32 tokens of 64 values of 2 B.
  EXPECT_EQ(transfers(true, false).at("all_gather tp").bytes.base(), 6 * 8 * 2 * 32.0 * 64 * 2);
  EXPECT_EQ(transfers(true, true).at("send_receive pp").bytes.base(), whole / 2);
}

TEST(NarrowScaling, CastsWhatNoKernelWritesNarrow) {
  const auto work = [](NarrowScaling scaling) {
    RankWork narrow = work_of(with(&TrainingSoftware::fp8_scaling, scaling));
    narrow.formats.precision = Precision::kFp8;
    return narrow;
  };
  const auto moved_forward = [&](NarrowScaling scaling) {
    return moved(layer_forward(gpt(), gpt().layers[0], work(scaling)));
  };
  const double fused = moved_forward(NarrowScaling::kFused);
  // Two inputs behind norms: transposed, 2 B; two others: 2 B read, two copies written, and the
  // function in front of the last matrix writes a byte more.
  const double others = kRows / 8 + 4 * kRows / 8;
  EXPECT_DOUBLE_EQ(moved_forward(NarrowScaling::kDelayed) - fused,
                   2 * 2 * kRows + 4 * others + 4 * kRows / 8);
  // All four in two passes; norms write a byte more.
  EXPECT_DOUBLE_EQ(moved_forward(NarrowScaling::kCurrent) - fused,
                   2 * (6 + 1) * kRows + 6 * others + 4 * kRows / 8);
  const TrainingSoftware delayed = with(&TrainingSoftware::fp8_scaling, NarrowScaling::kDelayed);
  EXPECT_EQ(delayed.scaling(Precision::kBf16), NarrowScaling::kFused);
  EXPECT_EQ(delayed.scaling(Precision::kNvfp4), NarrowScaling::kBlocks);
}

TEST(NarrowCasts, ToNvfp4ReadValuesTwiceOrThreeTimes) {
  NarrowOperand operand;
  operand.name = "x";
  operand.rows = 128;
  operand.width = 64;
  operand.precision = Precision::kNvfp4;
  const double values = 128 * 64;
  const auto bytes = [&](HadamardCast cast) {
    const TrainingSoftware software = with(&TrainingSoftware::hadamard_cast, cast);
    Bytes all = largest_value(software, operand)->read;
    for (const Kernel& kernel : narrow_casts(software, operand))
      all += kernel.read + kernel.written;
    return all.base();
  };
  const double narrow = element_bytes(Precision::kNvfp4);
  EXPECT_EQ(bytes(HadamardCast::kNone), values * (2 + 2 + 2 * narrow));
  EXPECT_EQ(bytes(HadamardCast::kFused), bytes(HadamardCast::kNone));
  EXPECT_EQ(bytes(HadamardCast::kApart), values * (2 + 2 + 2 + 2 * narrow));
  const TrainingSoftware fused = with(&TrainingSoftware::hadamard_cast, HadamardCast::kFused);
  EXPECT_EQ(narrow_casts(fused, operand).front().rate, fused.nvfp4_cast_rate.value);
  EXPECT_EQ(narrow_casts(with(&TrainingSoftware::hadamard_cast, HadamardCast::kNone), operand)
                .front()
                .rate,
            1);
}

TEST(NarrowCasts, OrderScalesOfBothCopiesAndOfTheMatrix) {
  TrainingSoftware software = with(&TrainingSoftware::scale_order, Fusion::kApart);
  software.fp8_scaling.value = NarrowScaling::kBlocks;
  NarrowOperand operand;
  operand.rows = 128;
  operand.width = 64;
  operand.weights = 64 * 256;
  EXPECT_FALSE(largest_value(software, operand));
  const std::vector<Kernel> kernels = narrow_casts(software, operand);
  ASSERT_EQ(kernels.size(), 2U);
  // A byte for 32 values of MXFP8.
  EXPECT_EQ(kernels.back().read.base(), (2 * 128 * 64 + 64 * 256) / 32.0);
  EXPECT_EQ(kernels.back().launches, 3);
  software.scale_order.value = Fusion::kFused;
  EXPECT_EQ(narrow_casts(software, operand).size(), 1U);
  software.fp8_scaling.value = NarrowScaling::kCurrent;
  EXPECT_TRUE(largest_value(software, operand));
}

TEST(NarrowScaling, GathersBothCopiesOfGradientsWithBlocks) {
  const auto gathered = [](NarrowScaling scaling) {
    const TrainingSoftware software = with(&TrainingSoftware::fp8_scaling, scaling);
    TrainingConfig config = step_config(software, {.tp = 2, .sp = true, .pp = 1});
    config.precision = Precision::kFp8;
    return program_statistics(build_training(small_llama(1), config).program)
        .transfers.at("all_gather tp")
        .bytes.base();
  };
  EXPECT_GT(gathered(NarrowScaling::kBlocks), gathered(NarrowScaling::kCurrent));
  EXPECT_EQ(gathered(NarrowScaling::kDelayed), gathered(NarrowScaling::kCurrent));
}

TEST(CallDelays, LieBetweenMeasuredSizesAndAreNoneOutside) {
  TrainingSoftware software;
  software.call_delays = {{Bytes(1 << 20), Seconds(10e-6)}, {Bytes(1 << 22), Seconds(30e-6)}};
  EXPECT_EQ(software.call_delay(Bytes(1 << 21)).base(), 0);  // in graphs
  software.collective_calls.value = CollectiveCalls::kHost;
  EXPECT_NEAR(software.call_delay(Bytes(1 << 21)).base(), 20e-6, 1e-12);
  EXPECT_EQ(software.call_delay(Bytes(1 << 22)).base(), 30e-6);
  EXPECT_EQ(software.call_delay(Bytes((1 << 20) - 1)).base(), 0);
  EXPECT_EQ(software.call_delay(Bytes((1 << 22) + 1)).base(), 0);
}

TEST(ReplicaOverlap, ReducesAndGathersTheSameBytesInBucketsBesideThePasses) {
  for (const ParallelConfig& plan :
       {ParallelConfig{.dp = 4}, ParallelConfig{.tp = 2, .pp = 2, .dp = 2},
        ParallelConfig{.pp = 2, .vpp = 2, .dp = 2}}) {
    const LlmConfig model = small_llama(4);
    TrainingSoftware software = plain();
    const auto transfers = [&](int stage) {
      const Program program = build_training(model, step_config(software, plan)).program;
      EXPECT_TRUE(verify(program).empty());
      return role_statistics(program, static_cast<std::size_t>(stage)).transfers;
    };
    for (int stage = 0; stage < plan.pp; ++stage) {
      software = plain();
      const auto behind = transfers(stage);
      software.gradient_reduction_overlap.value = software.weight_gather_overlap.value = true;
      software.bucket_parameters.value = 1;
      const auto beside = transfers(stage);
      for (const char* kind : {"reduce_scatter dp", "all_gather dp"}) {
        EXPECT_DOUBLE_EQ(beside.at(kind).bytes.base(), behind.at(kind).bytes.base()) << kind;
        EXPECT_GT(beside.at(kind).count, behind.at(kind).count) << kind;
      }
    }
  }
}

}  // namespace
}  // namespace orrery::training_software_test
