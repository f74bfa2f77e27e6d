// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/graph/kernel.h"

namespace orrery {

/// What the rows of an operator table are; each has its own columns (validation/README.md).
enum class OperatorTableKind : std::uint8_t {
  kGemm,
  kAttentionPrefill,
  kAttentionDecode,
  kMlaPrefill,
  kMlaDecode,
  kMoe,
  kHbmStream,     ///< table of orrery-measure: reads and writes of the whole memory
  kRowKernels,    ///< table of orrery-measure: kernels that stream rows
  kLaunch,        ///< table of orrery-measure: what launching costs, by way of launching
  kRecurrent,     ///< kernels that stream states and short windows
  kSelection,     ///< the largest scores of each row
  kBlockPrefill,  ///< mixers of whole layers over prompts (block_kernels.h)
  kBlockDecode,   ///< such mixers over a new token of each sequence
  kSparseParts,   ///< kernels of sparse attention: scores, selections, attention
};
/// "gemm", "attention_prefill", ...: the name of the file without its endings.
const char* to_string(OperatorTableKind kind);

/// One measured operator. Columns that its table does not have are 0 or empty; `batch` of a GEMM
/// may be missing (one product).
struct OperatorRow {
  std::size_t line = 0;      ///< line of the file, the header is line 1
  std::uint32_t system = 0;  ///< index into OperatorTable::systems
  std::uint32_t source = 0;  ///< index into OperatorTable::sources
  std::uint32_t engine = 0;  ///< index into OperatorTable::engines
  std::string precision, kv_precision, distribution;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 0, q_len = 0, kv_prefix_len = 0, kv_len = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0, window = 0;
  std::int64_t tokens = 0, hidden = 0, expert_ffn = 0, top_k = 0, experts = 0, moe_tp = 0,
               moe_ep = 0;
  std::int64_t matrices = 0;  ///< matrices an expert: 3 (gated) or 2; 0: as its model is known
  std::string kernel, test;
  /// Blocks: the model, the format of its projections, and which of its kernels a row is alone.
  std::string model, gemm_precision, operation;
  std::string score_mode;           ///< selections: how the measured scores are spread
  std::int64_t compress_ratio = 0;  ///< blocks of DeepSeek-V4: tokens of an entry
  /// kRecurrent: format of states; heads that share a key, or B and C; columns of keys (of the
  /// state, of Mamba-2) and of values (of a head); channels and taps of a convolution.
  std::string state_precision;
  std::int64_t groups = 0, key_dim = 0, value_dim = 0, channels = 0, taps = 0;
  std::int64_t scores = 0, chosen = 0;  ///< kSelection: of a row, and how many of them
  std::int64_t rows = 0, cols = 0, read_bytes = 0, written_bytes = 0, bytes = 0, ctas = 0,
               kernels = 0;
  double read_share = 0;  ///< share of the bytes that are read
  double latency_us = 0;  ///< kLaunch: of one kernel
  std::string text;       ///< the row as it stands in the file, for output
};

/// The program whose kernels were measured: "vllm", "0.24.0". A table without columns of these
/// names leaves both empty.
struct MeasuredEngine {
  std::string framework, version;
  auto operator<=>(const MeasuredEngine&) const = default;
  /// "vllm 0.24.0"; empty for rows of no engine.
  std::string name() const { return framework.empty() ? "" : framework + " " + version; }
};

struct OperatorTable {
  OperatorTableKind kind = OperatorTableKind::kGemm;
  std::string path;
  std::string header;                         ///< the header line as it stands in the file
  std::vector<std::string> systems, sources;  ///< names in order of first appearance
  std::vector<MeasuredEngine> engines;        ///< engines in order of first appearance
  std::vector<OperatorRow> rows;
};

/// A column and the texts of which rows must have one in it.
struct RowCondition {
  std::string column;
  std::vector<std::string> values;
};
/// What `--where` of verbs that read tables says.
inline constexpr const char* kWhereHelp =
    "read only rows with one of these values in this column, such as version=0.24.0 or "
    "precision=bf16,fp8; repeatable";
/// @param texts "precision=bf16,fp8"; nothing in front of a comma is an empty cell
/// @throws config::ConfigError for a text without a column or without '='
std::vector<RowCondition> row_conditions(const std::vector<std::string>& texts);

/// Reads an operator table, plain or gzip. The kind follows from the columns; further columns are
/// kept in `text` and otherwise ignored.
/// @param where rows that miss one of the conditions are not read
/// @throws config::ConfigError with file, line and column for what is wrong.
OperatorTable read_operator_table(const std::string& path,
                                  const std::vector<RowCondition>& where = {});

/// What the rows of a collective table are.
enum class CollectiveTableKind : std::uint8_t {
  kNccl,             ///< NCCL, with a column `collective`
  kAllReduceCustom,  ///< one- and two-shot all-reduce of TensorRT-LLM, without that column
};
/// "collective_nccl", "all_reduce_custom": the name of the file without its endings.
const char* to_string(CollectiveTableKind kind);

/// One measured collective.
struct CollectiveRow {
  std::size_t line = 0;    ///< line of the file, the header is line 1
  std::string system;      ///< accelerator; the ranks are in one node
  std::string collective;  ///< name as nccl-tests spells it: "all_reduce", "alltoall"
  std::string precision;
  std::int64_t ranks = 0;
  std::int64_t bytes = 0;  ///< the `size` of nccl-tests
  double latency_us = 0;
  std::string source;
  MeasuredEngine engine;  ///< the engine that ran; not set for NCCL and other libraries
  std::string kernel;     ///< "vLLM_custom_graph"; empty: not said
  std::string text;       ///< the row as it stands in the file, for output
};

struct CollectiveTable {
  CollectiveTableKind kind = CollectiveTableKind::kNccl;
  std::string path;
  std::string header;  ///< the header line as it stands in the file
  std::vector<CollectiveRow> rows;
};

/// Reads a collective table, plain or gzip: columns system, collective (absent: "all_reduce"),
/// precision, ranks, bytes, latency_us, source, and where it has them framework, version and
/// kernel; further ones are kept in `text`.
/// @param where rows that miss one of the conditions are not read
/// @throws config::ConfigError with file, line and column for what is wrong
CollectiveTable read_collective_table(const std::string& path,
                                      const std::vector<RowCondition>& where = {});

}  // namespace orrery
