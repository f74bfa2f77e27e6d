// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/measured_kernels.h"

#include <algorithm>

#include "validation/calibration/operator_kernels.h"

namespace orrery {
namespace {

double time_us(const Kernel& kernel, KernelPrices& prices) {
  return to_seconds(prices.cost(kernel).duration).base() * 1e6;
}

/// Whether a row is about the kernel, rather than has it beside what it is about.
bool is_measured(const Kernel& kernel, const std::vector<Kernel>& row) {
  return row.size() == 1 || kernel.matrix_flops.base() > 0;
}

}  // namespace

std::vector<MeasuredKernel> measured_kernels(const OperatorTable& table,
                                             const AcceleratorConfig& accelerator,
                                             const KernelModel& others) {
  const auto prices = others.on(accelerator);
  std::vector<MeasuredKernel> measured;
  for (const OperatorRow& row : table.rows) {
    if (table.systems[row.system] != accelerator.id) continue;
    const auto precision = row_precision(table.kind, row);
    if (!precision || find_precision(accelerator.compute.matrix, *precision) == nullptr) continue;
    const std::vector<Kernel> kernels = operator_kernels(table.kind, row, *precision);
    double about = 0, beside = 0;
    for (const Kernel& kernel : kernels)
      (is_measured(kernel, kernels) ? about : beside) += time_us(kernel, *prices);
    // A row that is shorter than what goes beside it says nothing about the rest.
    if (about <= 0 || row.latency_us <= beside) continue;
    const double ratio = (row.latency_us - beside) / about;
    for (const Kernel& kernel : kernels)
      if (is_measured(kernel, kernels))
        measured.push_back({kernel, ratio * time_us(kernel, *prices)});
  }
  return measured;
}

}  // namespace orrery
