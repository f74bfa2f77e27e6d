// SPDX-License-Identifier: Apache-2.0
#include "workloads/software/modules.h"
#include "workloads/software/training_software.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/unit/workloads/example_models.h"
#include "workloads/steps/training/training.h"

namespace orrery::modules_test {
namespace {

TEST(Modules, GradientsBelongWhereTheirForwardKernelsDo) {
  EXPECT_EQ(module_of("qkv"), "attention");
  EXPECT_EQ(module_of("qkv wgrad"), "attention");
  EXPECT_EQ(module_of("gate-up dgrad"), "MLP");
  EXPECT_EQ(module_of("shared expert down"), "experts");
  EXPECT_EQ(module_of("dispatch sort backward"), "experts");
  EXPECT_EQ(module_of("unpermute"), "experts");
  EXPECT_EQ(module_of("parallel block addition"), "MLP");
  EXPECT_EQ(module_of("loss backward"), "head and loss");
  EXPECT_EQ(module_of("gradient scale"), "optimizer");
  EXPECT_EQ(module_of("something else"), "other");
}

/// Steps of the software that fuses least.
TrainingConfig step() {
  TrainingConfig config;
  config.sequence = 512;
  config.flash_attention = false;
  config.dropout = true;
  TrainingSoftware software;
  for (Fact<Fusion> TrainingSoftware::*fusion :
       {&TrainingSoftware::gradient_accumulation, &TrainingSoftware::bias_addition,
        &TrainingSoftware::bias_gradients, &TrainingSoftware::attention_layout,
        &TrainingSoftware::cross_entropy})
    (software.*fusion).value = Fusion::kApart;
  software.norm_backward.value = NormBackward::kTwoPasses;
  config.software = std::make_shared<const TrainingSoftware>(software);
  return config;
}

TEST(Modules, EveryKernelOfAStepBelongsToOne) {
  for (const LlmConfig& model : {megatron_gpt(2, 1024, 16), library_model("gpt_oss_120b"),
                                 library_model("deepseek_v2_lite"), library_model("gemma_2_9b")}) {
    for (const Kernel& kernel : build_training(model, step()).program.kernels)
      EXPECT_NE(module_of(kernel.name), "other") << model.name << ": " << kernel.name;
  }
}

}  // namespace
}  // namespace orrery::modules_test
