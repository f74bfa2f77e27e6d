// SPDX-License-Identifier: Apache-2.0
#include "sim/app/intervals.h"
#include "sim/app/kernel_pricing.h"
#include "sim/app/limits.h"
#include "sim/app/simulate.h"

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

}  // namespace

Kernel operator_kernel(const Experiment& experiment) {
  const OperatorConfig& op = *experiment.op;
  return op.kind == OperatorShape::kGemm ? gemm(op, experiment.precision) : copy(op);
}

void run_operator(const Experiment& experiment, const SimulateOptions& options, RunRecord& record) {
  const AcceleratorConfig& accelerator = experiment.system.accelerator;
  const Kernel kernel = operator_kernel(experiment);
  const auto model = kernel_model(experiment, options.tiles);
  const KernelCost cost = model->cost(kernel, accelerator);
  const double time = to_seconds(cost.duration).base();
  const double bytes = (kernel.read + kernel.written).base();
  add_metric(record, "time_s", time);
  add_metric(record, "flops", kernel.matrix_flops.base());
  add_metric(record, "flops_per_s", kernel.matrix_flops.base() / time);
  add_metric(record, "bytes", bytes);
  add_metric(record, "bytes_per_s", bytes / time);
  add_metric(record, "share_of_limit", time_at_limit(kernel, accelerator, cost.bound) / time);
  record.labels.push_back({"bound", to_string(cost.bound)});
  record.labels.push_back({"fidelity", to_string(cost.fidelity)});
  add_metric(record, "simulated_time_s", time);
  add_metric(record, "events", 1);
  ProvenanceTime rests;
  rests.add(cost.provenance, time);
  record.provenance = provenance_json(rests, model->calibration());
  if (rests.fitted())
    add_time_intervals(record, model->draws(kernel, accelerator, experiment.seed));
}

}  // namespace orrery
