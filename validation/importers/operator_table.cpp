// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/operator_table.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "sim/config/byte_source.h"
#include "sim/config/csv.h"
#include "sim/units/comma_separated.h"
#include "sim/units/spelling.h"
#include "validation/importers/numbers.h"

namespace orrery {
namespace {

/// The columns of those names, in their order; the missing ones are errors of the header.
/// @throws config::ConfigError when there are missing ones
std::vector<std::size_t> require_columns(config::CsvReader& reader,
                                         const std::vector<std::string>& names) {
  std::vector<std::size_t> places;
  for (const std::string& name : names) {
    const auto place = reader.find(name);
    if (!place) {
      const std::string meant = nearest_name(name, reader.columns());
      reader.error(0, "there is no column '" + name + "'" +
                          (meant.empty() ? "" : "; is it '" + meant + "'?"));
    }
    places.push_back(place.value_or(0));
  }
  reader.throw_if_errors();
  return places;
}

/// Says that a cell of the current record is not as expected. @return 0, its value from then on
int refuse(config::CsvReader& reader, std::size_t cell, const char* expected) {
  reader.error(cell, fmt::format("'{}' is {}, not '{}'", reader.columns()[cell], expected,
                                 reader.cell(cell)));
  return 0;
}

std::int64_t read_count(config::CsvReader& reader, std::size_t cell) {
  const auto count = parse_count(reader.cell(cell));
  return count ? *count : refuse(reader, cell, "a whole number from 0 on");
}

double read_latency(config::CsvReader& reader, std::size_t cell) {
  const auto latency = parse_real(reader.cell(cell));
  return latency && *latency > 0 ? *latency : refuse(reader, cell, "a finite number above 0");
}

double read_share(config::CsvReader& reader, std::size_t cell) {
  const auto share = parse_real(reader.cell(cell));
  return share && *share >= 0 && *share <= 1 ? *share
                                             : refuse(reader, cell, "a number from 0 to 1");
}

std::string read_name(config::CsvReader& reader, std::size_t cell) {
  if (reader.cell(cell).empty()) reader.error(cell, "'" + reader.columns()[cell] + "' is empty");
  return std::string(reader.cell(cell));
}

template <class Value>
struct Column {
  const char* name;
  Value OperatorRow::*member;
};
using CountColumn = Column<std::int64_t>;
using TextColumn = Column<std::string>;
using ShareColumn = Column<double>;

/// What is wrong with a row beyond its cells, or nothing; sets what follows from them.
using RowFault = std::string (*)(OperatorRow& row);

/// The columns of a kind. Optional ones are read where they stand.
struct KindColumns {
  const char* name;
  std::vector<TextColumn> texts;
  std::vector<CountColumn> counts;
  std::vector<CountColumn> optional = {};
  std::vector<ShareColumn> shares = {};
  bool precision = true;
  const char* latency = "latency_us";
  RowFault fault = nullptr;
  std::vector<TextColumn> optional_texts = {};
};

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

/// What engines' names of kernels of recurrent layers mean: those of flash-linear-attention, of
/// FlashInfer (one kernel for all of a chunk) and of their own.
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

/// Recurrent kernels in tables of engines: of delta networks, whose heads of values share a key,
/// and of Mamba-2, whose heads share B and C.
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

/// In the order of OperatorTableKind.
const std::vector<KindColumns>& kinds() {
  static const std::vector<KindColumns> all = [] {
    std::vector<KindColumns> both = kinds_of_kernels();
    for (const KindColumns& columns : kinds_of_blocks()) both.push_back(columns);
    return both;
  }();
  return all;
}

const KindColumns& columns_of(OperatorTableKind kind) {
  return kinds()[static_cast<std::size_t>(kind)];
}

/// The columns that a table of a kind has.
KindColumns columns_in(config::CsvReader& reader, OperatorTableKind kind) {
  const auto has = [&reader](const char* column) { return reader.find(column).has_value(); };
  const bool of_engines =
      kind == OperatorTableKind::kRecurrent && (has("num_v_heads") || has("nheads"));
  return of_engines ? engine_recurrences(has("num_v_heads")) : columns_of(kind);
}

/// Told by the columns that no other kind has; MLA has one latent head of keys and values, and so
/// no column of their number.
OperatorTableKind kind_of(config::CsvReader& reader) {
  const auto has = [&reader](const char* column) { return reader.find(column).has_value(); };
  if (has("experts")) return OperatorTableKind::kMoe;
  if (has("state_precision") || has("num_v_heads") || has("nheads"))
    return OperatorTableKind::kRecurrent;
  if (has("chosen")) return OperatorTableKind::kSelection;
  if (has("gemm_precision") && has("operation")) return OperatorTableKind::kSparseParts;
  if (has("gemm_precision"))
    return has("q_len") ? OperatorTableKind::kBlockPrefill : OperatorTableKind::kBlockDecode;
  const bool of_mla = !has("kv_heads");
  if (has("q_len"))
    return of_mla ? OperatorTableKind::kMlaPrefill : OperatorTableKind::kAttentionPrefill;
  if (has("kv_len"))
    return of_mla ? OperatorTableKind::kMlaDecode : OperatorTableKind::kAttentionDecode;
  if (has("us_per_kernel")) return OperatorTableKind::kLaunch;
  if (has("written_bytes")) return OperatorTableKind::kRowKernels;
  if (has("read_share")) return OperatorTableKind::kHbmStream;
  if (!has("m")) {
    reader.error(
        0,
        "these are not the columns of an operator table: one of experts (moe), q_len "
        "(prefill), kv_len (decode), m (gemm), written_bytes (row_kernels), read_share "
        "(hbm_stream), us_per_kernel (launch), state_precision, num_v_heads or nheads "
        "(recurrent_kernels), chosen (index_selection) or gemm_precision (blocks) must be there");
    reader.throw_if_errors();
  }
  return OperatorTableKind::kGemm;
}

/// Position of `name` in `names`, at the end if it is new. The last rows' name is the likeliest.
template <class Name>
std::uint32_t index_of(std::vector<Name>& names, const Name& name) {
  const auto found = std::find(names.rbegin(), names.rend(), name);
  if (found != names.rend()) return static_cast<std::uint32_t>(names.rend() - found - 1);
  names.push_back(name);
  return static_cast<std::uint32_t>(names.size() - 1);
}

/// Where the columns of a kind stand in a file: system, latency, precision where it has one, those
/// of texts, counts and shares.
std::vector<std::size_t> find_places(config::CsvReader& reader, const KindColumns& columns) {
  std::vector<std::string> names = {"system", columns.latency};
  if (columns.precision) names.emplace_back("precision");
  for (const TextColumn& column : columns.texts) names.emplace_back(column.name);
  for (const CountColumn& column : columns.counts) names.emplace_back(column.name);
  for (const ShareColumn& column : columns.shares) names.emplace_back(column.name);
  return require_columns(reader, names);
}

std::vector<std::size_t> columns_asked(config::CsvReader& reader,
                                       const std::vector<RowCondition>& where) {
  std::vector<std::string> names;
  names.reserve(where.size());
  for (const RowCondition& condition : where) names.push_back(condition.column);
  return require_columns(reader, names);
}

bool meets(const config::CsvReader& reader, const std::vector<std::size_t>& columns,
           const std::vector<RowCondition>& where) {
  for (std::size_t i = 0; i < where.size(); ++i)
    if (std::ranges::find(where[i].values, reader.cell(columns[i])) == where[i].values.end())
      return false;
  return true;
}

/// The cell of a column; empty where the file has none of that name.
std::string cell_of(config::CsvReader& reader, const char* column) {
  const auto place = reader.find(column);
  return place ? std::string(reader.cell(*place)) : "";
}

MeasuredEngine engine_of(config::CsvReader& reader) {
  return {cell_of(reader, "framework"), cell_of(reader, "version")};
}

OperatorRow read_row(config::CsvReader& reader, const KindColumns& columns,
                     const std::vector<std::size_t>& places, OperatorTable& table) {
  OperatorRow row;
  row.line = static_cast<std::size_t>(reader.line());
  row.system = index_of(table.systems, read_name(reader, places[0]));
  row.source = index_of(table.sources, cell_of(reader, "source"));
  row.engine = index_of(table.engines, engine_of(reader));
  auto place = places.begin() + 2;
  row.precision = columns.precision ? read_name(reader, *place++) : "bf16";
  for (const TextColumn& column : columns.texts) row.*column.member = read_name(reader, *place++);
  for (const CountColumn& column : columns.counts)
    row.*column.member = read_count(reader, *place++);
  for (const ShareColumn& column : columns.shares)
    row.*column.member = read_share(reader, *place++);
  for (const CountColumn& column : columns.optional)
    if (const auto there = reader.find(column.name))
      row.*column.member = read_count(reader, *there);
  for (const TextColumn& column : columns.optional_texts)
    row.*column.member = cell_of(reader, column.name);
  row.latency_us = read_latency(reader, places[1]);
  const std::string fault = columns.fault == nullptr ? "" : columns.fault(row);
  if (!fault.empty()) reader.error(0, fault);
  row.text = reader.row();
  return row;
}

}  // namespace

const char* to_string(OperatorTableKind kind) { return columns_of(kind).name; }

std::vector<RowCondition> row_conditions(const std::vector<std::string>& texts) {
  std::vector<RowCondition> conditions;
  for (const std::string& text : texts) {
    const std::size_t sign = text.find('=');
    if (sign == std::string::npos || sign == 0)
      throw config::ConfigError(
          fmt::format("'{}' is no condition on a column; write it as version=0.24.0", text));
    const std::string all = text.substr(sign + 1);
    RowCondition& condition = conditions.emplace_back(RowCondition{text.substr(0, sign), {}});
    for (const std::string_view value : comma_separated(all)) condition.values.emplace_back(value);
    if (all.empty() || all.front() == ',') condition.values.emplace_back();  // an empty cell
  }
  return conditions;
}

OperatorTable read_operator_table(const std::string& path, const std::vector<RowCondition>& where) {
  config::CsvReader reader(path, read_input(path));
  OperatorTable table;
  table.path = path;
  table.header = reader.row();
  table.kind = kind_of(reader);
  const KindColumns columns = columns_in(reader, table.kind);
  const std::vector<std::size_t> places = find_places(reader, columns);
  const std::vector<std::size_t> asked = columns_asked(reader, where);
  while (reader.next())
    if (meets(reader, asked, where)) table.rows.push_back(read_row(reader, columns, places, table));
  reader.throw_if_errors();
  return table;
}

const char* to_string(CollectiveTableKind kind) {
  return kind == CollectiveTableKind::kNccl ? "collective_nccl" : "all_reduce_custom";
}

CollectiveTable read_collective_table(const std::string& path,
                                      const std::vector<RowCondition>& where) {
  config::CsvReader reader(path, read_input(path));
  CollectiveTable table;
  table.path = path;
  table.header = reader.row();
  const auto collective = reader.find("collective");
  table.kind = collective ? CollectiveTableKind::kNccl : CollectiveTableKind::kAllReduceCustom;
  const std::vector<std::size_t> places =
      require_columns(reader, {"system", "precision", "ranks", "bytes", "latency_us", "source"});
  const std::vector<std::size_t> asked = columns_asked(reader, where);
  while (reader.next()) {
    if (!meets(reader, asked, where)) continue;
    CollectiveRow& row = table.rows.emplace_back();
    row.line = static_cast<std::size_t>(reader.line());
    row.system = read_name(reader, places[0]);
    row.collective = collective ? read_name(reader, *collective) : "all_reduce";
    row.precision = read_name(reader, places[1]);
    row.ranks = read_count(reader, places[2]);
    row.bytes = read_count(reader, places[3]);
    row.latency_us = read_latency(reader, places[4]);
    row.source = reader.cell(places[5]);
    row.engine = engine_of(reader);
    row.kernel = cell_of(reader, "kernel");
    row.text = reader.row();
  }
  reader.throw_if_errors();
  return table;
}

}  // namespace orrery
