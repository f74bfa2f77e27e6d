// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/device/recurrence.h"

#include <algorithm>
#include <cmath>

namespace orrery {

bool is_recurrence(const Kernel& kernel) {
  return kernel.kind == KernelClass::kScan && kernel.k > 0 && kernel.matrix_flops.base() == 0;
}

double recurrence_us(const Kernel& kernel, const AcceleratorConfig& accelerator, double vector) {
  constexpr double kPerMicro = 1e6;
  // A token's operands are on lines of the memory that nothing has fetched before: 479 clocks on an
  // H100 (recalled: Luo et al. 2024, arXiv 2402.13499), and two barriers. An estimate for others.
  constexpr double kWait = 540, kShared = 128.0 / sizeof(float);
  // Blocks that find registers: 64 threads of 128 in a file of 65,536.
  constexpr double kBlocks = 8;
  const double units = static_cast<double>(accelerator.compute.units.value) / accelerator.dies;
  const double clocks = accelerator.compute.clock.value.base() / kPerMicro;  // a us
  const auto blocks = static_cast<double>(kernel.batch), tokens = static_cast<double>(kernel.m);
  const double elements = static_cast<double>(kernel.n) * static_cast<double>(kernel.k);
  const double operands =
      std::ceil(kernel.vector_flops.base() / (2 * blocks * tokens * elements)) * elements;
  const double block = tokens * operands / kShared / clocks;
  const double waves = std::ceil(blocks / (units * kBlocks));
  return std::max(
      {vector, std::ceil(blocks / units) * block, waves * (block + tokens * kWait / clocks)});
}

}  // namespace orrery
