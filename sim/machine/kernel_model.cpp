// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/kernel_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "sim/config/diagnostics.h"
#include "sim/units/comma_separated.h"

namespace orrery {

std::optional<MatrixIssue> matrix_issue(const AcceleratorConfig& accelerator) {
  const bool known = accelerator.core && accelerator.core->matrix_tile;
  return known ? accelerator.core->matrix_tile->issue : std::nullopt;
}

bool multiplies_apart(const AcceleratorConfig& accelerator) {
  const auto issue = matrix_issue(accelerator);
  return issue == MatrixIssue::kThread || issue == MatrixIssue::kArray;
}

bool scales_blocks(const AcceleratorConfig& accelerator) {
  return accelerator.compute.matrix.contains(Precision::kNvfp4);
}

Precision index_precision(const AcceleratorConfig& accelerator) {
  return find_precision(accelerator.compute.matrix, Precision::kFp8) ? Precision::kFp8
                                                                     : Precision::kBf16;
}

FlopsPerSecond matrix_peak(const AcceleratorConfig& accelerator, Precision precision) {
  if (const auto* peak = find_precision(accelerator.compute.matrix, precision)) {
    return peak->value / accelerator.dies;
  }
  // Units for matrices seldom have products of fp32; the vector lanes do them.
  if (precision == Precision::kFp32) return accelerator.compute.vector.value / accelerator.dies;
  throw config::KeyError("precision",
                         fmt::format("{} has no matrix rate for '{}'; it has {}", accelerator.name,
                                     to_string(precision),
                                     comma_joined(accelerator.compute.matrix, [](const auto& rate) {
                                       return to_string(rate.first);
                                     })));
}

namespace {

/// Blackwell's kernels of new tokens over latents multiply in the format of the cache: queries are
/// converted before, and 128 heads over 8-bit caches were measured 1.2 times as fast as 16-bit
/// products could be.
Precision products_of(const AcceleratorConfig& accelerator, const Kernel& kernel) {
  const bool converts = kernel.kind == KernelClass::kMlaDecode && kernel.attention.wide_queries &&
                        multiplies_apart(accelerator) &&
                        find_precision(accelerator.compute.matrix, Precision::kFp8);
  return converts ? Precision::kFp8 : kernel.precision;
}

}  // namespace

FlopsPerSecond matrix_peak(const AcceleratorConfig& accelerator, const Kernel& kernel) {
  const FlopsPerSecond dense = matrix_peak(accelerator, products_of(accelerator, kernel));
  return kernel.weights.sparse ? dense * accelerator.compute.structured_sparsity.value : dense;
}

Seconds engine_time(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  if (kernel.kind != KernelClass::kCopy || !accelerator.copy_engines) return {};
  const CopyEngineConfig& engines = *accelerator.copy_engines;
  const auto copies = std::max<std::int64_t>(1, kernel.batch);
  const auto used = std::min<std::int64_t>(copies, engines.of_direction());
  const std::int64_t whole = (copies + used - 1) / used;
  const auto rounds = static_cast<double>(whole);
  const Bytes moved = kernel.host.base() > 0 ? kernel.host : kernel.written;
  return moved * (rounds / static_cast<double>(copies)) /
         (engines.bandwidth.value / accelerator.dies);
}

}  // namespace orrery
