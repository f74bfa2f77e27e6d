// SPDX-License-Identifier: Apache-2.0
// A class of kernels in one file: its name, and the family that prices it.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <vector>

#include "models/kernels/calibrated_model.h"
#include "sim/config/load.h"
#include "sim/graph/kernel_classes.h"
#include "sim/machine/kernel_model.h"
#include "tests/unit/machine/shipped_library.h"

namespace orrery::added_class_test {
namespace {

const KernelClass kSort = added_kernel_class("test_sort");

/// A launch, and a pass over the bytes for each bit of a key.
class SortFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override {
    static const std::vector<ParameterInfo> table = {{"launch", "us", 0.1, 1000},
                                                     {"memory_efficiency", "1", 0.05, 1}};
    return table;
  }
  std::vector<double> priors(const AcceleratorConfig& /*accelerator*/, Precision) const override {
    return {2, 0.5};
  }
  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* values) const override {
    const double bytes = (kernel.read + kernel.written).base() * static_cast<double>(kernel.k);
    KernelTime time;
    time.launch_us = values[0];
    time.total_us =
        values[0] + bytes / (accelerator.memory.bandwidth.value.base() * 1e-6 * values[1]);
    return time;
  }
};

const RegisterTileFamily<SortFamily> registered_sort(kSort, "a pass for each bit");

/// 32 bits of 10^6 keys.
Kernel sort() {
  Kernel kernel;
  kernel.kind = kSort;
  kernel.m = 1'000'000;
  kernel.k = 32;
  kernel.read = kernel.written = Bytes(4e6);
  return kernel;
}

/// A calibration of tiles with one fit.
Calibration fitted(const KernelFit& fit) {
  Calibration calibration;
  calibration.id = "test_chip";
  calibration.model = "tiles";
  calibration.fits = {fit};
  return calibration;
}

TEST(AddedClass, HasANameInFilesAsOthersHave) {
  EXPECT_STREQ(to_string(kSort), "test_sort");
  EXPECT_EQ(kernel_class_named("test_sort"), kSort);
  EXPECT_EQ(kernel_class_named("gemm"), KernelClass::kGemm);
  EXPECT_EQ(kernel_class_named("sort of nobody"), std::nullopt);
}

TEST(AddedClass, IsTheSameForAllFilesThatNameIt) {
  EXPECT_EQ(added_kernel_class("test_sort"), kSort);
  EXPECT_EQ(added_kernel_class("lora"), KernelClass::kLora);
}

// 8 MB, 32 times, at half of 3.35 TB/s.
TEST(AddedClass, IsPricedByItsFamily) {
  const AcceleratorConfig h100 = shipped_accelerator("h100_sxm");
  const KernelCost cost = CalibratedModel(fitted({})).cost(sort(), h100);
  const double bandwidth = h100.memory.bandwidth.value.base();
  EXPECT_NEAR(static_cast<double>(cost.duration), 2e6 + 32 * 8e6 / (0.5 * bandwidth) * 1e12, 10);
  EXPECT_EQ(cost.provenance, Provenance::kAnalytic);
}

TEST(AddedClass, TakesTheParametersOfAFit) {
  KernelFit fit;
  fit.parameters["test_sort.launch"] = {7, "us", 0, ParameterProvenance::kFitted};
  fit.shapes[kSort] = {{1, 1}, {1, 1'000'000}, {0, 0}, {1, 32}};
  const AcceleratorConfig h100 = shipped_accelerator("h100_sxm");
  const KernelCost by_fit = CalibratedModel(fitted(fit)).cost(sort(), h100);
  const KernelCost by_priors = CalibratedModel(fitted({})).cost(sort(), h100);
  EXPECT_EQ(by_fit.launch - by_priors.launch, 5'000'000);
  EXPECT_NE(by_fit.provenance, Provenance::kAnalytic);
}

struct Shapes {
  std::map<KernelClass, ShapeRange> of;
  static const config::Schema<Shapes>& schema() {
    static const auto schema =
        config::Schema<Shapes>("shapes", "of classes").required("of", &Shapes::of, "by class");
    return schema;
  }
};

TEST(AddedClass, IsReadWhereAFileNamesClasses) {
  config::Diagnostics diagnostics;
  const config::Node node =
      config::parse_yaml("of: {test_sort: {batch: [1, 1], m: [1, 9], n: [0, 0], k: [1, 32]}}\n",
                         "test.yaml", diagnostics);
  const auto shapes = config::read<Shapes>(node, diagnostics, config::default_library());
  diagnostics.throw_if_errors();
  EXPECT_EQ(shapes.of.begin()->first, kSort);
}

}  // namespace
}  // namespace orrery::added_class_test
