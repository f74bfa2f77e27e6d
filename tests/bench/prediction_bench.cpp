// SPDX-License-Identifier: Apache-2.0
// Predictions of kernel times by the calibrated model of an H200.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "models/kernels/calibrated_model.h"
#include "sim/config/load.h"
#include "tests/bench/contest.h"
#include "tests/bench/contestants.h"
#include "workloads/ops/kernels.h"

namespace orrery::bench {
namespace {

/// More than a model keeps, so that no shape of a round is known from the one before.
constexpr std::size_t kShapes = 20'000;
constexpr std::size_t kRounds = 20;

AcceleratorConfig accelerator() {
  const config::Library& library = config::default_library();
  return config::load<AcceleratorConfig>(library.locate("accelerators", "h200_sxm", ""), library,
                                         "accelerators");
}

/// Up to `most`, uniform by its logarithm.
std::int64_t size(Random& random, double most) {
  const double share = static_cast<double>(random(1 << 20)) / (1 << 20);
  return std::llround(std::exp(share * std::log(most)));
}

Kernel product(Random& random) {
  return gemm("gemm", Precision::kBf16,
              {.m = size(random, 16384), .n = 64 * size(random, 512), .k = 64 * size(random, 512)});
}

Kernel attention(Random& random) {
  Kernel kernel;
  kernel.kind = KernelClass::kAttentionPrefill;
  const std::int64_t sequences = size(random, 32), kv_heads = size(random, 8);
  kernel.batch = sequences * kv_heads * 4;
  kernel.m = kernel.n = size(random, 16384);
  kernel.k = 128;
  kernel.attention = {.sequences = sequences, .kv_heads = kv_heads};
  const double pairs = static_cast<double>(kernel.batch) * static_cast<double>(kernel.m) *
                       static_cast<double>(kernel.m + 1) / 2;
  kernel.matrix_flops = Flops(4 * 128 * pairs);
  kernel.vector_flops = Flops(5 * pairs);
  return kernel;
}

Kernel row_kernel(Random& random) {
  return stream("norm", KernelClass::kNormalization, size(random, 16384), 8192, {2, 2, 8});
}

using Make = std::function<Kernel(Random&)>;

/// What a layer of a language model has: four products, attention, three kernels of rows.
Kernel of_a_layer(Random& random) {
  const std::uint64_t turn = random(8);
  if (turn < 4) return product(random);
  return turn == 4 ? attention(random) : row_kernel(random);
}

std::vector<Kernel> kernels(const Make& make, std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<Kernel> all;
  all.reserve(count);
  for (std::size_t i = 0; i < count; ++i) all.push_back(make(random));
  return all;
}

/// The calibration without its tables, or with tables of `ratios` made-up kernels.
Calibration calibration(const Make& make, std::size_t ratios) {
  Calibration calibration =
      load_calibration(config::default_library().locate("calibrations", "h200_sxm", ""));
  for (KernelFit& fit : calibration.fits) {
    fit.ratios = {};
    if (fit.precision != Precision::kBf16) continue;
    Random random(3);
    std::vector<MeasuredRatio> measured;
    for (const Kernel& kernel : kernels(make, ratios, 2))
      measured.push_back({kernel, 0.9 + 0.2 * static_cast<double>(random(1000)) / 1000});
    fit.ratios = std::move(measured);
  }
  return calibration;
}

Sample predictions(const Make& make, std::size_t ratios, std::size_t shapes) {
  const AcceleratorConfig on = accelerator();
  const CalibratedModel model(calibration(make, ratios));
  const std::vector<Kernel> all = kernels(make, shapes, 1);
  Picoseconds sum = 0;
  for (const Kernel& kernel : all) sum += model.cost(kernel, on).duration;
  const std::size_t rounds = kRounds * kShapes / shapes;
  const double begin = cpu_seconds();
  for (std::size_t round = 0; round < rounds; ++round)
    for (const Kernel& kernel : all) sum += model.cost(kernel, on).duration;
  const double seconds = cpu_seconds() - begin;
  return {sum > 0 ? seconds / static_cast<double>(rounds * shapes) : 0, 0};
}

}  // namespace

void add_prediction_contest() {
  constexpr std::size_t kRatios = 5000, kOfAModel = 40;
  const auto with = [](Make make, std::size_t ratios, std::size_t shapes) {
    return [=] { return predictions(make, ratios, shapes); };
  };
  add_contestant("predict/layer", with(of_a_layer, 0, kShapes));
  add_contestant("predict/gemm", with(product, 0, kShapes));
  add_contestant("predict/prefill", with(attention, 0, kShapes));
  add_contestant("predict/rows", with(row_kernel, 0, kShapes));
  add_contestant("predict/ratios/gemm", with(product, kRatios, kShapes));
  add_contestant("predict/ratios/prefill", with(attention, kRatios, kShapes));
  add_contestant("predict/ratios/again", with(of_a_layer, kRatios, kOfAModel));
  const auto demand = [](const char* id, const std::string& text, const std::string& name,
                         double most, bool guide) {
    add_comparison(
        {id, text, "predict/" + name, "", Quantity::kSeconds, Limit::kAtMost, most, guide});
  };
  demand("P1", "prediction of a kernel of a layer, closed form [s]", "layer", 1e-6, false);
  demand("P1", "prediction of a product, closed form [s]", "gemm", 1e-6, false);
  demand("P1", "prediction of attention over a prompt, closed form [s]", "prefill", 1e-6, false);
  demand("P2", "new product, 5,000 measured ratios [s]", "ratios/gemm", 20e-6, true);
  demand("P2", "new attention over a prompt, 5,000 measured ratios [s]", "ratios/prefill", 20e-6,
         true);
  demand("P3", "a kernel known from before, 5,000 measured ratios [s]", "ratios/again", 0.3e-6,
         true);
}

}  // namespace orrery::bench
