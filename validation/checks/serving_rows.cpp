// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/serving_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "sim/config/byte_source.h"
#include "sim/config/csv.h"
#include "validation/importers/numbers.h"

namespace orrery {
namespace {

/// Reads cells of the current record by name.
class ServingCells {
 public:
  explicit ServingCells(config::CsvReader& csv) : csv_(csv) {}

  std::string text(const char* column) { return std::string(csv_.cell(csv_.column(column))); }
  /// Nothing where the table has no such column.
  std::string optional_text(const char* column) {
    const auto at = csv_.find(column);
    return at ? std::string(csv_.cell(*at)) : "";
  }
  double number(const char* column) {
    const std::size_t place = csv_.column(column);
    const auto value = parse_real(csv_.cell(place));
    if (value && std::abs(*value) <= 1e12) return *value;
    csv_.error(place, fmt::format("expected a number, got '{}'", csv_.cell(place)));
    return 0;
  }
  std::int64_t whole(const char* column) { return std::llround(number(column)); }

 private:
  config::CsvReader& csv_;
};

ServingRow read_row(config::CsvReader& csv) {
  ServingCells cells(csv);
  ServingRow row;
  row.text = csv.row();
  row.id = cells.text("id");
  row.model = cells.text("model_path");
  row.system = cells.text("system");
  row.backend = cells.text("backend");
  row.version = cells.text("backend_version");
  row.image = cells.text("image");
  row.date = cells.optional_text("measured_date");
  row.precision = cells.text("precision");
  row.gemm_quant = cells.text("gemm_quant_mode");
  row.isl = cells.whole("isl");
  row.osl = cells.whole("osl");
  row.concurrency = cells.whole("concurrency");
  row.gpus = static_cast<int>(cells.whole("gpus"));
  row.attention_dp = static_cast<int>(cells.whole("attention_dp_size"));
  row.moe_tp = static_cast<int>(cells.whole("moe_tp_size"));
  row.moe_ep = static_cast<int>(cells.whole("moe_ep_size"));
  row.ttft_ms = cells.number("ttft_ms");
  row.tpot_ms = cells.number("tpot_ms");
  return row;
}

std::string system_of(const ServingRow& row) {
  static const std::map<std::string, std::string> names = {
      {"a100_sxm", "dgx_a100"}, {"h100_sxm", "dgx_h100"},      {"h200_sxm", "dgx_h200"},
      {"b200_sxm", "dgx_b200"}, {"gb200", "gb200_nvl72"},      {"b300_sxm", "dgx_b300"},
      {"gb300", "gb300_nvl72"}, {"rtxpro6000", "rtx_pro_6000"}};
  const auto found = names.find(row.system);
  return found == names.end() ? row.system : found->second;
}

/// Checkpoints in fp4 of gpt-oss are what the model's own file says; others name their format. The
/// table does not say what the KV cache is kept in: it is taken for 16 bits, which engines do
/// unless they are told otherwise, but on devices with fp4, for latent attention, for products in
/// fp8 by TensorRT-LLM, whose checkpoints bring scales of the cache too (kv_cache_quant_algo; some
/// of those rows answer more requests at a time than a cache of 16 bits has room for), and for runs
/// of InferenceX of Llama, which its scripts tell so (benchmarks/70b_fp8_*.sh: kv-cache-dtype fp8).
std::string precision_keys(const ServingRow& row) {
  if (row.model.find("gpt-oss") != std::string::npos) return {};
  const std::string quant = row.gemm_quant.empty() ? row.precision : row.gemm_quant;
  const bool blocks =
      quant == "fp8_block" || (quant == "fp8" && row.model.find("DeepSeek") != std::string::npos);
  const bool blackwell =
      row.system.find("b200") != std::string::npos || row.system.find("b300") != std::string::npos;
  const bool latent = row.model.find("DeepSeek") != std::string::npos;
  const bool told = row.varied_lengths() && row.model.find("Llama") != std::string::npos;
  const bool with_scales =
      told || (row.backend == "trtllm" && (row.varied_lengths() || quant == "fp8"));
  const std::string cache = blackwell || latent || with_scales ? "fp8" : "bf16";
  if (blocks) return ", precision: fp8_block, kv_precision: " + cache;
  if (quant == "fp8") return ", precision: fp8, kv_precision: " + cache;
  if (quant == "nvfp4" || quant == "fp4") return ", precision: nvfp4, kv_precision: " + cache;
  return ", precision: bf16, kv_precision: bf16";
}

/// Versions that are numbers; nothing for others, and where none is known.
std::string version_key(const std::string& version) {
  const bool number = !version.empty() &&
                      version.find_first_not_of("0123456789.") == std::string::npos &&
                      version.find('.') != std::string::npos;
  return number ? fmt::format(", version: \"{}\"", version) : "";
}

/// "1.0" of "1.0.0rc3", for versions that have such a beginning.
std::string short_version_key(const std::string& version) {
  const std::size_t minor = version.find('.');
  if (minor == std::string::npos) return "";
  return version_key(version.substr(0, version.find('.', minor + 1)));
}

/// InferenceX's scripts ask for asynchronous scheduling (benchmarks/*.sh: async-scheduling true).
std::string async_key(const ServingRow& row) {
  return row.varied_lengths() ? ", async_scheduling: true" : "";
}

/// On B200 they ask for fused kernels of Llama (70b_fp8_b200_docker.sh: pass_config).
std::string fusion_key(const ServingRow& row) {
  const bool fused = row.varied_lengths() && row.system == "b200_sxm" &&
                     row.model.find("Llama") != std::string::npos;
  return fused ? ", quant_fusion: true" : "";
}

/// TensorRT-LLM's decoder of Qwen3 leaves quantisation to its linear layers (modeling_qwen3.py).
std::string apart_key(const ServingRow& row) {
  return row.model.find("Qwen3") != std::string::npos ? ", quant_fusion: false" : "";
}

/// On Hopper its scripts ask for Marlin's kernels since vLLM 0.13 (perf-changelog.yaml, pull
/// request 327: VLLM_MXFP4_USE_MARLIN).
std::string marlin_key(const ServingRow& row) {
  const bool hopper = row.system.starts_with("h100") || row.system.starts_with("h200");
  const bool asks = row.known_protocol() && row.model.find("gpt-oss") != std::string::npos &&
                    row.version.starts_with("0.") && std::atoi(row.version.c_str() + 2) >= 13;
  return hopper && asks ? ", moe_backend: marlin" : "";
}

/// The table has no column for draft tokens. InferenceX runs DeepSeek-R1 by TensorRT-LLM with and
/// without its module, in images of their own since 1.2.0rc6 (pull requests 1488 and 1489: post2
/// without, post3 with); before, the first runs with it are those of January 14, 2026
/// (perf-changelog.yaml, pull request 392). They draft three tokens, with data parallel attention
/// one (benchmarks/single_node/dsr1_*_trt_mtp.sh).
std::int64_t draft_tokens_of(const ServingRow& row) {
  const bool runs = row.backend == "trtllm" && row.model.find("DeepSeek-R1") != std::string::npos;
  const bool first = row.image.ends_with("1.1.0rc2.post2") && row.date == "2026-01-14";
  if (!runs || !(first || row.image.ends_with("1.2.0rc6.post3"))) return 0;
  return row.attention_dp > 1 ? 1 : 3;
}

/// How often R1's draft tokens are right is not published. Those of DeepSeek-V4 Pro, the next model
/// of its makers with such a module, are by InferenceX's measurement (dsv4_mtp.yaml, thinking on):
/// tokens of an iteration by draft tokens.
std::string speculative_key(const ServingRow& row) {
  const std::int64_t draft_tokens = draft_tokens_of(row);
  if (draft_tokens == 0) return "";
  return fmt::format(
      ", speculative: {{method: mtp, num_speculative_tokens: {}, acceptance_length: {}}}",
      draft_tokens, draft_tokens == 1 ? 1.79 : 2.49);
}

/// InferenceX's runs with data parallel attention balance prompts (dsr1_*_trt*.sh:
/// attention_dp_config; gpt-oss has TensorRT-LLM's own 50 and 10 iterations).
std::string waits_key(const ServingRow& row) {
  if (row.attention_dp <= 1 || !row.varied_lengths()) return "";
  const bool deepseek = row.model.find("DeepSeek") != std::string::npos;
  return fmt::format(", attention_dp_config: {{enable_balance: true{}}}",
                     deepseek ? ", timeout_iters: 60, batching_wait_iters: 0" : "");
}

/// Room for the longest prompt beside a full batch (benchmarks/single_node/*_trt*.sh:
/// MAX_NUM_TOKENS).
std::int64_t most_tokens(const ServingRow& row) {
  const std::int64_t batch = (draft_tokens_of(row) + 1) * row.concurrency;
  return std::max<std::int64_t>(2048, row.isl + batch);
}

std::string host_key(const std::optional<HostCosts>& host) {
  if (!host) return "";
  const auto ns = [](Seconds time) { return std::llround(time.base() * 1e9); };
  return fmt::format(
      ", host: {{iteration: {} ns, sequence: {} ns, request: {} ns, launch: {} ns, gap: {} ns}}",
      ns(host->iteration), ns(host->sequence), ns(host->request), ns(host->launch), ns(host->gap));
}

/// InferenceX's runs of TensorRT-LLM pad batches to graphs up to their clients
/// (benchmarks/single_node/*_trt*.sh: cuda_graph_config; sizes of llmapi/llm_args.py,
/// _generate_cuda_graph_batch_sizes). What others capture is not known: every batch has a graph.
std::string graphs_key(const ServingRow& row) {
  if (!row.varied_lengths()) return ", cuda_graph_config: {batch_sizes: []}";
  std::string sizes = "1, 2, 4";
  for (std::int64_t size = 8; size < row.concurrency; size += size < 128 ? 8 : 64)
    sizes += fmt::format(", {}", size);
  if (row.concurrency > 4) sizes += fmt::format(", {}", row.concurrency);
  return fmt::format(", cuda_graph_config: {{enable_padding: true, batch_sizes: [{}]}}", sizes);
}

/// InferenceX's runs of DeepSeek-R1 by SGLang say how long chunks are, 32,768 tokens in fp8 and
/// 16,384 in nvfp4, capture graphs for all of their clients, and on B200 look for new requests now
/// and then (benchmarks/single_node/dsr1_*.sh).
std::string sglang_keys(const ServingRow& row) {
  if (!row.varied_lengths() || row.model.find("DeepSeek") == std::string::npos) return "";
  constexpr std::int64_t kManyClients = 16;
  std::string keys =
      fmt::format(", chunked_prefill_size: {}, max_prefill_tokens: 32768, cuda_graph_max_bs: {}",
                  row.gemm_quant.starts_with("fp8") ? 32768 : 16384,
                  std::max<std::int64_t>(row.concurrency, 128));
  if (row.system.starts_with("b200"))
    keys += fmt::format(", scheduler_recv_interval: {}", row.concurrency >= kManyClients ? 30 : 10);
  return keys;
}

std::string engine_of(const ServingRow& row, const std::optional<HostCosts>& host) {
  const auto most = std::max<std::int64_t>(row.concurrency, 1);
  // Runs of InferenceX are started by `vllm serve`, whose budget is 8,192 tokens on such devices;
  // others by a library call, whose budget is 2,048 (vllm/engine/arg_utils.py).
  const int budget = row.varied_lengths() ? 8192 : 2048;
  if (row.backend == "vllm")
    return fmt::format("{{kind: vllm{}{}{}{}, max_num_batched_tokens: {}, max_num_seqs: {}{}}}",
                       version_key(row.version), async_key(row), fusion_key(row), marlin_key(row),
                       budget, most, host_key(host));
  if (row.backend == "sglang")
    return fmt::format("{{kind: sglang{}{}, max_running_requests: {}{}}}", version_key(row.version),
                       sglang_keys(row), most, host_key(host));
  if (row.backend == "trtllm")
    return fmt::format("{{kind: tensorrt_llm{}{}, max_num_tokens: {}{}{}{}}}",
                       short_version_key(row.version), apart_key(row), most_tokens(row),
                       graphs_key(row), waits_key(row), host_key(host));
  throw config::ConfigError("no engine is called '" + row.backend + "'");
}

/// A fifth either way: enough for clients to fall out of step.
std::string around(std::int64_t mean) {
  return fmt::format("{{uniform: [{}, {}]}}", std::max<std::int64_t>(1, mean - mean / 5),
                     mean + mean / 5);
}

std::string lengths(const ServingRow& row, std::int64_t most) {
  if (!row.varied_lengths()) return std::to_string(most);
  const auto least = std::max<std::int64_t>(1, std::llround(0.8 * static_cast<double>(most)));
  return fmt::format("{{uniform: [{}, {}]}}", least, most);
}

}  // namespace

bool ServingRow::tells_ttft() const {
  const bool llama_70b = model.find("Llama-3.1-70B") != std::string::npos;
  const bool llama_8b = model.find("Llama-3.1-8B") != std::string::npos;
  if (backend == "trtllm" && llama_70b && isl == 1024 && osl == 1024 && gpus <= 4) return false;
  if (backend == "trtllm" && llama_8b && system == "h100_sxm") return false;
  constexpr double kSaturated = 3000;  // of dense models, whose prompts are short
  if (llama_70b && ttft_ms > kSaturated) return false;
  return varied_lengths();
}

ServingRows read_serving_rows(const std::string& path) {
  config::CsvReader csv(path, read_input(path));
  ServingRows table;
  for (const std::string& column : csv.columns())
    table.columns += (table.columns.empty() ? "" : ",") + column;
  while (csv.next()) table.rows.push_back(read_row(csv));
  csv.throw_if_errors();
  if (table.rows.empty()) throw config::ConfigError(path + ": has no rows");
  return table;
}

std::string serving_experiment(const ServingRow& row, const std::string& model, bool experts,
                               const std::optional<HostCosts>& host, bool in_step) {
  const int dp = std::max(row.attention_dp, 1);
  const std::string plan =
      experts ? fmt::format(", ep: {}, etp: {}", std::max(row.moe_ep, 1), std::max(row.moe_tp, 1))
              : "";
  return fmt::format(
      R"(experiment: serving
model: {}
serving:
  workload: {{concurrency: {}, requests: {}, input: {}, output: {}}}
  fleet:
    - {{system: {}, parallel: {{tp: {}, dp: {}{}}}{}{}, engine: {}}}
)",
      model, row.concurrency, 10 * row.concurrency, lengths(row, row.isl),
      in_step ? lengths(row, row.osl) : around(row.osl), system_of(row), row.gpus / dp, dp, plan,
      precision_keys(row), speculative_key(row), engine_of(row, host));
}

}  // namespace orrery
