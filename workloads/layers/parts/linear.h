// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workloads/layers/parts/rank_work.h"
#include "workloads/ops/kernels.h"
#include "workloads/ops/step_list.h"

namespace orrery {

/// How a tensor parallel group splits a matrix: not at all, by columns, by rows, or into parts that
/// ranks have whole.
enum class MatrixSplit : std::uint8_t { kNone, kColumns, kRows, kParts };

/// Matrices that a product joins and that checkpoints have apart.
struct MatrixPart {
  std::int64_t out = 0;  ///< columns of a rank
  std::optional<LoraModule>
      module{};            ///< the name that adapters know; none: they leave it as it is
  std::int64_t count = 1;  ///< matrices, of equal columns
};

/// The name of a matrix for adapters.
struct AdaptedMatrix {
  std::optional<LoraModule> module;  ///< none: adapters know its parts alone
  std::int64_t packed = 1;           ///< matrices packed into it, each with an adapter of its own
};

/// Which kernel adds the bias of a matrix.
enum class Bias : std::uint8_t {
  kNone,      ///< there is none
  kAdded,     ///< the product, or one behind it: TrainingSoftware::bias_addition
  kPassedOn,  ///< the next one of the layer, which is there anyway
};

/// A matrix of which this rank holds in x out elements.
struct Linear {
  std::string name;
  std::int64_t in = 0, out = 0;
  Precision precision = Precision::kBf16;
  WeightFormat weights{};                               ///< format as stored, forward alone
  std::optional<AdaptedMatrix> adapted = std::nullopt;  ///< none: adapters leave it as it is
  Bias bias = Bias::kNone;
  /// Its input is that of the matrix before it: their gradients of it are added up.
  bool shares_input = false;
  MatrixSplit split = MatrixSplit::kNone;
  std::vector<MatrixPart> parts = {};  ///< none: it is one matrix
  std::int64_t sixteen_bit = 0;        ///< columns of `out` that are never quantised
};

/// A frozen matrix in few bits is widened before each product that reads it; no step else.
void widen_frozen(StepList& steps, const RankWork& work, const Linear& linear);

/// The product of a matrix with `rows` rows, as the engine launches it.
Kernel launched_product(const RankWork& work, const Linear& linear, std::int64_t rows);

/// A collective of the tensor parallel group over [tokens, width] activations.
LayerCollective tensor_collective(std::string name, TransferKind kind, const RankWork& work,
                                  std::int64_t width);

/// Bytes of an element that a gather of a product's operand moves.
double gathered_bytes(const RankWork& work, const Linear& linear);

/// Column-parallel matrices with one input of `width` columns (Shoeybi et al. 2019, section 3).
/// Under sequence parallelism the input is gathered first (Korthikanti et al. 2022, section 4.2.2).
void column_forward(StepList& steps, const RankWork& work, const std::vector<Linear>& linears,
                    std::int64_t width);
/// The all-reduce of the input's gradient runs beside the weight gradients, unless the software
/// overlaps nothing: then behind them. Under sequence parallelism the input is gathered again
/// beside (or before) the data gradients, and a reduce-scatter replaces the all-reduce.
void column_backward(StepList& steps, const RankWork& work, const std::vector<Linear>& linears,
                     std::int64_t width);

/// How the partial sums of a row-parallel matrix become its output.
enum class RowOutput { kReduced, kScattered };
/// Where training shares tokens out under sequence parallelism, and inference does not.
inline RowOutput row_reduction(const RankWork& work) {
  return work.trains() && work.split.sp ? RowOutput::kScattered : RowOutput::kReduced;
}

/// A row-parallel matrix. The next step waits for the all-reduce or reduce-scatter of its output.
void row_forward(StepList& steps, const RankWork& work, const Linear& linear, RowOutput output);
/// Under sequence parallelism the gradient of the output is gathered first; both gradients need it.
void row_backward(StepList& steps, const RankWork& work, const Linear& linear);

/// What a cast of training works on: what a norm gives, another input, or a gradient of outputs.
/// The first and the last of these are a rank's share under sequence parallelism, which is
/// gathered.
enum class Cast : std::uint8_t { kNormed, kInput, kGradient, kGatheredGradient };

/// The kernels that make narrow operands of values in 16 bits, with the transposed copy that one of
/// the gradients needs; none where the software has others make them.
void cast(StepList& steps, const RankWork& work, const Linear& linear, Cast what,
          std::int64_t rows);

/// Inference: the kernel that quantises the input of a product, where nobody before has. In fp8
/// checkpoints bring the scale of a tensor, or rows have scales of their own: one pass either way
/// (vLLM's static_scaled_fp8_quant, SGLang's sgl_per_token_quant_fp8, TensorRT-LLM's
/// static_quantize_e4m3_per_tensor). Tables of products find the maximum of the tensor first.
void quantise_input(StepList& steps, const RankWork& work, const Linear& linear, std::int64_t rows);

/// A matrix that every rank holds whole and applies to its `rows`, whose input no norm gives it
/// alone.
void local_forward(StepList& steps, const RankWork& work, const Linear& linear, std::int64_t rows);
void local_backward(StepList& steps, const RankWork& work, const Linear& linear, std::int64_t rows);

/// The gradient of a matrix whose input is detached from the graph, behind step `gradient`.
void detached_backward(StepList& steps, const RankWork& work, const Linear& linear,
                       std::int64_t rows, std::size_t gradient);
/// Gradients of products of `forward.batch` inputs with a matrix each, in 16 bits.
void batched_backward(StepList& steps, const RankWork& work, const std::string& name,
                      GemmShape forward);

/// A product of a backward pass, at the rate of its accumulation.
Kernel gradient_product(const RankWork& work, Kernel product);

/// Where the software adds up weight gradients.
GradientBuffer gradient_buffer(const RankWork& work);

}  // namespace orrery
