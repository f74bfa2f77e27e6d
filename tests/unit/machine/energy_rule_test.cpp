// SPDX-License-Identifier: Apache-2.0
// "A word from DRAM costs 100 to 1000 multiply-adds", from the parameters of the devices.
#include "sim/machine/energy_rule.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/machine/shipped_library.h"

namespace orrery::energy_rule_test {
namespace {

using namespace literals;

double ratio(const std::string& name) {
  const auto cost = word_cost(shipped_accelerator(name));
  return cost ? cost->multiply_adds : 0;
}

// Horowitz, ISSCC 2014, 45 nm: 640 pJ a 32-bit word are 160 pJ/B; 0.9 + 3.7 pJ an fp32 multiply-add
// are 2.3 pJ/FLOP. 640 / 4.6 = 139.1.
TEST(EnergyRule, TheTextbookFiguresOf45NanometresGive139) {
  EXPECT_NEAR(multiply_adds_per_word(160_pJpB, 2.3_pJpFLOP), 139.1, 0.1);
}

// A100: (35.6 - 6) x 4 / (2 x 0.473) = 125; H100: (34 - 6) x 4 / 0.688 = 163; H200: (32.4 - 6) x 4
// / 0.688 = 153; B200 and GB200: (32.4 - 6) x 4 / 0.52 = 203.
TEST(EnergyRule, FromA100ToB200AWordCosts100To205MultiplyAddsOfBf16) {
  for (const char* name : {"a100_sxm", "h100_sxm", "h200_sxm", "b200_sxm", "gb200"}) {
    EXPECT_EQ(word_cost(shipped_accelerator(name))->precision, Precision::kBf16) << name;
    EXPECT_GT(ratio(name), 100) << name;
    EXPECT_LT(ratio(name), 205) << name;
  }
  EXPECT_NEAR(ratio("a100_sxm"), 125.2, 0.1);
  EXPECT_NEAR(ratio("b200_sxm"), 203.1, 0.1);
}

// 31.2 pJ/B x 4 B / (2 x 0.9 pJ) = 69; the 0.86 pJ of the file give 72.6.
TEST(EnergyRule, OnTheV100AWordCosts69MultiplyAddsOfFp16) {
  EXPECT_EQ(word_cost(shipped_accelerator("v100_sxm"))->precision, Precision::kFp16);
  EXPECT_NEAR(ratio("v100_sxm"), 69, 6.9);
}

TEST(EnergyRule, EveryDeviceOfTheLibraryHasARatio) {
  for (const std::string& name : shipped_library().names("accelerators")) {
    const bool on_chip = shipped_accelerator(name).memory.kind == "SRAM";  // words are next to it
    EXPECT_GT(ratio(name), on_chip ? 1 : 60) << name;
    EXPECT_LT(ratio(name), 1000) << name;
  }
}

// Without a cache the way on the chip is the shared memory's: 31.4 - 1.75 = 29.65 pJ/B on the TPU
// v5p, x 4 B = 118.6 pJ.
TEST(EnergyRule, TheWordIsThatOfTheMemoryItself) {
  EXPECT_NEAR(word_cost(shipped_accelerator("tpu_v5p"))->word.base(), 118.6e-12, 1e-15);
}

TEST(EnergyRule, WithoutTheEnergyOfAMultiplyAddThereIsNone) {
  AcceleratorConfig accelerator = shipped_accelerator("h100_sxm");
  accelerator.energy.multiply_add.clear();
  EXPECT_FALSE(word_cost(accelerator));
}

}  // namespace
}  // namespace orrery::energy_rule_test
