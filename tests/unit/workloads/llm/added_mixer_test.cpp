// SPDX-License-Identifier: Apache-2.0
// A mixer in one file: all that follows from its weights and operations.
#include <gtest/gtest.h>

#include "workloads/layers/layers.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/layers/rank_parameters.h"
#include "workloads/ops/kernels.h"

namespace orrery::added_mixer_test {
namespace {

constexpr MixerKind kGatedUnit{"gated units of a test"};

Linear unit_up(const LayerTask& task) {
  return mixer_matrix(task, "unit up", task.model.hidden,
                      2 * task.model.hidden / task.work.split.tp, MatrixSplit::kColumns);
}

Linear unit_down(const LayerTask& task) {
  return mixer_matrix(task, "unit down", task.model.hidden / task.work.split.tp, task.model.hidden,
                      MatrixSplit::kRows);
}

Tensor unit_columns(const LayerTask& task) {
  return kept::of_tokens("unit columns", task, unit_up(task).out, task.bytes());
}

Tensor unit_product(const LayerTask& task) {
  return kept::of_tokens("unit product", task, unit_down(task).in, task.bytes());
}

class GatedUnit final : public Mixer {
 public:
  std::string name() const override { return "unit"; }
  PartWeights weights(const LayerTask& task) const override {
    return {{unit_up(task), unit_down(task)}, 0, 3};
  }
  SequenceCache cache(const LlmConfig& model, const LayerConfig& /*layer*/, int tp) const override {
    return {0, 2.0 * static_cast<double>(model.hidden / tp)};
  }
  void require_split(const LlmConfig& /*model*/, const LayerConfig& /*layer*/,
                     int /*tp*/) const override {}
  std::vector<LayerOp> ops(const LayerTask& task) const override {
    const Kernel gate = stream("unit gate", KernelClass::kElementwise, task.work.tokens(),
                               unit_down(task).in, {4, 2, 1});
    Kernel gradient = gate;
    gradient.name += " backward";
    return {input_op({unit_up(task)}, "unit norm"),
            {kernels({gate}), kernels({gradient}), {unit_columns}, {unit_product}},
            row_op(unit_down(task), {unit_product})};
  }
  void part_forward(StepList& /*steps*/, const LayerTask& /*task*/,
                    const AttentionPart& /*part*/) const override {}
};

const GatedUnit gated_unit{};
const AddedMixer added_gated_unit(kGatedUnit, gated_unit);

LlmConfig unit_model() {
  LlmConfig model;
  model.hidden = 8;
  model.vocabulary = 16;
  model.mlp.intermediate = 32;
  model.layers = {{.mixer = kGatedUnit}};
  return model;
}

std::vector<std::string> names(const StepList& steps, const std::string& start) {
  std::vector<std::string> found;
  for (const Step& step : steps.steps())
    if (step.name().starts_with(start)) found.push_back(step.name());
  return found;
}

TEST(AddedMixer, IsFoundByItsKind) {
  const LlmConfig model = unit_model();
  EXPECT_EQ(mixer_of(model, model.layers[0]), &gated_unit);
  EXPECT_TRUE(model.has(kGatedUnit));
  EXPECT_TRUE(holds_states(model));
}

// 8 x 16 and 8 x 8 elements, of which 2 ranks split all; 3 further elements are whole.
TEST(AddedMixer, HasTheParametersOfItsWeights) {
  const LlmConfig model = unit_model();
  EXPECT_EQ(mixer_of(kGatedUnit).weights(model, model.layers[0], 1).parameters().total(), 192 + 3);
  const RankParameters half = layer_halves(model, model.layers[0], {.tp = 2}).attention;
  EXPECT_EQ(half.split, 192 / 2);
  EXPECT_EQ(half.whole, 3 + 8);  // a norm
  EXPECT_EQ(half.quantised(), 192 / 2);
}

TEST(AddedMixer, RunsItsOperationsForwardAndTheirGradientsInReverse) {
  const LlmConfig model = unit_model();
  RankWork work;
  work.batch.query = work.batch.context = 4;
  const std::vector<std::string> forward = {"unit norm", "unit up", "unit gate", "unit down",
                                            "unit residual"};
  EXPECT_EQ(names(layer_forward(model, model.layers[0], work), "unit"), forward);
  const std::vector<std::string> backward = {
      "unit down dgrad", "unit down wgrad",    "unit gate backward",         "unit up dgrad",
      "unit up wgrad",   "unit norm backward", "unit norm backward residual"};
  EXPECT_EQ(names(layer_gradients(model, model.layers[0], work), "unit"), backward);
}

// What the forward pass makes, the backward pass frees.
TEST(AddedMixer, FreesAllTensorsThatItMakes) {
  const LlmConfig model = unit_model();
  RankWork work;
  work.batch.query = work.batch.context = 4;
  work.passes.tensors = true;
  StepList steps = layer_forward(model, model.layers[0], work);
  const auto left = [](const StepList& list) {
    return list.left(TensorRole::kActivation).size() + list.left(TensorRole::kWorking).size();
  };
  EXPECT_GT(left(steps), 2U);
  steps.append(layer_backward(model, model.layers[0], work));
  EXPECT_EQ(left(steps), 0U);
}

}  // namespace
}  // namespace orrery::added_mixer_test
