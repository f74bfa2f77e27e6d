// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/operator_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

#include "sim/config/diagnostics.h"
#include "sim/machine/precision_names.h"
#include "sim/units/hash.h"
#include "validation/calibration/routing.h"
#include "workloads/base/real.h"
#include "workloads/layers/parts/attention_kernels.h"
#include "workloads/layers/recurrent/kimi_delta_kernels.h"
#include "workloads/layers/recurrent/mamba_kernels.h"
#include "workloads/layers/sparse/indexer_kernels.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// Names of formats whose weights are narrower than what they run in.
struct NarrowWeights {
  const char* name;
  Precision runs_in;
  std::int64_t bits;
};
constexpr std::array<NarrowWeights, 2> kNarrowWeights = {
    {{"w4a16_mxfp4", Precision::kBf16, 4}, {"w4a8_mxfp4_mxfp8", Precision::kFp8, 4}}};

const NarrowWeights* narrow_weights(const std::string& name) {
  const auto* const found = std::find_if(kNarrowWeights.begin(), kNarrowWeights.end(),
                                         [&](const NarrowWeights& w) { return name == w.name; });
  return found == kNarrowWeights.end() ? nullptr : found;
}

std::optional<Precision> parse_precision(const std::string& name) {
  if (const NarrowWeights* narrow = narrow_weights(name)) return narrow->runs_in;
  for (const auto& [precision, known] : config::EnumNames<Precision>::values)
    if (name == known) return precision;
  return std::nullopt;
}

bool is_narrow(Precision precision) { return element_bytes(precision) < 2; }

std::vector<Kernel> gemm_kernels(const OperatorRow& row, Precision precision) {
  std::vector<Kernel> kernels;
  if (is_narrow(precision)) kernels.push_back(quantize("quantize", precision, row.m, row.k));
  kernels.push_back(
      gemm("gemm", precision, {row.m, row.n, row.k, std::max<std::int64_t>(1, row.batch)}));
  return kernels;
}

// DeepSeek's latent attention: 128 + 64 rotary columns of queries and keys, 128 of values;
// absorbed, queries meet 512 latent + 64 rotary columns, of which the first 512 are the values.
void be_latent(AttentionCore& core) {
  core.latent = core.kind == KernelClass::kMlaDecode;
  core.qk_dim = core.latent ? 576 : 192;
  core.v_dim = core.latent ? 512 : 128;
  core.kv_heads = core.latent ? 1 : core.heads;
}

AttentionCore core_of(OperatorTableKind kind, const OperatorRow& row, Precision precision) {
  AttentionCore core;
  core.precision = precision;
  core.sequences = row.batch;
  core.heads = row.heads;
  core.kv_heads = std::max<std::int64_t>(1, row.kv_heads);
  core.window = row.window;
  core.qk_dim = core.v_dim = row.head_dim;
  core.wide_queries = row.precision == "bf16" && row.kv_precision == "fp8";
  core.new_bytes = core.cache_bytes = row.kv_precision == "fp8" ? 1 : 2;
  const bool prompt =
      kind == OperatorTableKind::kAttentionPrefill || kind == OperatorTableKind::kMlaPrefill;
  core.query = prompt ? row.q_len : 1;
  core.context = prompt ? row.kv_prefix_len + row.q_len : row.kv_len;
  if (kind == OperatorTableKind::kAttentionDecode) core.kind = KernelClass::kAttentionDecode;
  if (kind == OperatorTableKind::kMlaPrefill) core.kind = KernelClass::kMlaPrefill;
  if (kind == OperatorTableKind::kMlaDecode) core.kind = KernelClass::kMlaDecode;
  if (kind == OperatorTableKind::kMlaPrefill) core.new_bytes = core.cache_bytes = 2;  // expanded
  if (kind == OperatorTableKind::kMlaPrefill || kind == OperatorTableKind::kMlaDecode)
    be_latent(core);
  return core;
}

/// Matrices of an expert. Those of Nemotron 3 (Nano, Super and Ultra) square what passes a ReLU
/// between an up- and a down-projection (their config.json: `mlp_hidden_act: relu2`), and
/// AIConfigurator times them so (its collect_moe.py: NON_GATED_MOE_MODELS); all others of its
/// tables are gated, with three.
std::int64_t expert_matrices(const OperatorRow& row) {
  constexpr std::array<std::array<std::int64_t, 2>, 3> kTwo = {
      {{2688, 1856}, {4096, 2688}, {8192, 5120}}};
  if (row.matrices > 0) return row.matrices;
  const std::array<std::int64_t, 2> dimensions = {row.hidden, row.expert_ffn};
  return std::find(kTwo.begin(), kTwo.end(), dimensions) == kTwo.end() ? 3 : 2;
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

Kernel expert_product(const char* name, const OperatorRow& row, Precision precision,
                      const GroupedShape& shape) {
  Kernel kernel = grouped_gemm(name, precision, shape);
  kernel.weights = row_weights(row);
  const double saved = element_bytes(precision) - stored_weight_bytes(precision, kernel.weights);
  kernel.read -= Bytes(shape.experts * real(shape.n) * real(shape.k) * saved);
  return kernel;
}

/// As a layer of a model has them, without the product of the router.
std::vector<Kernel> moe_kernels(const OperatorRow& row, Precision precision) {
  const ExpertLoad load = heaviest_rank(row);
  const std::int64_t ffn = std::max<std::int64_t>(1, row.expert_ffn / row.moe_tp);
  const std::int64_t inputs = expert_matrices(row) - 1;
  const double bytes = activation_bytes(precision), copies = load.rows / real(row.tokens);
  GroupedShape up{load.active, load.rows, inputs * ffn, row.hidden, load};
  up.load.copies = real(row.tokens * row.top_k);
  up.load.choices = real(row.tokens) * load.experts;
  std::vector<Kernel> kernels = expert_choice(row.tokens, row.experts, row.top_k, bytes);
  kernels.push_back(permute_tokens(row.tokens, row.hidden, copies, bytes,
                                   std::min(bytes, element_bytes(precision))));
  kernels.push_back(expert_product("expert up", row, precision, up));
  kernels.push_back(stream("expert activation", KernelClass::kElementwise,
                           std::int64_t{std::llround(load.rows)}, ffn,
                           {bytes * real(inputs), bytes, vector_cost::kSilu}));
  kernels.push_back(expert_product("expert down", row, precision,
                                   {load.active, load.rows, row.hidden, ffn, load}));
  kernels.push_back(combine_copies(row.tokens, row.hidden, copies, bytes, 0));
  return kernels;
}

DeltaShape delta_row(const OperatorRow& row, double bytes) {
  DeltaNetConfig net;
  net.value_heads = row.heads;
  net.key_heads = row.groups;
  net.key_dim = row.key_dim;
  net.value_dim = row.value_dim;
  return delta_shape(net, 1, row.batch, row.tokens, bytes);
}

/// As the operators delta_rule and delta_update have them.
std::vector<Kernel> delta_kernels(const OperatorRow& row, double bytes, double state_bytes) {
  const DeltaShape s = delta_row(row, bytes);
  if (row.kernel == "delta_update") return {state_update(s, state_bytes)};
  if (row.kernel == "kimi_update") return {kimi_update(s, state_bytes)};
  if (row.kernel == "delta_fused") return {fused_delta_rule(s)};
  std::vector<Kernel> kernels = {unit_keys(s)};
  if (row.kernel == "kimi_rule") kernels.push_back(kimi_decays(s));
  for (Kernel& kernel : row.kernel == "kimi_rule" ? kimi_chunks(s) : delta_chunks(s))
    kernels.push_back(std::move(kernel));
  return kernels;
}

/// As the operators mamba_update and causal_convolution have them.
Kernel recurrent_kernel(const OperatorRow& row, double bytes, double state_bytes) {
  ScanShape s;
  s.sequences = row.batch;
  s.query = row.tokens;
  s.bytes = bytes;
  if (row.kernel == "mamba_update") {
    s.heads = row.heads;
    s.groups = row.groups;
    s.head_dim = row.value_dim;
    s.state = row.key_dim;
    return state_update(s, state_bytes);
  }
  s.heads = row.channels;
  s.groups = 0;
  return row.kernel == "causal_convolution" ? conv_forward(s, row.taps) : conv_update(s, row.taps);
}

std::vector<Kernel> recurrent_kernels(const OperatorRow& row, double bytes) {
  const double state_bytes = row.state_precision == "fp32" ? 4 : 2;
  if (row.kernel.starts_with("delta") || row.kernel.starts_with("kimi"))
    return delta_kernels(row, bytes, state_bytes);
  return {recurrent_kernel(row, bytes, state_bytes)};
}

/// As the operator index_scores has it behind its scores.
Kernel selection_kernel(const OperatorRow& row) {
  SeenKeys seen;
  seen.sequences = seen.tokens = row.rows;
  seen.pairs = seen.entries = real(row.rows) * real(row.scores);
  seen.chosen = real(row.rows) * real(row.chosen);
  IndexerConfig indexer;
  indexer.top_k = row.chosen;
  return index_selection(seen, indexer, 1);
}

std::string joined(std::string name, std::initializer_list<std::int64_t> numbers) {
  for (const std::int64_t number : numbers) name += "/" + std::to_string(number);
  return name;
}

double time_us(const Kernel& kernel, KernelPrices& prices) {
  return to_seconds(prices.cost(kernel).duration).base() * 1e6;
}

/// Whether a row is about the kernel, rather than has it beside what it is about.
bool is_measured(const Kernel& kernel, const std::vector<Kernel>& row) {
  return row.size() == 1 || kernel.matrix_flops.base() > 0;
}

}  // namespace

std::optional<Precision> row_precision(OperatorTableKind kind, const OperatorRow& row) {
  if (is_block(kind)) {
    const std::optional<Precision> of_products = parse_precision(row.gemm_precision);
    return block_fault(row).empty() ? of_products : std::nullopt;
  }
  if (kind == OperatorTableKind::kSparseParts)
    return block_fault(row).empty() ? std::optional(sparse_part(row).front().precision)
                                    : std::nullopt;
  const std::optional<Precision> precision = parse_precision(row.precision);
  if (kind != OperatorTableKind::kAttentionPrefill || !precision) return precision;
  return attention_precision(KernelClass::kAttentionPrefill, *precision, row.kv_precision == "fp8");
}

WeightFormat row_weights(const OperatorRow& row) {
  const NarrowWeights* narrow = narrow_weights(row.precision);
  return {.bits = narrow == nullptr ? 0 : narrow->bits, .sparse = false};
}

std::vector<Kernel> operator_kernels(OperatorTableKind kind, const OperatorRow& row,
                                     Precision precision, const RowSoftware& software) {
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
    case OperatorTableKind::kRecurrent:
      return recurrent_kernels(row, activation_bytes(precision));
    case OperatorTableKind::kSelection:
      return {selection_kernel(row)};
    case OperatorTableKind::kBlockPrefill:
    case OperatorTableKind::kBlockDecode:
      return block_kernels(kind, row, precision, software);
    case OperatorTableKind::kSparseParts:
      return sparse_part(row);
    default: {
      const AttentionCore core = core_of(kind, row, precision);
      return {flash_attention(to_string(core.kind), core)};
    }
  }
}

std::string shape_group(OperatorTableKind kind, const OperatorRow& row) {
  switch (kind) {
    case OperatorTableKind::kGemm:
      return joined("gemm", {row.n, row.k});
    case OperatorTableKind::kAttentionPrefill:
    case OperatorTableKind::kAttentionDecode:
      return joined("attention", {row.heads, row.kv_heads, row.head_dim});
    case OperatorTableKind::kMlaPrefill:
    case OperatorTableKind::kMlaDecode:
      return joined("mla", {row.batch, row.heads});
    case OperatorTableKind::kMoe:
      // Experts with narrow weights were timed for one model or two: each plan is a group.
      if (row_weights(row).bits > 0)
        return joined("moe",
                      {row.hidden, row.expert_ffn, row.top_k, row.experts, row.moe_tp, row.moe_ep});
      return joined("moe", {row.hidden, row.expert_ffn, row.top_k, row.experts});
    case OperatorTableKind::kHbmStream:
      return "hbm_stream/" + std::to_string(row.bytes);
    case OperatorTableKind::kRowKernels:
      return joined("row_kernels/" + row.kernel, {row.cols});
    case OperatorTableKind::kLaunch:
      return "launch/" + row.test + "/" + row.kernel;
    case OperatorTableKind::kRecurrent:
      return joined("recurrent/" + row.kernel,
                    {row.heads, row.groups, row.key_dim, row.value_dim, row.channels, row.taps});
    case OperatorTableKind::kSelection:
      return joined("selection", {row.scores, row.chosen});
    case OperatorTableKind::kBlockPrefill:
    case OperatorTableKind::kBlockDecode:
      return joined("block/" + row.model, {row.batch, row.heads, row.compress_ratio});
    case OperatorTableKind::kSparseParts:
      return joined("sparse/" + row.operation, {row.batch, row.kv_prefix_len});
  }
  return "";
}

bool is_held_out(const std::string& group) {
  // The salt was chosen by the sizes of the parts alone: with it, every table of seven or more
  // groups has 15 to 31 % of its rows held out.
  std::uint64_t state = stable_hash("9/" + group);
  return next_random(state) % 4 == 0;
}

std::vector<MeasuredKernel> measured_kernels(const OperatorTable& table,
                                             const AcceleratorConfig& accelerator,
                                             const KernelModel& others) {
  if (is_block(table.kind))
    throw config::ConfigError(table.path +
                              ": its rows are blocks of several kernels, none of which they tell");
  const auto prices = others.on(accelerator);
  std::vector<MeasuredKernel> measured;
  for (const OperatorRow& row : table.rows) {
    if (table.systems[row.system] != accelerator.id) continue;
    const auto precision = row_precision(table.kind, row);
    if (!precision || find_precision(accelerator.compute.matrix, *precision) == nullptr) continue;
    const std::vector<Kernel> kernels = operator_kernels(table.kind, row, *precision);
    double about = 0, beside = 0;
    for (const Kernel& kernel : kernels)
      (is_measured(kernel, kernels) ? about : beside) += time_us(kernel, *prices);
    // A row that is shorter than what goes beside it says nothing about the rest.
    if (about <= 0 || row.latency_us <= beside) continue;
    const double ratio = (row.latency_us - beside) / about;
    for (const Kernel& kernel : kernels)
      if (is_measured(kernel, kernels))
        measured.push_back({kernel, ratio * time_us(kernel, *prices)});
  }
  return measured;
}

}  // namespace orrery
