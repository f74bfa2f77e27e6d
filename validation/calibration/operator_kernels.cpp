// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/operator_kernels.h"

#include <algorithm>
#include <cmath>

#include "sim/machine/precision_names.h"
#include "validation/calibration/routing.h"
#include "workloads/llm/kernels.h"
#include "workloads/llm/layer_work.h"

namespace orrery {
namespace {

double real(std::int64_t value) { return static_cast<double>(value); }

std::optional<Precision> parse_precision(const std::string& name) {
  for (const auto& [precision, known] : config::EnumNames<Precision>::values)
    if (name == known) return precision;
  return std::nullopt;
}

bool is_narrow(Precision precision) { return element_bytes(precision) < 2; }

Kernel quantize(Precision precision, std::int64_t rows, std::int64_t columns) {
  Kernel kernel = stream("quantize", KernelClass::kQuantize, rows, columns,
                         {activation_bytes(precision), element_bytes(precision), 2});
  kernel.precision = precision;
  return kernel;
}

std::vector<Kernel> gemm_kernels(const OperatorRow& row, Precision precision) {
  std::vector<Kernel> kernels;
  if (is_narrow(precision)) kernels.push_back(quantize(precision, row.m, row.k));
  kernels.push_back(
      gemm("gemm", precision, {row.m, row.n, row.k, std::max<std::int64_t>(1, row.batch)}));
  return kernels;
}

/// Columns of queries and keys, and of values, per head; keys and values of one token, in elements.
struct HeadShape {
  std::int64_t qk = 0, v = 0;
  double cached = 0;
};

// DeepSeek's latent attention: 128 + 64 rotary columns of queries and keys, 128 of values;
// absorbed, queries meet 512 latent + 64 rotary columns, of which the first 512 are the values.
constexpr HeadShape kMlaExpanded{.qk = 192, .v = 128, .cached = 0};
constexpr HeadShape kMlaAbsorbed{.qk = 576, .v = 512, .cached = 576};

struct CoreWork {
  KernelClass kind = KernelClass::kAttentionPrefill;
  Precision precision = Precision::kBf16;
  std::int64_t query = 1, context = 0;
  HeadShape head;
  double cache_bytes = 2;  ///< of an element of keys and values
};

Kernel core(const OperatorRow& row, const CoreWork& work) {
  Kernel kernel;
  kernel.name = to_string(work.kind);
  kernel.kind = work.kind;
  kernel.precision = work.precision;
  kernel.batch = row.batch * row.heads;
  kernel.m = work.query;
  kernel.n = work.context;
  kernel.k = work.head.qk;
  kernel.attention = {row.batch, std::max<std::int64_t>(1, row.kv_heads), row.window,
                      row.precision == "bf16" && row.kv_precision == "fp8"};
  const double pairs = real(kernel.batch) * causal_pairs(work.query, work.context, row.window);
  const std::int64_t keys =
      row.window > 0 ? std::min(work.context, row.window + work.query - 1) : work.context;
  const double rows = real(kernel.batch) * real(work.query);
  kernel.matrix_flops = Flops(2 * pairs * real(work.head.qk + work.head.v));
  kernel.vector_flops = Flops(pairs * vector_cost::kSoftmax);
  kernel.read = Bytes(rows * real(work.head.qk) * activation_bytes(work.precision) +
                      real(row.batch) * real(keys) * work.head.cached * work.cache_bytes);
  kernel.written = Bytes(rows * real(work.head.v) * activation_bytes(work.precision));
  return kernel;
}

CoreWork core_work(OperatorTableKind kind, const OperatorRow& row, Precision precision) {
  const double cache_bytes = row.kv_precision == "fp8" ? 1 : 2;
  const double kv_elements = 2 * real(row.kv_heads) * real(row.head_dim);
  const HeadShape grouped{row.head_dim, row.head_dim, kv_elements};
  const std::int64_t context = row.kv_prefix_len + row.q_len;
  switch (kind) {
    case OperatorTableKind::kAttentionPrefill:
      return {KernelClass::kAttentionPrefill, precision, row.q_len, context, grouped, cache_bytes};
    case OperatorTableKind::kAttentionDecode:
      return {KernelClass::kAttentionDecode, precision, 1, row.kv_len, grouped, cache_bytes};
    case OperatorTableKind::kMlaPrefill: {
      HeadShape expanded = kMlaExpanded;
      expanded.cached = real(row.heads * (expanded.qk + expanded.v));
      return {KernelClass::kMlaPrefill, precision, row.q_len, context, expanded, 2};
    }
    default:
      return {KernelClass::kMlaDecode, precision, 1, row.kv_len, kMlaAbsorbed, cache_bytes};
  }
}

/// Models whose experts have two matrices, an up- and a down-projection, instead of three.
bool is_gated(const OperatorRow& row) {
  return !((row.hidden == 2688 && row.expert_ffn == 1856) ||
           (row.hidden == 8192 && row.expert_ffn == 5120));
}

/// A kernel of which only the traffic is known.
Kernel streaming(std::int64_t rows, std::int64_t columns, double read, double written) {
  Kernel kernel;
  kernel.name = "stream";
  kernel.kind = KernelClass::kElementwise;
  kernel.m = rows;
  kernel.n = columns;
  kernel.read = Bytes(read);
  kernel.written = Bytes(written);
  return kernel;
}

/// As a layer of a model has them, without the product of the router.
std::vector<Kernel> moe_kernels(const OperatorRow& row, Precision precision) {
  const ExpertLoad load = heaviest_rank(row);
  const std::int64_t ffn = std::max<std::int64_t>(1, row.expert_ffn / row.moe_tp);
  const std::int64_t inputs = is_gated(row) ? 2 : 1;
  const double bytes = activation_bytes(precision), copies = load.rows / real(row.tokens);
  GroupedShape up{load.active, load.rows, inputs * ffn, row.hidden, load};
  up.load.copies = real(row.tokens * row.top_k);
  up.load.choices = real(row.tokens * row.experts);
  std::vector<Kernel> kernels;
  kernels.push_back(expert_choice(row.tokens, row.experts, bytes));
  kernels.push_back(permute_tokens(row.tokens, row.hidden, copies, bytes,
                                   std::min(bytes, element_bytes(precision))));
  kernels.push_back(grouped_gemm("expert up", precision, up));
  kernels.push_back(stream("expert activation", KernelClass::kElementwise,
                           std::int64_t{std::llround(load.rows)}, ffn,
                           {bytes * real(inputs), bytes, vector_cost::kSilu}));
  kernels.push_back(
      grouped_gemm("expert down", precision, {load.active, load.rows, row.hidden, ffn, load}));
  kernels.push_back(combine_copies(row.tokens, row.hidden, copies, bytes, 0));
  return kernels;
}

}  // namespace

std::optional<Precision> row_precision(OperatorTableKind kind, const OperatorRow& row) {
  if (kind == OperatorTableKind::kAttentionPrefill && row.kv_precision == "fp8")
    return Precision::kFp8;
  return parse_precision(row.precision);
}

std::vector<Kernel> operator_kernels(OperatorTableKind kind, const OperatorRow& row,
                                     Precision precision) {
  switch (kind) {
    case OperatorTableKind::kGemm:
      return gemm_kernels(row, precision);
    case OperatorTableKind::kMoe:
      return moe_kernels(row, precision);
    case OperatorTableKind::kHbmStream: {
      const double bytes = real(row.bytes), read = bytes * row.read_share;
      return {streaming(1, row.bytes / 2, read, bytes - read)};
    }
    case OperatorTableKind::kRowKernels:
      return {streaming(row.rows, row.cols, real(row.read_bytes), real(row.written_bytes))};
    case OperatorTableKind::kLaunch:
      return {streaming(0, 0, 0, 0)};
    default:
      return {core(row, core_work(kind, row, precision))};
  }
}

}  // namespace orrery
