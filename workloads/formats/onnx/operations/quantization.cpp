// SPDX-License-Identifier: Apache-2.0
// To narrow formats and back. Products of what has been widened run in the narrow format.
#include <utility>

#include "workloads/formats/onnx/operation.h"

namespace orrery::onnx {
namespace {

void quantize(Operation& op) {
  DataType type = op.has(2) ? op.in(2).type : DataType::kUint8;
  if (op.integer("output_dtype") > 0) type = static_cast<DataType>(op.integer("output_dtype"));
  op.result(0, op.in(0).dims, type);
  op.stream(KernelClass::kQuantize, Fusing::kElements, 2);
}

void dequantize(Operation& op) {
  Value& value = op.result(0, op.in(0).dims, op.in(1).type);
  if (bits_of(op.in(0).type) <= 8) value.narrow = op.id(0);
  op.stream(KernelClass::kElementwise, Fusing::kElements, 2);
}

/// The largest and the smallest are sought first.
void quantize_dynamically(Operation& op) {
  op.result(0, op.in(0).dims, DataType::kUint8);
  op.result(1, {}, DataType::kFloat);
  op.result(2, {}, DataType::kUint8);
  op.stream(KernelClass::kQuantize, Fusing::kAlone, 4);
}

/// a, its scale and zero point; b, its; those of the result.
void sum_of_two(Operation& op) {
  op.result(0, broadcast(op, op.in(0).dims, op.in(3).dims), op.in(0).type);
  op.stream(KernelClass::kElementwise, Fusing::kElements, 4);
}
void global_mean(Operation& op) {
  Dims dims = op.in(0).dims;
  for (std::size_t i = 2; i < dims.size(); ++i) dims[i] = 1;
  op.result(0, std::move(dims), op.in(0).type);
  op.stream(KernelClass::kElementwise, Fusing::kAlone, 1);
}

const RegisterRules kQuantization(
    "narrow formats", {
                          {quantize, {"QuantizeLinear", "com.microsoft:QuantizeLinear"}},
                          {dequantize, {"DequantizeLinear", "com.microsoft:DequantizeLinear"}},
                          {quantize_dynamically, {"DynamicQuantizeLinear"}},
                          {sum_of_two, {"com.microsoft:QLinearAdd", "com.microsoft:QLinearMul"}},
                          {as_input(KernelClass::kElementwise, Fusing::kElements, 4),
                           {"com.microsoft:QLinearSigmoid", "com.microsoft:QLinearLeakyRelu"}},
                          {global_mean, {"com.microsoft:QLinearGlobalAveragePool"}},
                      });

}  // namespace
}  // namespace orrery::onnx
