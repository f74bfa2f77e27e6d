// SPDX-License-Identifier: Apache-2.0
// Norms and softmax.
#include <algorithm>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/formats/onnx/operation.h"
#include "workloads/ops/kernels.h"

namespace orrery::onnx {
namespace {

/// Elements of a row that begins at an axis.
std::int64_t width_from(const Dims& dims, std::int64_t axis) {
  return std::max<std::int64_t>(
      1, elements_of({dims.begin() + static_cast<std::ptrdiff_t>(axis), dims.end()}));
}

/// A norm over the dimensions from `axis` on, as a kernel that goes over whole rows.
Lowered& norm_rows(Operation& op, std::int64_t axis, double flops) {
  const Dims& dims = op.in(0).dims;
  Lowered& lowered = op.stream(KernelClass::kNormalization, Fusing::kRows, flops);
  lowered.width = width_from(dims, axis);
  lowered.kernel.n = lowered.width;
  lowered.kernel.m = lowered.elements / lowered.width;
  return lowered;
}

/// Mean and deviation, where somebody asks for them, have one element a row.
template <int flops>
void row_norm(Operation& op) {
  const Dims dims = op.in(0).dims;
  const std::int64_t axis = op.axis(op.integer("axis", -1), op.rank(0));
  op.result(0, dims, op.in(0).type);
  Dims rows = dims;
  std::fill(rows.begin() + static_cast<std::ptrdiff_t>(axis), rows.end(), 1);
  for (std::size_t i = 1; i < op.node().outputs.size(); ++i) op.result(i, rows, DataType::kFloat);
  norm_rows(op, axis, flops);
}

/// com.microsoft: input and skip (and a bias, the last input where there is a beta) are added
/// first; result 3 is their sum.
template <int flops>
void skip_norm(Operation& op) {
  const Dims dims = op.in(0).dims;
  if (dims.empty()) op.refuse("its input is a scalar");
  op.result(0, dims, op.in(0).type);
  Dims rows = dims;
  rows.back() = 1;
  for (std::size_t i = 1; i < op.node().outputs.size(); ++i)
    if (!op.node().outputs[i].empty())
      op.result(i, i == 3 ? dims : rows, i == 3 ? op.in(0).type : DataType::kFloat);
  norm_rows(op, op.rank(0) - 1, flops + 1);
}

/// In inference a scale and a shift of each channel.
void batch_norm(Operation& op) {
  op.result(0, op.in(0).dims, op.in(0).type);
  for (std::size_t i = 1; i < op.node().outputs.size(); ++i)
    op.result(i, op.in(1).dims, op.in(1).type);
  op.stream(KernelClass::kNormalization, Fusing::kElements, 2);
}

/// Statistics of positions, or of groups of channels.
void instance_norm(Operation& op) {
  op.result(0, op.in(0).dims, op.in(0).type);
  op.stream(KernelClass::kNormalization, Fusing::kAlone, vector_cost::kLayerNorm);
}

/// A square, the sum over five channels, a power and a quotient (Krizhevsky et al. 2012, 3.3).
void local_norm(Operation& op) {
  op.result(0, op.in(0).dims, op.in(0).type);
  constexpr double kCost = 8;
  op.stream(KernelClass::kNormalization, Fusing::kAlone, kCost);
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

struct RegisterNorm {
  RegisterNorm(const char* name, Rule rule) {
    const RuleRegistry::Register registered(name, "a norm", rule);
  }
};

constexpr int kLayer = static_cast<int>(vector_cost::kLayerNorm);
constexpr int kRms = static_cast<int>(vector_cost::kRmsNorm);

const RegisterNorm kNorms[] = {
    {"LayerNormalization", row_norm<kLayer>},
    {"RMSNormalization", row_norm<kRms>},
    {"SimplifiedLayerNormalization", row_norm<kRms>},
    {"LpNormalization", instance_norm},
    {"BatchNormalization", batch_norm},
    {"InstanceNormalization", instance_norm},
    {"GroupNormalization", instance_norm},
    {"MeanVarianceNormalization", instance_norm},
    {"LRN", local_norm},
    {"Softmax", softmax},
    {"LogSoftmax", softmax},
    {"Hardmax", softmax},
    {"com.microsoft:LayerNormalization", row_norm<kLayer>},
    {"com.microsoft:SimplifiedLayerNormalization", row_norm<kRms>},
    {"com.microsoft:SkipLayerNormalization", skip_norm<kLayer>},
    {"com.microsoft:SkipSimplifiedLayerNormalization", skip_norm<kRms>},
    {"com.microsoft:GroupNorm", instance_norm},
    {"com.microsoft:EmbedLayerNormalization", embed_norm},
};

}  // namespace
}  // namespace orrery::onnx
