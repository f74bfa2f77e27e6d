// SPDX-License-Identifier: Apache-2.0
// Functions of each element, operands broadcast as NumPy does.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "workloads/base/real.h"
#include "workloads/formats/onnx/operation.h"
#include "workloads/ops/kernels.h"

namespace orrery::onnx {
namespace {

using Arithmetic = double (*)(double, double, bool whole);

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

/// Values of the result where those of both operands are known.
void compute(Operation& op, Value& value, Arithmetic function) {
  const bool both = op.has(1);
  if (function == nullptr || !op.knows(0) || (both && !op.knows(1))) return;
  const std::int64_t elements = elements_of(value.dims);
  if (elements > static_cast<std::int64_t>(kMostValues)) return;
  const bool whole = is_integer(op.in(0).type);
  value.values.resize(static_cast<std::size_t>(elements));
  for (std::size_t i = 0; i < value.values.size(); ++i) {
    const double a = op.in(0).values[place_of(op.in(0).dims, value.dims, i)];
    const double b = both ? op.in(1).values[place_of(op.in(1).dims, value.dims, i)] : 0;
    value.values[i] = function(a, b, whole);
  }
  value.known = true;
}

template <int flops>
void unary(Operation& op) {
  op.result(0, op.in(0).dims, op.in(0).type);
  op.stream(KernelClass::kElementwise, Fusing::kElements, flops);
}

/// A function whose values are known where those of its inputs are.
template <Arithmetic function, bool compares = false>
void computed(Operation& op) {
  const Dims dims = op.has(1) ? broadcast(op, op.in(0).dims, op.in(1).dims) : op.in(0).dims;
  compute(op, op.result(0, dims, compares ? DataType::kBool : op.in(0).type), function);
  op.stream(KernelClass::kElementwise, Fusing::kElements, 1);
}

double plus(double a, double b, bool) { return a + b; }
double minus(double a, double b, bool) { return a - b; }
double times(double a, double b, bool) { return a * b; }
double over(double a, double b, bool whole) {
  if (b == 0) return 0;
  return whole ? std::trunc(a / b) : a / b;
}
double modulo(double a, double b, bool) { return b == 0 ? 0 : a - b * std::floor(a / b); }
double power(double a, double b, bool) { return std::pow(a, b); }
double equal(double a, double b, bool) { return a == b ? 1 : 0; }
double greater(double a, double b, bool) { return a > b ? 1 : 0; }
double less(double a, double b, bool) { return a < b ? 1 : 0; }
double at_least(double a, double b, bool) { return a >= b ? 1 : 0; }
double at_most(double a, double b, bool) { return a <= b ? 1 : 0; }
double both_hold(double a, double b, bool) { return a != 0 && b != 0 ? 1 : 0; }
double one_holds(double a, double b, bool) { return a != 0 || b != 0 ? 1 : 0; }
double negated(double a, double, bool) { return -a; }
double magnitude(double a, double, bool) { return std::fabs(a); }
double inverted(double a, double, bool) { return a == 0 ? 1 : 0; }
double floor_of(double a, double, bool) { return std::floor(a); }
double ceiling_of(double a, double, bool) { return std::ceil(a); }
double rounded(double a, double, bool) { return std::nearbyint(a); }
double root_of(double a, double, bool) { return a < 0 ? 0 : std::sqrt(a); }
double reciprocal(double a, double, bool) { return a == 0 ? 0 : 1 / a; }
double sign_of(double a, double, bool) { return a > 0 ? 1 : a < 0 ? -1 : 0; }

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
  Value& value = op.result(0, dims, op.in(1).type);
  if (op.knows(0) && op.knows(1) && op.knows(2) &&
      elements_of(dims) <= static_cast<std::int64_t>(kMostValues)) {
    value.values.resize(static_cast<std::size_t>(elements_of(dims)));
    for (std::size_t i = 0; i < value.values.size(); ++i) {
      const bool first = op.in(0).values[place_of(op.in(0).dims, dims, i)] != 0;
      const Value& chosen = op.in(first ? 1 : 2);
      value.values[i] = chosen.values[place_of(chosen.dims, dims, i)];
    }
    value.known = true;
  }
  op.stream(KernelClass::kElementwise, Fusing::kElements, 1);
}

/// Sum, Mean, Max and Min of any number of operands.
template <Arithmetic function>
void variadic(Operation& op) {
  if (op.inputs() <= 2) return computed<function>(op);
  Dims dims = op.in(0).dims;
  for (std::size_t i = 1; i < op.inputs(); ++i) dims = broadcast(op, dims, op.in(i).dims);
  op.result(0, dims, op.in(0).type);
  op.stream(KernelClass::kElementwise, Fusing::kElements,
            real(static_cast<std::int64_t>(op.inputs() - 1)));
}
double larger(double a, double b, bool) { return std::max(a, b); }
double smaller(double a, double b, bool) { return std::min(a, b); }

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

/// com.microsoft: a bias, and a function of the sum; its second input is the bias.
template <int flops>
void biased(Operation& op) {
  op.result(0, op.in(0).dims, op.in(0).type);
  op.stream(KernelClass::kElementwise, Fusing::kElements, op.has(1) ? flops + 1 : flops);
}

/// A list of the operators of a family, for one Register object each.
struct RegisterElementwise {
  RegisterElementwise(const char* name, Rule rule) {
    const RuleRegistry::Register registered(name, "a function of each element", rule);
  }
};

constexpr int kGelu = static_cast<int>(vector_cost::kGelu);
constexpr int kSilu = static_cast<int>(vector_cost::kSilu);

const RegisterElementwise kElementwise[] = {
    {"Add", variadic<plus>},
    {"Sub", computed<minus>},
    {"Mul", computed<times>},
    {"Div", computed<over>},
    {"Mod", computed<modulo>},
    {"Pow", computed<power>},
    {"Sum", variadic<plus>},
    {"Mean", variadic<nullptr>},
    {"Max", variadic<larger>},
    {"Min", variadic<smaller>},
    {"Equal", computed<equal, true>},
    {"Greater", computed<greater, true>},
    {"Less", computed<less, true>},
    {"GreaterOrEqual", computed<at_least, true>},
    {"LessOrEqual", computed<at_most, true>},
    {"And", computed<both_hold, true>},
    {"Or", computed<one_holds, true>},
    {"Xor", computed<nullptr, true>},
    {"BitwiseAnd", computed<nullptr>},
    {"BitwiseOr", computed<nullptr>},
    {"BitwiseXor", computed<nullptr>},
    {"BitwiseNot", unary<1>},
    {"BitShift", computed<nullptr>},
    {"PRelu", computed<nullptr>},
    {"Not", computed<inverted, true>},
    {"Neg", computed<negated>},
    {"Abs", computed<magnitude>},
    {"Floor", computed<floor_of>},
    {"Ceil", computed<ceiling_of>},
    {"Round", computed<rounded>},
    {"Sqrt", computed<root_of>},
    {"Reciprocal", computed<reciprocal>},
    {"Sign", computed<sign_of>},
    {"IsInf", computed<nullptr, true>},
    {"IsNaN", computed<nullptr, true>},
    {"Bernoulli", unary<1>},
    {"RandomUniformLike", unary<1>},
    {"RandomNormalLike", unary<1>},
    {"EyeLike", unary<1>},
    {"Cast", cast},
    {"CastLike", cast_like},
    {"Where", where},
    {"Clip", clip},
    {"Relu", unary<1>},
    {"LeakyRelu", unary<2>},
    {"ThresholdedRelu", unary<2>},
    {"Elu", unary<kSilu>},
    {"Selu", unary<kSilu>},
    {"Celu", unary<kSilu>},
    {"HardSigmoid", unary<3>},
    {"HardSwish", unary<4>},
    {"Softplus", unary<3>},
    {"Softsign", unary<3>},
    {"Mish", unary<5>},
    {"Swish", unary<kSilu>},
    {"Shrink", unary<2>},
    {"Sigmoid", unary<kSilu>},
    {"Tanh", unary<kSilu>},
    {"Gelu", unary<kGelu>},
    {"Erf", unary<kSilu>},
    {"Exp", unary<1>},
    {"Log", unary<1>},
    {"Sin", unary<1>},
    {"Cos", unary<1>},
    {"Tan", unary<1>},
    {"Asin", unary<1>},
    {"Acos", unary<1>},
    {"Atan", unary<1>},
    {"Sinh", unary<1>},
    {"Cosh", unary<1>},
    {"Asinh", unary<1>},
    {"Acosh", unary<1>},
    {"Atanh", unary<1>},
    {"com.microsoft:Gelu", unary<kGelu>},
    {"com.microsoft:BiasGelu", biased<kGelu>},
    {"com.microsoft:FastGelu", biased<kGelu>},
    {"com.microsoft:QuickGelu", unary<kSilu>},
    {"com.microsoft:BiasDropout", biased<1>},
};

}  // namespace
}  // namespace orrery::onnx
