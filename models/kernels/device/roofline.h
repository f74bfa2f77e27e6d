// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "models/kernels/device/family.h"

namespace orrery {

/// Parameters of the p-norm roofline, in the order of RooflineFamily::parameters().
enum class RooflineParameter : std::size_t {
  kMatrixEfficiency,  ///< achieved share of the matrix peak
  kVectorEfficiency,  ///< achieved share of the vector peak
  kMemoryEfficiency,  ///< achieved share of the memory bandwidth, reading
  kWriteCost,         ///< what a written byte takes longer than one read, as a share of the latter
  kTurnaround,        ///< extra time of each byte of the smaller direction, likewise: DRAM loses
                      ///< cycles where reads and writes alternate
  kExponent,          ///< p of (t_matrix^p + t_vector^p + t_memory^p)^(1/p)
  kLaunch,            ///< fixed time of a kernel, in microseconds
};

/// The p-norm roofline: t = launch + (t_matrix^p + t_vector^p + t_memory^p + t_host^p +
/// t_exchange^p)^(1/p), each
/// term work over the achievable rate (peak times efficiency). p = infinity is the textbook
/// roofline, p = 1 no overlap at all. Priors are the accelerator's `kernel:` block.
class RooflineFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override;
  std::vector<double> priors(const AcceleratorConfig& accelerator,
                             Precision precision) const override;
  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* values) const override;
};

/// The textbook's roofline: FLOPs at the peak or bytes at the bandwidth, whichever takes longer, in
/// microseconds.
double textbook_roofline(const Kernel& kernel, const AcceleratorConfig& accelerator);

}  // namespace orrery
