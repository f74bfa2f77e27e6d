// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/operator_columns.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace orrery {
namespace {

bool is_convolution(const OperatorRow& row) { return row.kernel.starts_with("causal_convolution"); }

std::string recurrent_fault(OperatorRow& row) {
  static const std::set<std::string> known = {
      "delta_update", "mamba_update", "causal_convolution", "causal_convolution_update",
      "delta_rule",   "delta_fused",  "kimi_rule",          "kimi_update"};
  if (!known.contains(row.kernel))
    return fmt::format("'kernel' is one of {}", fmt::join(known, ", "));
  if (row.state_precision != "fp32" && row.state_precision != "bf16")
    return "'state_precision' is fp32 or bf16";
  if (row.batch == 0 || row.tokens == 0) return "'batch' and 'tokens' are at least 1";
  if (is_convolution(row))
    return row.channels > 0 && row.taps > 0 ? "" : "'channels' and 'taps' are at least 1";
  if (row.heads == 0 || row.key_dim == 0 || row.value_dim == 0)
    return "'heads', 'key_dim' and 'value_dim' are at least 1";
  return row.groups > 0 && row.heads % row.groups == 0 ? "" : "'groups' divides 'heads'";
}

/// The kernel of recurrent layers that an engine's name means: one of flash-linear-attention, of
/// FlashInfer (all of a chunk) or of its own.
std::string recurrence_of(const OperatorRow& row) {
  const auto has = [&row](const char* part) { return row.kernel.find(part) != std::string::npos; };
  if (has("causal_conv1d"))
    return has("update") ? "causal_convolution_update" : "causal_convolution";
  const std::string rule = row.operation == "kda" ? "kimi" : "delta";
  if (has("flashinfer")) return rule + "_fused";
  if (has("chunk") || has("flashkda")) return rule + "_rule";
  return rule + "_update";
}

/// Tables of engines have the columns of models, whose states are of 32 bits
/// (`mamba_ssm_dtype`), and name kernels as their software does.
std::string engine_recurrence_fault(OperatorRow& row) {
  row.kernel = recurrence_of(row);
  row.state_precision = "fp32";
  row.channels = 2 * row.groups * row.key_dim + row.heads * row.value_dim;
  const std::int64_t least = std::min(
      {row.batch, row.tokens, row.taps, row.heads, row.groups, row.key_dim, row.value_dim});
  if (least == 0) return "numbers of sequences, tokens, taps, heads and columns are at least 1";
  if (row.heads % row.groups != 0) return "heads that others share divide those";
  return recurrent_fault(row);
}

std::string selection_fault(OperatorRow& row) {
  if (row.rows > 0 && row.chosen > 0 && row.chosen <= row.scores) return "";
  return "'rows' and 'chosen' are at least 1, and no more are chosen than there are 'scores'";
}

std::string sparse_fault(OperatorRow& row) {
  for (const char* part : {"logits", "topk", "attn"})
    if (row.operation.find(part) != std::string::npos) return "";
  return "'operation' has logits, topk or attn in it";
}

/// Blocks of models and their kernels, the last of OperatorTableKind.
std::vector<KindColumns> kinds_of_blocks() {
  using Row = OperatorRow;
  const TextColumn kv_precision = {"kv_precision", &Row::kv_precision},
                   model = {"model", &Row::model},
                   gemm_precision = {"gemm_precision", &Row::gemm_precision},
                   kernel = {"kernel", &Row::kernel};
  const CountColumn batch = {"batch", &Row::batch}, q_len = {"q_len", &Row::q_len},
                    kv_prefix_len = {"kv_prefix_len", &Row::kv_prefix_len},
                    kv_len = {"kv_len", &Row::kv_len}, heads = {"heads", &Row::heads},
                    compress_ratio = {"compress_ratio", &Row::compress_ratio};
  return {{.name = "block_prefill",
           .texts = {kv_precision, model, gemm_precision},
           .counts = {batch, q_len, kv_prefix_len, heads},
           .optional = {compress_ratio},
           .optional_texts = {kernel}},
          {.name = "block_decode",
           .texts = {kv_precision, model, gemm_precision},
           .counts = {batch, kv_len, heads},
           .optional = {compress_ratio},
           .optional_texts = {kernel}},
          {.name = "sparse_parts",
           .texts = {kv_precision, model, {"operation", &Row::operation}},
           .counts = {batch, q_len, kv_prefix_len, heads},
           .optional = {compress_ratio},
           .fault = sparse_fault,
           .optional_texts = {{"score_mode", &Row::score_mode}}}};
}

/// Single kernels, the first of OperatorTableKind.
std::vector<KindColumns> kinds_of_kernels() {
  using Row = OperatorRow;
  const TextColumn kv_precision = {"kv_precision", &Row::kv_precision};
  const CountColumn batch = {"batch", &Row::batch}, q_len = {"q_len", &Row::q_len},
                    kv_prefix_len = {"kv_prefix_len", &Row::kv_prefix_len},
                    kv_len = {"kv_len", &Row::kv_len}, heads = {"heads", &Row::heads},
                    kv_heads = {"kv_heads", &Row::kv_heads},
                    head_dim = {"head_dim", &Row::head_dim}, window = {"window", &Row::window};
  return {{"gemm", {}, {{"m", &Row::m}, {"n", &Row::n}, {"k", &Row::k}}, {batch}},
          {"attention_prefill",
           {kv_precision},
           {batch, q_len, kv_prefix_len, heads, kv_heads, head_dim, window}},
          {"attention_decode", {kv_precision}, {batch, kv_len, heads, kv_heads, head_dim, window}},
          {"mla_prefill", {kv_precision}, {batch, q_len, kv_prefix_len, heads}},
          {"mla_decode", {kv_precision}, {batch, kv_len, heads}},
          {"moe",
           {{"distribution", &Row::distribution}},
           {{"tokens", &Row::tokens},
            {"hidden", &Row::hidden},
            {"expert_ffn", &Row::expert_ffn},
            {"top_k", &Row::top_k},
            {"experts", &Row::experts},
            {"moe_tp", &Row::moe_tp},
            {"moe_ep", &Row::moe_ep}},
           {{"matrices", &Row::matrices}}},
          {.name = "hbm_stream",
           .texts = {},
           .counts = {{"bytes", &Row::bytes}, {"ctas", &Row::ctas}},
           .shares = {{"read_share", &Row::read_share}},
           .precision = false},
          {.name = "row_kernels",
           .texts = {{"kernel", &Row::kernel}},
           .counts = {{"rows", &Row::rows},
                      {"cols", &Row::cols},
                      {"read_bytes", &Row::read_bytes},
                      {"written_bytes", &Row::written_bytes}},
           .precision = false},
          {.name = "launch",
           .texts = {{"test", &Row::test}, {"kernel", &Row::kernel}},
           .counts = {{"kernels", &Row::kernels}},
           .precision = false,
           .latency = "us_per_kernel"},
          {.name = "recurrent_kernels",
           .texts = {{"kernel", &Row::kernel}, {"state_precision", &Row::state_precision}},
           .counts = {batch,
                      {"tokens", &Row::tokens},
                      heads,
                      {"groups", &Row::groups},
                      {"key_dim", &Row::key_dim},
                      {"value_dim", &Row::value_dim},
                      {"channels", &Row::channels},
                      {"taps", &Row::taps}},
           .fault = recurrent_fault},
          {.name = "index_selection",
           .texts = {},
           .counts = {{"rows", &Row::rows}, {"scores", &Row::scores}, {"chosen", &Row::chosen}},
           .precision = false,
           .fault = selection_fault}};
}

/// In the order of OperatorTableKind.
const std::vector<KindColumns>& kinds() {
  static const std::vector<KindColumns> all = [] {
    std::vector<KindColumns> both = kinds_of_kernels();
    for (const KindColumns& columns : kinds_of_blocks()) both.push_back(columns);
    return both;
  }();
  return all;
}

}  // namespace

const KindColumns& columns_of(OperatorTableKind kind) {
  return kinds()[static_cast<std::size_t>(kind)];
}

KindColumns engine_recurrences(bool delta) {
  using Row = OperatorRow;
  const auto name = [delta](const char* of_delta, const char* of_mamba) {
    return delta ? of_delta : of_mamba;
  };
  return {.name = "recurrent_kernels",
          .texts = {{"kernel", &Row::kernel}, {"operation", &Row::operation}},
          .counts = {{"batch", &Row::batch},
                     {"seq_len", &Row::tokens},
                     {"d_conv", &Row::taps},
                     {name("num_v_heads", "nheads"), &Row::heads},
                     {name("num_k_heads", "n_groups"), &Row::groups},
                     {name("head_k_dim", "d_state"), &Row::key_dim},
                     {name("head_v_dim", "head_dim"), &Row::value_dim}},
          .precision = false,
          .fault = engine_recurrence_fault};
}

}  // namespace orrery
