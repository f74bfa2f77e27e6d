// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/device/widening.h"

#include <algorithm>
#include <cmath>

#include "models/kernels/device/tile_menu.h"
#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

/// Vector instructions for each weight: a mask; its multiply-add is the product's.
constexpr double kMask = 1;
/// Rows of a block: of llama.cpp's products in the lanes of Apple's GPUs (ggml-metal.metal,
/// kernel_mul_mm: BLOCK_SIZE_N), and of the largest tiles where there are units for matrices.
constexpr double kRowsOfLanes = 32, kRowsOfMatrixUnits = 128;

/// Whether products run in the vector lanes, which multiply floats: what is masked out of a word
/// has to be converted. Matrix units get halves that are put together bit by bit (Frantar et al.,
/// MARLIN, arXiv 2408.11743).
bool multiplies_in_lanes(const AcceleratorConfig& accelerator, Precision precision) {
  constexpr double kRounding = 1.01;  // of data sheets
  return (matrix_peak(accelerator, precision) * accelerator.dies).base() <
         kRounding * accelerator.compute.vector.value.base();
}

}  // namespace

Widening widening_of(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  if (!is_widened(kernel)) return {};
  constexpr double kInstructionFlops = 2, kMicrosecondsOfASecond = 1e6;
  const bool grouped = kernel.kind == KernelClass::kGroupedGemm;
  const double matrices = grouped ? kernel.load.active : static_cast<double>(kernel.batch);
  const bool lanes = multiplies_in_lanes(accelerator, kernel.precision);
  const double rows = static_cast<double>(std::max<std::int64_t>(1, kernel.m));
  const double blocks = std::ceil(rows / (lanes ? kRowsOfLanes : kRowsOfMatrixUnits));
  const double weights =
      matrices * blocks * static_cast<double>(kernel.n) * static_cast<double>(kernel.k);
  const auto seconds = [&](double each, FlopsPerSecond peak) {
    return weights * each * accelerator.dies / peak.base();
  };
  double time = seconds(kMask * kInstructionFlops, accelerator.compute.vector.value);
  if (lanes && accelerator.compute.special)
    time = std::max(time, seconds(1, accelerator.compute.special->value));
  return {time * kMicrosecondsOfASecond, lanes && kernel.m > 1};
}

}  // namespace orrery
