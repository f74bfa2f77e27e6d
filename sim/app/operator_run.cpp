// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/app/intervals.h"
#include "sim/app/kernel_pricing.h"
#include "sim/app/simulate.h"
#include "sim/machine/clock.h"

namespace orrery {
namespace {

Kernel gemm(const OperatorConfig& op, Precision precision) {
  const double batch = static_cast<double>(op.batch);
  const double m = static_cast<double>(op.m), n = static_cast<double>(op.n),
               k = static_cast<double>(op.k);
  const double element = element_bytes(precision);
  Kernel kernel;
  kernel.name = "gemm";
  kernel.kind = KernelClass::kGemm;
  kernel.precision = precision;
  kernel.batch = op.batch;
  kernel.m = op.m;
  kernel.n = op.n;
  kernel.k = op.k;
  kernel.matrix_flops = Flops(2 * batch * m * n * k);
  kernel.read = Bytes(batch * (m * k + k * n) * element);
  kernel.written = Bytes(batch * m * n * 2);  // results leave the accumulator as bf16
  return kernel;
}

Kernel copy(const OperatorConfig& op) {
  Kernel kernel;
  kernel.name = "copy";
  kernel.kind = KernelClass::kCopy;
  kernel.read = op.kind == OperatorShape::kHostToDevice ? Bytes() : op.bytes;
  kernel.written = op.kind == OperatorShape::kDeviceToHost ? Bytes() : op.bytes;
  kernel.host = op.kind == OperatorShape::kDeviceToDevice ? Bytes() : op.bytes;
  return kernel;
}

/// Time at the nameplate of whatever limits the kernel: matrix peak, memory bandwidth or host link.
double time_at_limit(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  const double dies = accelerator.dies;
  double time =
      ((kernel.read + kernel.written) / (accelerator.memory.bandwidth.value / dies)).base();
  if (kernel.matrix_flops.base() > 0) {
    time =
        std::max(time, (kernel.matrix_flops / matrix_peak(accelerator, kernel.precision)).base());
  }
  if (kernel.host.base() > 0) {
    time =
        std::max(time, (kernel.host / (accelerator.host_link.bandwidth.published() / dies)).base());
  }
  return time;
}

/// Clock and power of the device while the kernel runs. The clock follows from how much longer the
/// kernel takes than at the boost clock. In the steady state, and where priors of sustained rates
/// price the kernel, it is one that keeps the power cap.
void add_clock(const Kernel& kernel, const AcceleratorConfig& accelerator, const KernelModel& model,
               const KernelCost& cost, RunRecord& record) {
  const double time = to_seconds(cost.duration).base();
  AcceleratorConfig boosted = accelerator;
  boosted.power.state = PowerState::kBoost;
  boosted.power.response.value = Seconds(1e6);
  const double shortest = to_seconds(model.cost(kernel, boosted).duration).base();
  const double dies = accelerator.dies;  // the other dies of the package do the same
  Activity activity;
  activity.precision = kernel.precision;
  activity.matrix = FlopsPerSecond(kernel.matrix_flops.base() / time * dies);
  activity.vector = FlopsPerSecond(kernel.vector_flops.base() / time * dies);
  activity.memory = BytesPerSecond((kernel.read + kernel.written).base() / time * dies);
  activity.with_clock = false;  // these are the rates at whatever clock it is
  const Hertz boost = boost_clock(accelerator);
  double share = std::min(1.0, shortest / time);
  if (accelerator.power.state == PowerState::kSteady || cost.provenance == Provenance::kAnalytic)
    share = std::min(share, sustained_clock(accelerator, activity).clock / boost);
  add_metric(record, "clock_hz", (boost * share).base());
  add_metric(record, "average_power_w", power_at(accelerator, activity, share).base());
}

}  // namespace

void run_operator(const Experiment& experiment, RunRecord& record) {
  const AcceleratorConfig& accelerator = experiment.system.accelerator;
  const OperatorConfig& op = *experiment.op;
  const Kernel kernel = op.kind == OperatorShape::kGemm ? gemm(op, experiment.precision) : copy(op);
  const auto model = kernel_model(experiment);
  const KernelCost cost = model->cost(kernel, accelerator);
  const double time = to_seconds(cost.duration).base();
  const double bytes = (kernel.read + kernel.written).base();
  add_metric(record, "time_s", time);
  add_metric(record, "flops", kernel.matrix_flops.base());
  add_metric(record, "flops_per_s", kernel.matrix_flops.base() / time);
  add_metric(record, "bytes", bytes);
  add_metric(record, "bytes_per_s", bytes / time);
  add_metric(record, "share_of_limit", time_at_limit(kernel, accelerator) / time);
  add_clock(kernel, accelerator, *model, cost, record);
  record.labels.push_back({"bound", to_string(cost.bound)});
  add_metric(record, "simulated_time_s", time);
  add_metric(record, "events", 1);
  ProvenanceTime rests;
  rests.add(cost.provenance, time);
  record.provenance = provenance_json(rests, model->calibration());
  if (rests.fitted())
    add_time_intervals(record, model->draws(kernel, accelerator, experiment.seed));
}

}  // namespace orrery
