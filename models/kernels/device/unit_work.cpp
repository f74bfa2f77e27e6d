// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/device/unit_work.h"

#include <algorithm>
#include <cmath>

#include "models/kernels/device/cache_parts.h"
#include "models/kernels/device/tile_menu.h"
#include "sim/machine/clock.h"
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

double exponentials_of_clock(const AcceleratorConfig& a) {
  constexpr double kVectorFlops = 16;
  const double rate = a.compute.special ? a.compute.special->value.base()
                                        : a.compute.vector.value.base() / kVectorFlops;
  return rate / (a.compute.units.value * boost_clock(a).base());
}

}  // namespace

double vector_us(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  const double dies = accelerator.dies;
  const double lanes =
      kernel.vector_flops.base() / (accelerator.compute.vector.value.base() / dies) * kMicro;
  if (!accelerator.compute.special) return lanes;
  return std::max(lanes, kernel.exponentials.base() /
                             (accelerator.compute.special->value.base() / dies) * kMicro);
}

bool is_recurrence(const Kernel& kernel) {
  return kernel.kind == KernelClass::kScan && kernel.k > 0 && kernel.matrix_flops.base() == 0;
}

double recurrence_us(const Kernel& kernel, const AcceleratorConfig& accelerator, double vector) {
  // A token's operands are on lines of the memory that nothing has fetched before: 479 clocks on an
  // H100 (recalled: Luo et al. 2024, arXiv 2402.13499), and two barriers. An estimate for others.
  constexpr double kWait = 540, kShared = 128.0 / sizeof(float);
  // Blocks that find registers: 64 threads of 128 in a file of 65,536.
  constexpr double kBlocks = 8;
  const double units = static_cast<double>(accelerator.compute.units.value) / accelerator.dies;
  const double clocks = accelerator.compute.clock.value.base() / kMicro;  // a us
  const auto blocks = static_cast<double>(kernel.batch), tokens = static_cast<double>(kernel.m);
  const double elements = static_cast<double>(kernel.n) * static_cast<double>(kernel.k);
  const double operands =
      std::ceil(kernel.vector_flops.base() / (2 * blocks * tokens * elements)) * elements;
  const double block = tokens * operands / kShared / clocks;
  const double waves = std::ceil(blocks / (units * kBlocks));
  return std::max(
      {vector, std::ceil(blocks / units) * block, waves * (block + tokens * kWait / clocks)});
}

Widening widening_of(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  if (!is_widened(kernel)) return {};
  constexpr double kInstructionFlops = 2;
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
  return {time * kMicro, lanes && kernel.m > 1};
}

double fitted_exponentials_us(const AcceleratorConfig& accelerator) {
  return 16 * accelerator.compute.clock.value.base() / 1e6;
}

double exponentials_over(const AcceleratorConfig& a, const AcceleratorConfig& b) {
  constexpr double kRounding = 1e-3;  // of data sheets
  const double ratio = exponentials_of_clock(a) / exponentials_of_clock(b);
  return std::abs(ratio - 1) < kRounding ? 1 : ratio;
}

double unit_kclk_us(const AcceleratorConfig& accelerator) {
  constexpr double kBytesPerClock = 128;
  const double clock = accelerator.compute.clock.value.base();
  if (!accelerator.core) return 1e9 / clock;
  const double shared = accelerator.core->shared_bandwidth.value.base() / kBytesPerClock;
  // By the clock itself where the width is about that, so that another clock alone shows.
  const bool same = shared > 0.5 * clock && shared < 1.5 * clock;
  return 1e9 / (same || shared == 0 ? clock : shared);
}

}  // namespace orrery
