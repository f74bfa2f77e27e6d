// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/block_kernels.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include "sim/config/load.h"
#include "workloads/layers/layers.h"
#include "workloads/layers/sparse/compressed_attention.h"
#include "workloads/layers/sparse/indexer_kernels.h"
#include "workloads/models/config/model_config.h"

namespace orrery {
namespace {

/// The file of a model as tables name it: "DeepSeek-V3.2" is deepseek_v3_2. What a checkpoint adds
/// to the name of its model says the format of its weights, which rows say themselves.
std::string file_of(std::string name) {
  for (const std::string format : {"-NVFP4", "-FP8"})
    if (name.ends_with(format)) name.resize(name.size() - format.size());
  for (char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    c = std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : '_';
  }
  return name;
}

std::optional<LlmConfig> read_model(const std::string& name) {
  const config::Library& library = config::default_library();
  const std::string path = library.locate("models", file_of(name), "");
  if (!std::filesystem::exists(path)) return {};
  return config::load<ModelConfig>(path, library, "models").build();
}

/// Tables have thousands of rows of few models.
const LlmConfig* model_named(const std::string& name) {
  static std::map<std::string, std::optional<LlmConfig>> read;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = read.try_emplace(name);
  if (is_new) at->second = read_model(name);
  return at->second ? &*at->second : nullptr;
}

/// Which mixer of its model a row has: of DeepSeek-V4 by the tokens of an entry, of models whose
/// layers share selections by the kernel's name, else the one that most layers have.
std::optional<MixerKind> mixer_of_row(const OperatorRow& row, const LlmConfig& model) {
  const CompressionConfig& compression = model.attention.compression;
  if (row.compress_ratio > 1) {
    if (row.compress_ratio == compression.sparse_ratio) return MixerKind::kCompressedSparse;
    if (row.compress_ratio == compression.dense_ratio) return MixerKind::kCompressed;
    return {};
  }
  if (row.kernel.find("skip_indexer") != std::string::npos) return MixerKind::kSharedSparse;
  for (const MixerKind sparse : {MixerKind::kSparse, MixerKind::kBlockSparse})
    if (model.has(sparse)) return sparse;
  return MixerKind::kAttention;
}

const LayerConfig* layer_of(const OperatorRow& row, const LlmConfig& model) {
  const std::optional<MixerKind> mixer = mixer_of_row(row, model);
  if (!mixer) return nullptr;
  const auto at = std::ranges::find(model.layers, *mixer, &LayerConfig::mixer);
  return at == model.layers.end() ? nullptr : &*at;
}

bool over_pages(const OperatorRow& row) { return row.operation.find("paged") != std::string::npos; }

TokenBatch batch_of(OperatorTableKind kind, const OperatorRow& row) {
  const bool prompt = kind == OperatorTableKind::kBlockPrefill;
  TokenBatch batch;
  batch.phase = prompt ? Phase::kPrefill : Phase::kDecode;
  batch.sequences = row.batch;
  batch.query = prompt ? row.q_len : 1;
  batch.context = prompt ? row.kv_prefix_len + row.q_len : row.kv_len;
  return batch;
}

/// Attention over entries of 16 bits: engines widen narrow ones before.
Kernel attention_part(const OperatorRow& row, const LlmConfig& model, const AttentionPart& part) {
  const AttentionConfig& a = model.attention;
  ChosenHeads heads{.groups = 1, .heads = row.heads, .latent = true};
  if (row.compress_ratio > 1) {
    heads.qk_dim = heads.v_dim = a.head_dim;
    const bool all = row.compress_ratio == a.compression.dense_ratio;
    const Compressed kind = all ? Compressed::kAll : Compressed::kChosen;
    heads.places = compressed_places(a, part, kind);
    return chosen_attention(compressed_keys(a, part, kind), heads, Precision::kBf16);
  }
  heads.qk_dim = a.kv_lora_rank + a.qk_rope_head_dim;
  heads.v_dim = a.kv_lora_rank;
  heads.places = a.indexer.top_k;
  return chosen_attention(seen_keys(part, 1, a.indexer.top_k), heads, Precision::kBf16);
}

}  // namespace

bool is_block(OperatorTableKind kind) {
  return kind == OperatorTableKind::kBlockPrefill || kind == OperatorTableKind::kBlockDecode;
}

std::string block_fault(const OperatorRow& row) {
  const LlmConfig* model = model_named(row.model);
  if (model == nullptr) return "no model is called '" + row.model + "'";
  if (row.heads == 0 || model->attention.heads % row.heads != 0)
    return fmt::format("{} heads of a rank do not divide those of '{}'", row.heads, row.model);
  if (row.operation.find("logits") != std::string::npos && !over_pages(row) &&
      row.q_len < kScoredTogether)
    return "scores of prompts of fewer tokens than a block has: engines score those over pages";
  if (layer_of(row, *model) == nullptr) return "no layer of '" + row.model + "' is like that";
  return {};
}

std::vector<Kernel> sparse_part(const OperatorRow& row) {
  const LlmConfig& model = *model_named(row.model);
  AttentionPart part;
  part.sequences = row.batch;
  part.query = row.q_len;
  part.context = row.kv_prefix_len + row.q_len;
  const IndexerConfig& indexer = model.attention.indexer;
  const std::int64_t ratio = std::max<std::int64_t>(1, row.compress_ratio);
  if (row.operation.find("attn") != std::string::npos) return {attention_part(row, model, part)};
  SeenKeys seen = seen_keys(part, ratio, indexer.top_k);
  seen.paged = over_pages(row);
  if (row.operation.find("topk") != std::string::npos) return {index_selection(seen, indexer, 1)};
  return {index_scores(seen, indexer, indexer.heads, 1, Precision::kFp8, 1)};
}

std::vector<Kernel> block_kernels(OperatorTableKind kind, const OperatorRow& row,
                                  Precision precision, const RowSoftware& software) {
  const LlmConfig& model = *model_named(row.model);
  RankWork work;
  work.batch = batch_of(kind, row);
  work.split.tp = static_cast<int>(model.attention.heads / row.heads);
  work.split.all_reduces_experts = true;
  work.formats.precision = precision;
  work.formats.kv_precision = row.kv_precision == "fp8" ? Precision::kFp8 : Precision::kBf16;
  work.formats.mx_products = software.mx_products;
  work.formats.index_precision = software.index_precision;
  work.kernels = software.kernels;
  std::vector<Kernel> kernels;
  const StepList steps = mixer_forward(model, *layer_of(row, model), work);
  for (const Step& step : steps.steps())
    if (const Kernel* kernel = step.kernel()) kernels.push_back(*kernel);
  return kernels;
}

}  // namespace orrery
