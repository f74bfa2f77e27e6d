// SPDX-License-Identifier: Apache-2.0
// What models move whose rotary positions and gated activations run operator by operator, by hand.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/layers.h"
#include "workloads/software/training_software.h"

namespace orrery::eager_operators_test {
namespace {

constexpr double kTokens = 8;

RankWork work_of(const TrainingSoftware& software, Phase phase = Phase::kTraining) {
  RankWork work;
  work.batch.phase = phase;
  work.batch.sequences = 1;
  work.batch.query = work.batch.context = static_cast<std::int64_t>(kTokens);
  work.formats.precision = Precision::kBf16;
  work.software = std::make_shared<const TrainingSoftware>(software);
  return work;
}

const LlmConfig& model() {
  static const LlmConfig llama = small_llama(1);
  return llama;
}

Kernel kernel(const StepList& list, const std::string& name) {
  for (const Step& step : list.steps())
    if (step.name() == name) return *step.kernel();
  ADD_FAILURE() << "no step '" << name << "'";
  return {};
}

Kernel forward(const TrainingSoftware& software, const std::string& name) {
  return kernel(layer_forward(model(), model().layers[0], work_of(software)), name);
}
Kernel backward(const TrainingSoftware& software, const std::string& name) {
  return kernel(layer_backward(model(), model().layers[0], work_of(software)), name);
}

TrainingSoftware rotates_by(RotaryKernels rotary) {
  TrainingSoftware software;
  software.rotary.value = rotary;
  return software;
}

double rotated() {
  const AttentionConfig& a = model().attention;
  return kTokens * static_cast<double>((a.heads + a.kv_heads) * a.head_dim);
}

double moved(const Kernel& kernel) { return (kernel.read + kernel.written).base(); }

TEST(RotaryKernels, OneReadsAndWritesEachValueOnce) {
  EXPECT_EQ(moved(forward({}, "rotary")), 4 * rotated());
  EXPECT_EQ(moved(backward({}, "rotary backward")), 4 * rotated());
}

// Six bytes of each cast and eight of the product of complex numbers.
TEST(RotaryKernels, ComplexNumbersAreCastThereAndBackBothWays) {
  const TrainingSoftware software = rotates_by(RotaryKernels::kComplex);
  EXPECT_EQ(moved(forward(software, "rotary")), 20 * rotated());
  EXPECT_EQ(moved(backward(software, "rotary backward")), 20 * rotated());
  EXPECT_EQ(forward(software, "rotary").launches, 2 * 3);
}

TEST(RotaryKernels, HalvesAreExchangedByCopies) {
  const TrainingSoftware software = rotates_by(RotaryKernels::kHalves);
  EXPECT_EQ(moved(forward(software, "rotary")), 2 * (5.5 + 4.5) * rotated());
  EXPECT_EQ(moved(backward(software, "rotary backward")), 2 * (7.5 + 7.5) * rotated());
  EXPECT_EQ(forward(software, "rotary").launches, 2 * 5);
  EXPECT_EQ(backward(software, "rotary backward").launches, 2 * 9);
}

TEST(RotaryKernels, WideHalvesMoveTwiceAsMuchAndTheirCasts) {
  const TrainingSoftware software = rotates_by(RotaryKernels::kWideHalves);
  EXPECT_EQ(moved(forward(software, "rotary")), (4 * 10 + 12) * rotated());
  EXPECT_EQ(moved(backward(software, "rotary backward")), (4 * 15 + 12) * rotated());
}

TEST(RotaryKernels, OfEnginesAreTheirOwn) {
  const LayerConfig& layer = model().layers[0];
  const StepList fused = layer_forward(model(), layer, work_of({}, Phase::kPrefill));
  const StepList other = layer_forward(
      model(), layer, work_of(rotates_by(RotaryKernels::kWideHalves), Phase::kPrefill));
  EXPECT_EQ(moved(kernel(fused, "rotary")), moved(kernel(other, "rotary")));
}

// silu reads and writes the gate, the product reads both and writes; backwards two products and
// the gradient of silu read two tensors and write one.
TEST(GatedActivation, ApartHasAKernelForTheFunctionAndForTheProduct) {
  TrainingSoftware apart;
  apart.gated_activation.value = Fusion::kApart;
  const double values = kTokens * static_cast<double>(model().mlp.intermediate);
  EXPECT_EQ(moved(forward({}, "activation")), 2 * 3 * values);
  EXPECT_EQ(moved(forward(apart, "activation")), 2 * 5 * values);
  EXPECT_EQ(forward(apart, "activation").launches, 2);
  EXPECT_EQ(moved(backward({}, "activation backward")), 2 * 5 * values);
  EXPECT_EQ(moved(backward(apart, "activation backward")), 2 * 9 * values);
  EXPECT_EQ(backward(apart, "activation backward").launches, 3);
}

TEST(GatedActivation, WithoutGatesIsOneKernel) {
  TrainingSoftware apart;
  apart.gated_activation.value = Fusion::kApart;
  LlmConfig plain = model();
  plain.mlp.gated = false;
  const LayerConfig& layer = plain.layers[0];
  EXPECT_EQ(moved(kernel(layer_forward(plain, layer, work_of(apart)), "activation")),
            moved(kernel(layer_forward(plain, layer, work_of({})), "activation")));
}

// By hand, for 16-bit scores: forward 15 B read and 14 B written, backward 19 and 14.
TEST(CausalSoftmax, ByOperatorsIsCastMaskedAndCastBackInFp32) {
  TrainingSoftware software;
  software.causal_softmax.value = MaskedSoftmax::kOperators;
  RankWork work = work_of(software);
  work.flash_attention = false;
  const LayerConfig& layer = model().layers[0];
  const double scores = static_cast<double>(model().attention.heads) * kTokens * kTokens;
  const Kernel forward = kernel(layer_forward(model(), layer, work), "attention softmax");
  EXPECT_EQ(forward.read.base(), (2 + 4 + 1 + 4 + 4) * scores);
  EXPECT_EQ(forward.written.base(), (4 + 4 + 4 + 2) * scores);
  EXPECT_EQ(forward.launches, 4);
  const Kernel backward =
      kernel(layer_backward(model(), layer, work), "attention softmax backward");
  EXPECT_EQ(backward.read.base(), (2 + 4 + 4 + 4 + 1 + 4) * scores);
  EXPECT_EQ(backward.written.base(), (4 + 4 + 4 + 2) * scores);
}

}  // namespace
}  // namespace orrery::eager_operators_test
