// SPDX-License-Identifier: Apache-2.0
// Functions of each element, operands broadcast as NumPy does.
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "workloads/base/real.h"
#include "workloads/formats/onnx/operation.h"
#include "workloads/ops/kernels.h"

namespace orrery::onnx {
namespace {

using Arithmetic = std::function<double(double, double)>;

/// The element of an operand that goes with element `at` of a result.
std::size_t place_of(const Dims& operand, const Dims& result, std::size_t at) {
  std::size_t place = 0, stride = 1;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto size = static_cast<std::size_t>(result[result.size() - 1 - i]);
    const std::size_t here = at % size;
    at /= size;
    if (i >= operand.size()) continue;
    const auto own = static_cast<std::size_t>(operand[operand.size() - 1 - i]);
    if (own > 1) place += here * stride;
    stride *= own;
  }
  return place;
}

/// Values of the result where those of all operands are known and few, as `at` tells them by the
/// place in the result.
template <class At>
void compute(const Operation& op, Value& value, const At& at) {
  for (std::size_t i = 0; i < op.inputs(); ++i)
    if (op.has(i) && !op.knows(i)) return;
  if (!are_few(value.dims)) return;
  value.values.resize(static_cast<std::size_t>(elements_of(value.dims)));
  for (std::size_t i = 0; i < value.values.size(); ++i) value.values[i] = at(i);
  value.known = true;
}

/// A function whose values are known where those of its inputs are, unless `function` is empty.
/// @param compares results are flags
Rule computed(const Arithmetic& function, bool compares = false) {
  return [=](Operation& op) {
    const Dims dims = op.has(1) ? broadcast(op, op.in(0).dims, op.in(1).dims) : op.in(0).dims;
    Value& value = op.result(0, dims, compares ? DataType::kBool : op.in(0).type);
    const auto operand = [&](std::size_t input, std::size_t i) {
      return op.in(input).values[place_of(op.in(input).dims, dims, i)];
    };
    if (function)
      compute(op, value, [&](std::size_t i) {
        return function(operand(0, i), op.has(1) ? operand(1, i) : 0);
      });
    op.stream(KernelClass::kElementwise, Fusing::kElements, 1);
  };
}
Rule compared(const Arithmetic& function) { return computed(function, true); }

/// The quotient of integers is whole.
void divide(Operation& op) {
  const bool whole = is_integer(op.in(0).type);
  const auto quotient = [whole](double a, double b) { return whole ? std::trunc(a / b) : a / b; };
  computed([&](double a, double b) { return b == 0 ? 0 : quotient(a, b); })(op);
}

void cast(Operation& op) {
  const auto type = static_cast<DataType>(op.integer("to", 1));
  const bool whole = is_integer(type);
  Value& value = op.result(0, op.in(0).dims, type);
  if (op.knows(0)) {
    value.known = true;
    value.values = op.in(0).values;
    for (double& number : value.values) {
      if (whole) number = std::trunc(number);
      if (type == DataType::kBool) number = number != 0 ? 1 : 0;
    }
  }
  op.stream(KernelClass::kElementwise, Fusing::kElements, 1);
  // A model that runs in one format needs no conversion to and from another.
  if (op.precision(op.in(0).type) == op.precision(type) && !whole && !is_integer(op.in(0).type) &&
      op.bytes(op.in(0)) == op.bytes(value)) {
    op.kernels.clear();
    value.storage = op.in(0).storage;
  }
}

void cast_like(Operation& op) {
  op.result(0, op.in(0).dims, op.in(1).type);
  Lowered& kernel = op.stream(KernelClass::kElementwise, Fusing::kElements, 1);
  kernel.reads = {op.use(0)};
}

void where(Operation& op) {
  const Dims dims = broadcast(op, broadcast(op, op.in(0).dims, op.in(1).dims), op.in(2).dims);
  compute(op, op.result(0, dims, op.in(1).type), [&](std::size_t i) {
    const bool first = op.in(0).values[place_of(op.in(0).dims, dims, i)] != 0;
    const Value& chosen = op.in(first ? 1 : 2);
    return chosen.values[place_of(chosen.dims, dims, i)];
  });
  op.stream(KernelClass::kElementwise, Fusing::kElements, 1);
}

/// Sum, Mean, Max and Min of any number of operands.
Rule variadic(const Arithmetic& function) {
  return [=](Operation& op) {
    if (op.inputs() <= 2) return computed(function)(op);
    Dims dims = op.in(0).dims;
    for (std::size_t i = 1; i < op.inputs(); ++i) dims = broadcast(op, dims, op.in(i).dims);
    op.result(0, dims, op.in(0).type);
    op.stream(KernelClass::kElementwise, Fusing::kElements,
              real(static_cast<std::int64_t>(op.inputs() - 1)));
  };
}

void clip(Operation& op) {
  Value& value = op.result(0, op.in(0).dims, op.in(0).type);
  if (op.knows(0) && (!op.has(1) || op.knows(1)) && (!op.has(2) || op.knows(2))) {
    value.known = true;
    value.values = op.in(0).values;
    for (double& number : value.values) {
      if (op.has(1) && !op.in(1).values.empty()) number = std::max(number, op.in(1).values[0]);
      if (op.has(2) && !op.in(2).values.empty()) number = std::min(number, op.in(2).values[0]);
    }
  }
  op.stream(KernelClass::kElementwise, Fusing::kElements, 2);
}

Rule unary(double flops) { return as_input(KernelClass::kElementwise, Fusing::kElements, flops); }

/// com.microsoft: a bias, and a function of the sum; its second input is the bias.
Rule biased(double flops) {
  return [=](Operation& op) { unary(op.has(1) ? flops + 1 : flops)(op); };
}

const RegisterRules kArithmetic(
    "a function of each element",
    {
        {variadic(std::plus<>()), {"Add", "Sum"}},
        {computed(std::minus<>()), {"Sub"}},
        {computed(std::multiplies<>()), {"Mul"}},
        {divide, {"Div"}},
        {computed([](double a, double b) { return b == 0 ? 0 : a - b * std::floor(a / b); }),
         {"Mod"}},
        {computed([](double a, double b) { return std::pow(a, b); }), {"Pow"}},
        {variadic(nullptr), {"Mean"}},
        {variadic([](double a, double b) { return std::max(a, b); }), {"Max"}},
        {variadic([](double a, double b) { return std::min(a, b); }), {"Min"}},
        {compared(std::equal_to<>()), {"Equal"}},
        {compared(std::greater<>()), {"Greater"}},
        {compared(std::less<>()), {"Less"}},
        {compared(std::greater_equal<>()), {"GreaterOrEqual"}},
        {compared(std::less_equal<>()), {"LessOrEqual"}},
        {compared(std::logical_and<>()), {"And"}},
        {compared(std::logical_or<>()), {"Or"}},
        {compared([](double a, double) { return a == 0; }), {"Not"}},
        {compared(nullptr), {"Xor", "IsInf", "IsNaN"}},
        {computed(nullptr), {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift", "PRelu"}},
        {computed([](double a, double) { return -a; }), {"Neg"}},
        {computed([](double a, double) { return std::fabs(a); }), {"Abs"}},
        {computed([](double a, double) { return std::floor(a); }), {"Floor"}},
        {computed([](double a, double) { return std::ceil(a); }), {"Ceil"}},
        {computed([](double a, double) { return std::nearbyint(a); }), {"Round"}},
        {computed([](double a, double) { return a < 0 ? 0 : std::sqrt(a); }), {"Sqrt"}},
        {computed([](double a, double) { return a == 0 ? 0 : 1 / a; }), {"Reciprocal"}},
        {computed([](double a, double) { return a > 0   ? 1
                                                : a < 0 ? -1
                                                        : 0; }), {"Sign"}},
    });

const RegisterRules kElementwise(
    "a function of each element",
    {
        {cast, {"Cast"}},
        {cast_like, {"CastLike"}},
        {where, {"Where"}},
        {clip, {"Clip"}},
        {unary(1),
         {"BitwiseNot", "Bernoulli", "RandomUniformLike", "RandomNormalLike", "EyeLike", "Relu",
          "Exp", "Log", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh",
          "Acosh", "Atanh"}},
        {unary(2), {"LeakyRelu", "ThresholdedRelu", "Shrink"}},
        {unary(3), {"HardSigmoid", "Softplus", "Softsign"}},
        {unary(4), {"HardSwish"}},
        {unary(5), {"Mish"}},
        {unary(vector_cost::kSilu),
         {"Elu", "Selu", "Celu", "Swish", "Sigmoid", "Tanh", "Erf", "com.microsoft:QuickGelu"}},
        {unary(vector_cost::kGelu), {"Gelu", "com.microsoft:Gelu"}},
        {biased(vector_cost::kGelu), {"com.microsoft:BiasGelu", "com.microsoft:FastGelu"}},
        {biased(1), {"com.microsoft:BiasDropout"}},
    });

}  // namespace
}  // namespace orrery::onnx
