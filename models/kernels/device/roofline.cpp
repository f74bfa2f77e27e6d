// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/device/roofline.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "models/kernels/device/array_time.h"
#include "models/kernels/device/cache_parts.h"
#include "models/kernels/device/dram.h"
#include "models/kernels/device/exchange.h"
#include "models/kernels/device/unit_work.h"
#include "sim/config/diagnostics.h"
#include "sim/machine/clock.h"
#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

/// Time that attention loses, because its products wait for softmax and its blocks for each other:
/// as launches, and as the share of its rates that it reaches. Found on measured kernels of A100,
/// H100 and B200 by priors (validation/README.md, "Devices that nobody measured").
struct AttentionLosses {
  double launches = 0, share = 1;
};

bool is_prefill(KernelClass kind) {
  return kind == KernelClass::kAttentionPrefill || kind == KernelClass::kMlaPrefill;
}

AttentionLosses attention_losses(KernelClass kind) {
  if (is_prefill(kind)) return {6, 0.45};
  const bool decode = kind == KernelClass::kAttentionDecode || kind == KernelClass::kMlaDecode;
  return decode ? AttentionLosses{4, 1} : AttentionLosses{};
}

/// Products of a prompt wait for softmax no longer than so many times what the vector lanes take
/// for it at their peak. The share above was found on A100, H100 and B200, where the limit gives
/// the same times; devices with slower tensor cores beside as many lanes (RTX 4090, H20) lose less.
/// Products that warps issue and wait for lose more than those that run on by themselves.
std::optional<double> softmax_times(const AcceleratorConfig& accelerator) {
  const auto issue = matrix_issue(accelerator);
  if (issue == MatrixIssue::kQuadPair || issue == MatrixIssue::kWarp) return 5;
  if (issue == MatrixIssue::kWarpgroup || issue == MatrixIssue::kThread) return 3;
  return std::nullopt;
}

/// What a kernel does, as times at the peak rates of one die, in microseconds.
struct Work {
  double matrix = 0, vector = 0, read = 0, written = 0, host = 0, engine = 0, exchange = 0;
  double arrays = 0;  ///< time of products, with what systolic arrays leave idle
};

Work work_of(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  const double memory = memory_rate(accelerator);
  Work work;
  if (kernel.matrix_flops.base() > 0) {
    work.matrix = (kernel.matrix_flops / matrix_peak(accelerator, kernel)).base() * kMicro;
  }
  work.vector = vector_us(kernel, accelerator);
  const Widening widening = widening_of(kernel, accelerator);
  (widening.apart ? work.matrix : work.vector) += widening.us;
  work.read = kernel.read.base() / memory;
  work.written = kernel.written.base() / memory;
  if (kernel.host.base() > 0) {
    const BytesPerSecond link = accelerator.host_link.bandwidth.value;
    if (link.base() == 0)
      throw config::KeyError({"operator", "system.accelerator.host_link"},
                             accelerator.name + " has no host_link");
    work.host = (kernel.host / (link / static_cast<double>(accelerator.dies))).base() * kMicro;
  }
  work.engine = engine_time(kernel, accelerator).base() * kMicro;
  return work;
}

/// Products leave parts of systolic arrays idle. Depthwise filters, which count as vector work, run
/// there too; what is fused with them stays on the lanes.
void on_arrays(const Kernel& kernel, const AcceleratorConfig& accelerator, Work& work) {
  Flops products = kernel.matrix_flops;
  const bool filters_alone = products.base() == 0 && kernel.vector_flops.base() > 0;
  if (kernel.kind == KernelClass::kConvolution && filters_alone) {
    products = std::min(multiply_add_flops(kernel), kernel.vector_flops);
    work.vector *= 1 - products / kernel.vector_flops;
  }
  if (products.base() == 0) return;
  work.matrix = (products / matrix_peak(accelerator, kernel)).base() * kMicro;
  if (is_product(kernel)) work.arrays = array_time(kernel, accelerator).base() * kMicro;
}

double exchange_us(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  const BytesPerSecond all = accelerator.memory.exchange->value;
  return (exchanged_bytes(kernel, accelerator.compute.units.value) / all).base() * kMicro;
}

struct Terms {
  double matrix = 0, vector = 0, memory = 0, host = 0, exchange = 0;

  double largest() const { return std::max({matrix, vector, memory, host, exchange}); }
};

Terms terms_of(const Work& work, const double* values) {
  const auto at = [values](RooflineParameter p) { return values[static_cast<std::size_t>(p)]; };
  return {work.matrix / at(RooflineParameter::kMatrixEfficiency),
          work.vector / at(RooflineParameter::kVectorEfficiency),
          (work.read + work.written * (1 + at(RooflineParameter::kWriteCost)) +
           std::min(work.read, work.written) * at(RooflineParameter::kTurnaround)) /
              at(RooflineParameter::kMemoryEfficiency),
          work.host, work.exchange};
}

/// (a^p + b^p + ...)^(1/p), scaled by the largest term so that no power overflows or vanishes.
double p_norm(const Terms& terms, double p) {
  const double largest = terms.largest();
  if (largest == 0) return 0;
  double sum = 0;
  for (const double term : {terms.matrix, terms.vector, terms.memory, terms.host, terms.exchange})
    if (term > 0) sum += std::pow(term / largest, p);
  return largest * std::pow(sum, 1 / p);
}

}  // namespace

const std::vector<ParameterInfo>& RooflineFamily::parameters() const {
  // Efficiencies may pass 1: boost clocks are above those of the data sheet, and operands that stay
  // in the L2 arrive faster than the memory delivers.
  static const std::vector<ParameterInfo> table = {
      {"matrix_efficiency", "1", 0.02, 1.5},
      {"vector_efficiency", "1", 0.02, 1.5},
      {"memory_efficiency", "1", 0.02, 2},
      {"write_cost", "1", 0, 2},
      {"turnaround", "1", 0, 2},
      {"exponent", "1", 1, 16},
      {"launch", "us", 0.1, 1000},
  };
  return table;
}

std::vector<double> RooflineFamily::priors(const AcceleratorConfig& accelerator,
                                           Precision precision) const {
  const KernelConfig& model = accelerator.kernel;
  const Fact<double>* matrix = find_precision(model.matrix_efficiency, precision);
  // kernel.memory_efficiency is that of kernels which write as much as they read.
  const DramEfficiency dram = dram_efficiency(accelerator.memory).value_or(DramEfficiency());
  const double reads = model.memory_efficiency.value * (1 + dram.turnaround / 2);
  return {matrix ? matrix->value : 1.0,
          model.vector_efficiency.value,
          std::min(reads, std::max(dram.read, model.memory_efficiency.value)),
          dram.write_cost,
          dram.turnaround,
          model.exponent.value,
          model.launch.value.base() * kMicro};
}

KernelTime RooflineFamily::time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                                const double* values) const {
  // Those of scans are facts of their software, not a wish.
  const bool tiled =
      kernel.kind != KernelClass::kScan && (kernel.tile[0] > 0 || kernel.tile[1] > 0);
  if (tiled || kernel.cluster > 0) {
    const std::string what = tiled ? "tile" : "cluster";
    throw config::KeyError("operator." + what, "the roofline, which predicts this kernel on " +
                                                   accelerator.name + ", knows no " + what +
                                                   "s; leave the " + what + " out");
  }
  Work work = work_of(kernel, accelerator);
  if (accelerator.compute.arrays) on_arrays(kernel, accelerator, work);
  if (accelerator.memory.exchange) work.exchange = exchange_us(kernel, accelerator);
  if (is_recurrence(kernel)) work.vector = recurrence_us(kernel, accelerator, work.vector);
  // Efficiencies hold under the power cap of the device as sold.
  if (accelerator.sold && work.matrix > 0)
    work.matrix *= sustained_change(accelerator, kernel.precision);
  work.matrix = std::max(work.matrix, work.arrays);  // what idles draws nothing
  const Terms terms = terms_of(work, values);
  const double exponent = values[static_cast<std::size_t>(RooflineParameter::kExponent)];
  const double moved = p_norm(terms, exponent);
  const double launch = values[static_cast<std::size_t>(RooflineParameter::kLaunch)];
  const AttentionLosses losses = attention_losses(kernel.kind);
  // The time of a copy engine includes the time of the memory.
  const double waits = 1 / losses.share - 1;
  Terms waited = terms;
  if (const auto times = softmax_times(accelerator); times && is_prefill(kernel.kind))
    waited.matrix = std::min(terms.matrix, *times * work.vector / waits);
  const double lost = waits == 0 ? 0 : waits * std::max(p_norm(waited, exponent), work.engine);
  const double body = std::max(moved, work.engine) + lost + losses.launches * launch;
  KernelTime time;
  time.total_us = launch + body;
  time.launch_us = launch;
  time.arrays_us = std::min(work.arrays, body);
  return time;
}

double textbook_roofline(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  const Work work = work_of(kernel, accelerator);
  return std::max({work.matrix, work.vector, work.read + work.written, work.host, work.engine});
}

}  // namespace orrery
