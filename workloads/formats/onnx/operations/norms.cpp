// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/formats/onnx/operation.h"
#include "workloads/ops/kernels.h"

namespace orrery::onnx {
namespace {

/// A norm over the dimensions from `axis` on, as a kernel that goes over whole rows.
void norm_rows(Operation& op, std::int64_t axis, double flops) {
  const Dims& dims = op.in(0).dims;
  Lowered& lowered = op.stream(KernelClass::kNormalization, Fusing::kRows, flops);
  lowered.width = std::max<std::int64_t>(
      1, elements_of({dims.begin() + static_cast<std::ptrdiff_t>(axis), dims.end()}));
  lowered.kernel.n = lowered.width;
  lowered.kernel.m = lowered.elements / lowered.width;
}

/// Mean and deviation, where somebody asks for them, have one element a row.
Rule row_norm(double flops) {
  return [=](Operation& op) {
    const Dims dims = op.in(0).dims;
    const std::int64_t axis = op.axis(op.integer("axis", -1), op.rank(0));
    op.result(0, dims, op.in(0).type);
    Dims rows = dims;
    std::fill(rows.begin() + static_cast<std::ptrdiff_t>(axis), rows.end(), 1);
    for (std::size_t i = 1; i < op.node().outputs.size(); ++i) op.result(i, rows, DataType::kFloat);
    norm_rows(op, axis, flops);
  };
}

/// com.microsoft: input and skip (and a bias, the last input where there is a beta) are added
/// first; result 3 is their sum.
Rule skip_norm(double flops) {
  return [=](Operation& op) {
    const Dims dims = op.in(0).dims;
    if (dims.empty()) op.refuse("its input is a scalar");
    op.result(0, dims, op.in(0).type);
    Dims rows = dims;
    rows.back() = 1;
    for (std::size_t i = 1; i < op.node().outputs.size(); ++i)
      if (!op.node().outputs[i].empty())
        op.result(i, i == 3 ? dims : rows, i == 3 ? op.in(0).type : DataType::kFloat);
    norm_rows(op, op.rank(0) - 1, flops + 1);
  };
}

/// In inference a scale and a shift of each channel.
void batch_norm(Operation& op) {
  op.result(0, op.in(0).dims, op.in(0).type);
  for (std::size_t i = 1; i < op.node().outputs.size(); ++i)
    op.result(i, op.in(1).dims, op.in(1).type);
  op.stream(KernelClass::kNormalization, Fusing::kElements, 2);
}

/// Scores of attention, where it lies between two products: all pairs, since masks are values.
void softmax(Operation& op) {
  const Dims dims = op.in(0).dims;
  const std::int64_t axis = op.axis(op.integer("axis", op.opset() < 13 ? 1 : -1), op.rank(0));
  op.result(0, dims, op.in(0).type);
  Lowered& lowered = op.stream(KernelClass::kSoftmax, Fusing::kAlone, vector_cost::kSoftmax);
  lowered.kernel.exponentials = Flops(real(lowered.elements));
  if (dims.empty() || axis != op.rank(0) - 1) return;
  MaskedScores scores;
  const std::int64_t queries = dims.size() > 1 ? dims[dims.size() - 2] : 1;
  scores.kind = queries == 1 ? KernelClass::kAttentionDecode : KernelClass::kAttentionPrefill;
  scores.shape.sequences = dims.size() > 3 ? dims[0] : 1;
  scores.shape.kv_heads = dims.size() > 2 ? dims[dims.size() - 3] : 1;
  scores.pairs = real(lowered.elements);
  lowered.scores = scores;
}

/// Word, position and segment embeddings of BERT, their sum and its norm.
void embed_norm(Operation& op) {
  Dims dims = op.in(0).dims;
  if (op.in(2).dims.size() != 2) op.refuse("its embeddings are no matrix");
  dims.push_back(op.in(2).dims[1]);
  const DataType type = op.in(2).type;
  op.result(0, dims, type);
  if (op.node().outputs.size() > 1) op.result(1, {dims[0]}, DataType::kInt32);
  if (op.node().outputs.size() > 2) op.result(2, dims, type);
  Lowered& lowered =
      op.stream(KernelClass::kEmbedding, Fusing::kAlone, vector_cost::kLayerNorm + 2);
  const Bytes rows = op.use_of_result(0).bytes;
  lowered.reads = {op.use(0), {op.id(2), rows}, {op.id(3), rows}};
  if (op.has(4)) lowered.reads.push_back({op.id(4), rows});
}

/// Statistics of positions, or of groups of channels.
const Rule kInstanceNorm =
    as_input(KernelClass::kNormalization, Fusing::kAlone, vector_cost::kLayerNorm);
/// A square, the sum over five channels, a power and a quotient (Krizhevsky et al. 2012, 3.3).
const Rule kLocalNorm = as_input(KernelClass::kNormalization, Fusing::kAlone, 8);

const RegisterRules kNorms(
    "a norm",
    {
        {row_norm(vector_cost::kLayerNorm),
         {"LayerNormalization", "com.microsoft:LayerNormalization"}},
        {row_norm(vector_cost::kRmsNorm),
         {"RMSNormalization", "SimplifiedLayerNormalization",
          "com.microsoft:SimplifiedLayerNormalization"}},
        {kInstanceNorm,
         {"LpNormalization", "InstanceNormalization", "GroupNormalization",
          "MeanVarianceNormalization", "com.microsoft:GroupNorm"}},
        {batch_norm, {"BatchNormalization"}},
        {kLocalNorm, {"LRN"}},
        {softmax, {"Softmax", "LogSoftmax", "Hardmax"}},
        {skip_norm(vector_cost::kLayerNorm), {"com.microsoft:SkipLayerNormalization"}},
        {skip_norm(vector_cost::kRmsNorm), {"com.microsoft:SkipSimplifiedLayerNormalization"}},
        {embed_norm, {"com.microsoft:EmbedLayerNormalization"}},
    });

}  // namespace
}  // namespace orrery::onnx
