// SPDX-License-Identifier: Apache-2.0
// Windows of which one element is left.
#include <utility>

#include "workloads/base/real.h"
#include "workloads/formats/onnx/operations/windows.h"

namespace orrery::onnx {
namespace {

void pool(Operation& op) {
  const Windows windows = windows_of(op, op.integers("kernel_shape"));
  Dims dims = positions_of(op, windows);
  dims.insert(dims.begin(), {op.in(0).dims[0], op.in(0).dims[1]});
  if (op.node().outputs.size() > 1) op.result(1, dims, DataType::kInt64);
  op.result(0, std::move(dims), op.in(0).type);
  op.stream(KernelClass::kElementwise, Fusing::kAlone, real(windows.positions()));
}

void global_pool(Operation& op) {
  Dims dims = op.in(0).dims;
  if (dims.size() < 2) op.refuse("its input has no positions");
  std::fill(dims.begin() + 2, dims.end(), 1);
  op.result(0, std::move(dims), op.in(0).type);
  op.stream_input(1);
}

const RegisterRules kPools("one position for several",
                           {
                               {pool, {"MaxPool", "AveragePool", "LpPool"}},
                               {global_pool,
                                {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}},
                           });

}  // namespace
}  // namespace orrery::onnx
