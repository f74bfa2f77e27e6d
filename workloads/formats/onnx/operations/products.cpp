// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/formats/onnx/operations/products.h"

namespace orrery::onnx {
namespace {

/// What a product runs in. Where DequantizeLinear has widened both operands, it runs in what they
/// were widened from, as runtimes do it; where only the right one, that one is widened in the loop.
struct ProductFormat {
  Precision precision = Precision::kFp32;
  WeightFormat weights;
  bool narrow_a = false, narrow_b = false;  ///< whether the operand is read as it was before
};

ProductFormat format_of(const Operation& op, std::size_t a, std::size_t b) {
  const auto narrow = [&](std::size_t i) { return op.in(i).narrow != kNoValue; };
  ProductFormat format;
  const DataType type = is_integer(op.in(b).type) ? op.in(b).type : op.in(a).type;
  format.precision = op.precision(type);
  if (narrow(a) && narrow(b)) {
    format.narrow_a = format.narrow_b = true;
    format.precision = op.precision(op.narrow_type(a));
  } else if (narrow(b)) {
    format.narrow_b = true;
    format.weights.bits = bits_of(op.narrow_type(b));
  }
  return format;
}

}  // namespace

Lowered& multiply_kernel(Operation& op, const Product& product, std::size_t a, std::size_t b) {
  Lowered& lowered = op.kernel(KernelClass::kGemm);
  Kernel& kernel = lowered.kernel;
  kernel.batch = product.batch;
  kernel.m = product.m;
  kernel.n = product.n;
  kernel.k = product.k;
  kernel.matrix_flops =
      Flops(2 * real(product.batch) * real(product.m) * real(product.n) * real(product.k));
  const ProductFormat format = format_of(op, a, b);
  kernel.precision = format.precision;
  kernel.weights = format.weights;
  lowered.reads = {op.use(a, format.narrow_a), op.use(b, format.narrow_b)};
  for (std::size_t i = 0; i < op.inputs(); ++i)
    if (i != a && i != b && op.has(i)) lowered.reads.push_back(op.use(i));
  return lowered;
}

namespace {

/// The leading dimensions of both operands, and the matrices: a vector is one row or column.
struct Operands {
  Dims batch;
  std::int64_t m = 1, n = 1, k = 1;
  bool shared = false;  ///< one right matrix for all: rows of the batch are rows of one product
};

Operands operands_of(const Operation& op, Dims a, Dims b) {
  if (a.empty() || b.empty()) op.refuse("a product of scalars");
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  if (op.integer("transA") != 0) std::swap(a[a.size() - 1], a[a.size() - 2]);
  if (op.integer("transB") != 0) std::swap(b[b.size() - 1], b[b.size() - 2]);
  Operands o{{}, a[a.size() - 2], b[b.size() - 1], a[a.size() - 1]};
  if (b[b.size() - 2] != o.k)
    op.refuse(fmt::format("a product of {} and {}", text_of(a), text_of(b)));
  a.resize(a.size() - 2);
  b.resize(b.size() - 2);
  o.batch = broadcast(op, a, b);
  o.shared = elements_of(b) == 1;
  return o;
}

/// The product of two inputs; its type is that of a third.
void multiply(Operation& op, std::size_t a, std::size_t b, DataType type) {
  const Operands o = operands_of(op, op.in(a).dims, op.in(b).dims);
  Dims dims = o.batch;
  if (op.rank(a) > 1) dims.push_back(o.m);
  if (op.rank(b) > 1) dims.push_back(o.n);
  op.result(0, std::move(dims), type);
  Product product{elements_of(o.batch), o.m, o.n, o.k};
  if (o.shared) product = {1, product.batch * o.m, o.n, o.k};
  multiply_kernel(op, product, a, b);
}

void mat_mul(Operation& op) { multiply(op, 0, 1, op.in(0).type); }
void mat_mul_integer(Operation& op) { multiply(op, 0, 1, DataType::kInt32); }
/// Its third input is a scale in the format of its result.
void mat_mul_to_float(Operation& op) { multiply(op, 0, 1, op.in(2).type); }
void q_linear_mat_mul(Operation& op) { multiply(op, 0, 3, op.in(7).type); }

void gemm(Operation& op) {
  const Operands o = operands_of(op, op.in(0).dims, op.in(1).dims);
  if (op.rank(0) != 2 || op.rank(1) != 2) op.refuse("its operands are no matrices");
  op.result(0, {o.m, o.n}, op.in(0).type);
  Lowered& lowered = multiply_kernel(op, {1, o.m, o.n, o.k}, 0, 1);
  if (op.has(2)) lowered.kernel.vector_flops = Flops(real(o.m) * real(o.n));
}

/// Weights of N x K in blocks of `bits`, widened on the way.
void mat_mul_n_bits(Operation& op) {
  const std::int64_t n = op.integer("N"), k = op.integer("K"), bits = op.integer("bits", 4);
  Dims dims = op.in(0).dims;
  if (dims.empty() || n <= 0 || k <= 0 || dims.back() != k)
    op.refuse("K is not the width of its input");
  dims.back() = n;
  op.result(0, dims, op.in(0).type);
  const std::int64_t rows = elements_of(op.in(0).dims) / k;
  multiply_kernel(op, {1, rows, n, k}, 0, 1).kernel.weights.bits = bits;
}

/// An equation in letters, the result's written out: those that stand once, in their order.
std::string equation_of(const Operation& op) {
  std::string equation = op.text("equation", "");
  std::erase(equation, ' ');
  if (equation.find("->") != std::string::npos) return equation;
  std::map<char, int> times;
  for (const char c : equation) ++times[c];
  std::string result = "->";
  for (const auto& [letter, count] : times)
    if (letter != ',' && count == 1) result += letter;
  return equation + result;
}

/// Einstein's sum of one operand or two: letters of both and of the result are the batch, letters
/// that the result lacks are summed over.
void einsum(Operation& op) {
  const std::string equation = equation_of(op);
  const std::size_t arrow = equation.find("->"), comma = equation.find(',');
  const bool two = comma != std::string::npos;
  if (op.inputs() != (two ? 2 : 1) || equation.find('.') != std::string::npos)
    op.unknown(fmt::format("equation '{}' is not understood: 'ab,bc->ac' is", equation));
  const std::string a = equation.substr(0, std::min(comma, arrow));
  const std::string b = two ? equation.substr(comma + 1, arrow - comma - 1) : "";
  const std::string out = equation.substr(arrow + 2);
  std::map<char, std::int64_t> sizes;
  for (std::size_t i = 0; i < op.inputs(); ++i) {
    const std::string& text = i == 0 ? a : b;
    if (text.size() != op.in(i).dims.size())
      op.refuse(fmt::format("equation '{}' does not fit its inputs", equation));
    for (std::size_t at = 0; at < text.size(); ++at) sizes[text[at]] = op.in(i).dims[at];
  }
  Dims dims, all;
  for (const char letter : out) dims.push_back(sizes.count(letter) > 0 ? sizes[letter] : 1);
  for (const auto& [letter, size] : sizes) all.push_back(size);
  if (!mistake_of(all).empty()) op.refuse("its product has " + mistake_of(all));
  op.result(0, dims, op.in(0).type);
  if (!two) {
    op.stream_input(1);
    return;
  }
  Product product{1, 1, 1, 1};
  for (const auto& [letter, size] : sizes) {
    const bool left = a.find(letter) != std::string::npos;
    const bool right = b.find(letter) != std::string::npos;
    const bool kept = out.find(letter) != std::string::npos;
    (!kept ? product.k : left && right ? product.batch : left ? product.m : product.n) *= size;
  }
  multiply_kernel(op, product, 0, 1);
}

const RegisterRules kProducts("a matrix product",
                              {
                                  {mat_mul,
                                   {"MatMul", "com.microsoft:FusedMatMul",
                                    "com.microsoft:TransposeMatMul", "com.microsoft:GemmFastGelu",
                                    "com.microsoft:DynamicQuantizeMatMul"}},
                                  {gemm, {"Gemm", "com.microsoft:FusedGemm"}},
                                  {mat_mul_integer, {"MatMulInteger"}},
                                  {q_linear_mat_mul, {"QLinearMatMul"}},
                                  {einsum, {"Einsum"}},
                                  {mat_mul_n_bits, {"com.microsoft:MatMulNBits"}},
                                  {mat_mul_to_float, {"com.microsoft:MatMulIntegerToFloat"}},
                              });

}  // namespace
}  // namespace orrery::onnx
