// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/graph/costs.h"
#include "sim/graph/kernel.h"
#include "sim/machine/accelerator_config.h"

namespace orrery {

/// What kernels cost on one accelerator. Keeps what it works out, so it serves one thread at a
/// time.
class KernelPrices {
 public:
  virtual ~KernelPrices() = default;

  /// @throws config::ConfigError when the accelerator has no rate for the kernel's precision.
  virtual KernelCost cost(const Kernel& kernel) = 0;

  /// How much longer than cost() the kernel may really take: one factor for each of kDraws equally
  /// likely machines (draws.h), from the covariance of the fitted parameters and the residuals of
  /// the kernel's class.
  virtual std::vector<double> draws(const Kernel& kernel, std::int64_t seed) = 0;
};

/// Prices kernels on one rank (a die) of an accelerator.
class KernelModel {
 public:
  virtual ~KernelModel() = default;

  /// Prices on an accelerator, which has to live as long.
  virtual std::unique_ptr<KernelPrices> on(const AcceleratorConfig& accelerator) const = 0;

  /// Name of the calibration that the parameters come from; empty: priors alone.
  virtual std::string calibration() const = 0;

  /// A single price; who asks for several keeps on().
  KernelCost cost(const Kernel& kernel, const AcceleratorConfig& accelerator) const {
    return on(accelerator)->cost(kernel);
  }
  std::vector<double> draws(const Kernel& kernel, const AcceleratorConfig& accelerator,
                            std::int64_t seed) const {
    return on(accelerator)->draws(kernel, seed);
  }
};

/// Who starts the accelerator's matrix instructions; absent where its file does not say so.
std::optional<MatrixIssue> matrix_issue(const AcceleratorConfig& accelerator);

/// Whether products run beside the threads of a block, results in a memory of their own: tcgen05
/// and, an assumption without measurements, systolic arrays, for which the kernels of Blackwell
/// stand.
bool multiplies_apart(const AcceleratorConfig& accelerator);

/// Whether tensor cores scale blocks of operands, as those with 4-bit floats do.
bool scales_blocks(const AcceleratorConfig& accelerator);

/// Precision in which indexers of sparse attention run there: fp8, or bf16 where tensor cores have
/// no fp8.
Precision index_precision(const AcceleratorConfig& accelerator);

/// Dense matrix peak of one rank. fp8_block runs at the rate of fp8, fp32 on the vector lanes where
/// units for matrices have no products of it.
/// @throws config::ConfigError naming the precisions that the accelerator has.
FlopsPerSecond matrix_peak(const AcceleratorConfig& accelerator, Precision precision);
/// The same for a kernel: FLOPs of 2:4 sparse weights, counted as dense, at the sparse rate; latent
/// attention of new tokens over an 8-bit cache in 8 bits where kernels convert the queries.
FlopsPerSecond matrix_peak(const AcceleratorConfig& accelerator, const Kernel& kernel);

/// How long copy engines take for a copy at least: copies that run at the same time are dealt out
/// to the engines of their direction. 0 where the device tells nothing about its engines, and for
/// kernels that no engine runs.
Seconds engine_time(const Kernel& kernel, const AcceleratorConfig& accelerator);

/// The entry of a per-precision table that serves `precision`, or null.
template <class T>
const Fact<T>* find_precision(const std::map<Precision, Fact<T>>& table, Precision precision) {
  auto entry = table.find(precision);
  if (entry == table.end() && precision == Precision::kFp8Block)
    entry = table.find(Precision::kFp8);
  return entry == table.end() ? nullptr : &entry->second;
}

}  // namespace orrery
