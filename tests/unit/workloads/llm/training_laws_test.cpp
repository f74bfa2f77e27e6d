// SPDX-License-Identifier: Apache-2.0
// What holds of a training step of every family: a row of configs/models/hf each.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "sim/config/library.h"
#include "sim/graph/verify.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/layers.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/layers/rank_parameters.h"
#include "workloads/models/encoder_alone.h"
#include "workloads/software/training_software.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/training/training.h"

namespace orrery::training_laws_test {
namespace {

std::vector<std::string> library_files() {
  std::vector<std::string> names;
  const std::filesystem::path folder =
      std::filesystem::path(ORRERY_SOURCE_DIR) / "configs/models/hf";
  for (const auto& file : std::filesystem::directory_iterator(folder))
    names.push_back(file.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

bool trains(const LlmConfig& model) {
  return !is_encoder_alone(model) &&
         std::all_of(model.layers.begin(), model.layers.end(), [&](const LayerConfig& layer) {
           const Mixer* mixer = mixer_of(model, layer);
           return mixer == nullptr || mixer->trains();
         });
}

/// FLOPs of products with weights; inputs of indexers are detached, so that those have gradients of
/// weights alone.
struct ProductFlops {
  double all = 0, detached = 0;
};

ProductFlops product_flops(const StepList& list) {
  ProductFlops flops;
  for (const Step& step : list.steps()) {
    const Kernel* kernel = step.kernel();
    if (kernel == nullptr) continue;
    if (kernel->kind != KernelClass::kGemm && kernel->kind != KernelClass::kGroupedGemm) continue;
    flops.all += kernel->matrix_flops.base();
    if (kernel->name.rfind("index", 0) == 0) flops.detached += kernel->matrix_flops.base();
  }
  return flops;
}

class TrainedFamilies : public testing::TestWithParam<std::string> {};

TEST_P(TrainedFamilies, StepsHaveThreeTimesTheForwardProducts) {
  const LlmConfig model = library_model(GetParam());
  if (!trains(model)) GTEST_SKIP() << "inference alone";
  RankWork work;
  work.batch.sequences = 2;
  work.batch.query = work.batch.context = 256;
  std::vector<LayerConfig> seen;
  for (const LayerConfig& layer : model.layers) {
    if (std::find(seen.begin(), seen.end(), layer) != seen.end()) continue;
    seen.push_back(layer);
    work.batch.encoder = model.has_encoder() ? 256 : 0;
    const ProductFlops forward = product_flops(layer_forward(model, layer, work));
    const ProductFlops backward = product_flops(layer_backward(model, layer, work));
    EXPECT_NEAR(backward.all / (2 * forward.all - forward.detached), 1, 1e-12);
    EXPECT_DOUBLE_EQ(backward.detached, forward.detached);
  }
}

TEST_P(TrainedFamilies, EveryParameterHasAGradient) {
  const LlmConfig model = library_model(GetParam());
  if (!trains(model)) GTEST_SKIP() << "inference alone";
  TrainingConfig config;
  config.global_batch = 1;
  config.sequence = 256;
  if (model.has_encoder()) config.encoder_sequence = 256;
  const MemoryUse use = training_memory(model, config).front();
  const ParameterCount count = count_parameters(model);
  const auto parameters = static_cast<double>(count.total - count.vision);  // towers do not train
  EXPECT_DOUBLE_EQ(use.weights.base(), 2 * parameters);
  EXPECT_DOUBLE_EQ(use.gradients.base(),
                   config.software->gradient_bytes(config.precision) * parameters);
}

// Counts of parameters follow from the weights of a mixer, FLOPs of steps from its products.
TEST_P(TrainedFamilies, ProductsOfAMixerReadEachOfItsMatricesOnce) {
  const LlmConfig model = library_model(GetParam());
  for (const LayerConfig& layer : model.layers) {
    const Mixer* mixer = mixer_of(model, layer);
    // Blocks that layers share are read once by each use.
    if (mixer == nullptr || layer.mixer == MixerKind::kSharedBlock) continue;
    for (const int tp : {1, 2}) {
      RankWork work;
      work.split.tp = tp;
      work.batch.query = work.batch.context = 64;
      StepList steps;
      const LayerTask task{model, layer, work};
      run_forward(steps, task, mixer->ops(task));
      EXPECT_DOUBLE_EQ(
          product_flops(steps).all,
          2.0 * 64 * static_cast<double>(mixer->weights(model, layer, tp).parameters().matrices()))
          << layer.mixer.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Library, TrainedFamilies, testing::ValuesIn(library_files()),
                         [](const auto& row) { return row.param; });

}  // namespace
}  // namespace orrery::training_laws_test
