// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/graph/kernel.h"

namespace orrery {

/// Bytes of activations between kernels: 16-bit, unless the matrices themselves are 32-bit.
double activation_bytes(Precision precision);

/// Bytes of one weight and of one new gradient in training, as they are kept and sent: 16 bits,
/// with fp32 in the optimizer besides, unless products have operands of 32 bits.
double training_bytes(Precision precision);

/// y[m, n] = x[m, k] w[k, n]. Quantised inputs are read in their own format: the kernel that made
/// them wrote them so (fused quantisation); the output is an activation.
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 1;  ///< independent products, each with its own operands
};

/// A kernel of such products whose FLOPs and bytes the caller counts.
Kernel matrix_kernel(std::string name, KernelClass kind, Precision precision, GemmShape shape);
Kernel gemm(std::string name, Precision precision, GemmShape shape);
/// The same with weights in a format of their own.
Kernel gemm(std::string name, Precision precision, GemmShape shape, WeightFormat weights);
/// Bytes that one weight takes, those that sparsity dropped counted with the rest: of four values
/// two are kept, with an index of 2 bits each (NVIDIA A100 white paper, structured sparsity).
double stored_weight_bytes(Precision precision, WeightFormat weights);
/// dx[m, k] = dy[m, n] w[n, k]. Weights that are 2:4 sparse are so in both directions, as
/// transposable masks make them (arXiv 2102.08124).
Kernel data_gradient(const std::string& name, Precision precision, GemmShape forward,
                     WeightFormat weights = {});
/// How weight gradients are added to those of earlier micro-batches.
struct GradientBuffer {
  double bytes = 2;      ///< bytes of an element of the sum
  double element = 2;    ///< and of a new gradient
  bool apart = false;    ///< a kernel behind the product adds, see gradient_addition()
  bool fresh = false;    ///< there is nothing to add to: products write alone
  bool widened = false;  ///< new gradients come in the format of the sum
  bool product_adds() const { return !apart && !fresh; }
};
/// dw[k, n] += x[k, m] dy[m, n]: the gradient of earlier micro-batches is read and written again.
/// Where that is done apart, the product writes an activation.
Kernel weight_gradient(const std::string& name, Precision precision, GemmShape forward,
                       GradientBuffer buffer = {});
/// Adds a new gradient, in the format of the weights, to the sum. Where it is widened first, that
/// is a launch more, which writes what the addition reads.
Kernel gradient_addition(const std::string& name, std::int64_t rows, std::int64_t width,
                         GradientBuffer buffer);

/// Products of the active experts of a rank: `experts` of m x k by k x n, `rows` rows in all.
/// `experts` may be an expected value: it scales the weights that are read.
struct GroupedShape {
  double experts = 1;
  double rows = 0;
  std::int64_t n = 0, k = 0;
  ExpertLoad load{};  ///< how the rows are dealt out; evenly where it is empty
};
Kernel grouped_gemm(std::string name, Precision precision, GroupedShape shape);
Kernel grouped_data_gradient(const std::string& name, Precision precision, GroupedShape forward);
Kernel grouped_weight_gradient(const std::string& name, Precision precision, GroupedShape forward,
                               GradientBuffer buffer = {});

/// A kernel that streams [rows, width] elements: bytes and vector FLOPs per element.
struct StreamCost {
  double read = 0, written = 0, flops = 0;
};
Kernel stream(std::string name, KernelClass kind, std::int64_t rows, std::int64_t width,
              StreamCost per_element);
/// A kernel of class elementwise that streams a tensor.
Kernel elementwise(std::string name, std::int64_t rows, std::int64_t width, StreamCost per_element);
/// An RMS norm of elements of `bytes`, and its gradients.
Kernel rms_norm_of(std::string name, std::int64_t rows, std::int64_t width, double bytes);
Kernel norm_gradient(std::string name, std::int64_t rows, std::int64_t width, double bytes);

/// Activations of [rows, width] into a narrower format; scales of blocks not counted.
Kernel quantize(std::string name, Precision precision, std::int64_t rows, std::int64_t width);
/// The same in one pass, where the scale is known before.
Kernel quantize_by_known_scale(std::string name, Precision precision, std::int64_t rows,
                               std::int64_t width);

/// RMSNorm, or LayerNorm, which has a bias; may add the residual and write the sum as well (one
/// fused kernel). What is normed is written in the format of the matrices.
struct NormShape {
  std::int64_t rows = 0, width = 0;
  bool bias = false;
  bool residual = false;
};
Kernel norm(std::string name, Precision precision, NormShape shape);

/// The function between the matrices of an MLP: SwiGLU of gate and up, [rows, 2 width], or GELU.
Kernel activation(std::string name, Precision precision, std::int64_t rows, std::int64_t width,
                  bool gated);

/// Softmax over a vocabulary and the loss; probabilities are kept in fp32 for the backward pass.
Kernel cross_entropy(std::string name, Precision precision, std::int64_t rows,
                     std::int64_t vocabulary);

/// Rotary positions on [tokens, width] columns of queries and keys.
Kernel rotate(std::string name, Precision precision, std::int64_t tokens, std::int64_t width);

// What surrounds the products of a mixture of experts, for `copies` of each token on this rank
// (less than one where most experts are elsewhere); `bytes` an element of the activations.

/// Scores become the weights of the `chosen` experts of each token: one kernel for 16 at most,
/// which is where TensorRT-LLM's ends (its routing.py); beyond, PyTorch's selection and sort of the
/// largest, softmax and two conversions.
std::vector<Kernel> expert_choice(std::int64_t tokens, std::int64_t columns, std::int64_t chosen,
                                  double bytes);
/// Tokens are copied to their experts' rows, in a format of `payload` bytes an element.
Kernel permute_tokens(std::int64_t tokens, std::int64_t hidden, double copies, double bytes,
                      double payload);
/// Weighs the copies and adds them up, with `more` bytes an element of what else is added.
Kernel combine_copies(std::int64_t tokens, std::int64_t hidden, double copies, double bytes,
                      double more);

/// Vector FLOPs per element. A transcendental counts as one: that is what its issue slot costs
/// relative to an add on the special function units of current GPUs, within a factor that is small
/// beside the bytes.
namespace vector_cost {
inline constexpr double kRmsNorm = 4;    ///< square, sum, scale, weight
inline constexpr double kLayerNorm = 7;  ///< mean, deviation, square, sum, scale, weight, bias
inline constexpr double kNormBackward = 12;
inline constexpr double kSoftmax = 5;  ///< maximum, difference, exponential, sum, quotient
inline constexpr double kGelu = 8;     ///< tanh form
inline constexpr double kSilu = 4;     ///< negation, exponential, sum, quotient
inline constexpr double kRotary = 3;   ///< two products and a sum
/// Draw, compare, scale. PyTorch draws by Philox4x32-10 (Salmon et al., SC'11, table 2): four
/// numbers in ten rounds of two wide products (two issue slots each), two additions and two
/// exclusive ors of three operands, 80 slots; a slot could have been a multiply-add, two FLOPs.
inline constexpr double kDropout = 42;
}  // namespace vector_cost

}  // namespace orrery
