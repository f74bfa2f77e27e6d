// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/steps/checkpoint.h"

#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "sim/config/diagnostics.h"
#include "sim/machine/precision_names.h"
#include "workloads/models/huggingface/checkpoint_format.h"

namespace orrery {
namespace {

/// Whether nobody wrote a key, or it came from the model's file the last time that this was loaded.
bool is_open(const config::Node& node, const std::string& key, const std::string& file) {
  const config::Origin& written = node.at_path(key)->origin();
  return written.kind == config::Origin::Kind::kDefault ||
         (written.kind == config::Origin::Kind::kFile && *written.file == file);
}

/// Whether units for matrices have products of a format; all multiply 16 bits.
bool multiplies(const AcceleratorConfig& accelerator, Precision precision) {
  return element_bytes(precision) >= 2 || find_precision(accelerator.compute.matrix, precision);
}

/// The key then says which file it comes from.
void take(config::Node& node, const std::string& key, const std::string& text,
          const std::string& file) {
  const config::Origin origin{config::Origin::Kind::kFile,
                              std::make_shared<const std::string>(file), 1, 1};
  node.set(key, config::Node::scalar(text, origin), origin);
}

}  // namespace

void warn_of_checkpoint(const ModelConfig& model, const config::Node& node,
                        config::Diagnostics& diagnostics) {
  if (model.hf.empty()) return;
  try {
    const LlmConfig llm = model.build();
    for (const std::string& warning : llm.warnings)
      diagnostics.warning(node.at_path("model")->where(), 1, llm.name + ": " + warning);
  } catch (const config::ConfigError&) {
    return;
  }
}

void ask_precision(const ModelConfig& model, const config::Node& node,
                   const config::Node& experiment, config::Diagnostics& diagnostics) {
  if (model.hf.empty() || !is_open(node, "precision", model.hf.path)) return;
  try {
    const LlmConfig llm = model.build();
    if (!llm.asks_precision.empty())
      diagnostics.warning(experiment.at_path("model")->where(), 1,
                          llm.name + ": " + llm.asks_precision);
  } catch (const config::ConfigError&) {
    return;
  }
}

void add_model_files(const ModelConfig& model, std::vector<InputFile>& files) {
  if (model.hf.empty()) return;
  files.push_back(file_read_now("model", model.hf.path));
  const std::filesystem::path beside = quantization_file(model.hf.path);
  if (!beside.empty()) files.push_back(file_read_now("quantization", beside.string()));
}

void add_routing_file(const std::optional<ExpertRoutingConfig>& routing,
                      std::vector<InputFile>& files) {
  if (routing && !routing->loads_file.empty())
    files.push_back(file_read_now("expert_loads", routing->loads_file.path));
}

void add_draft_files(const std::optional<SpeculativeConfig>& speculative,
                     std::vector<InputFile>& files) {
  if (!speculative) return;
  if (!speculative->acceptance_table.path.empty())
    files.push_back(file_read_now("acceptance", speculative->acceptance_table.path));
  add_model_files(speculative->model, files);
}

std::int64_t take_checkpoint_precisions(const ModelConfig& model,
                                        const AcceleratorConfig& accelerator, Precision& precision,
                                        CacheFormat& kv_precision, config::Node& node) {
  const std::string& file = model.hf.path;
  if (file.empty()) return 0;
  try {
    model.build();
    const std::optional<Quantization> stored = load_quantization(file);
    if (!stored) return 0;
    const bool widens = !multiplies(accelerator, stored->precision);
    if (is_open(node, "precision", file)) {
      precision = widens ? Precision::kBf16 : stored->precision;
      take(node, "precision", to_string(precision), file);
    }
    if (stored->kv_cache == Precision::kFp8 && is_open(node, "kv_precision", file)) {
      kv_precision = CacheFormat::kFp8;
      take(node, "kv_precision", "fp8", file);
    }
    constexpr double kBits = 8;
    return widens ? std::llround(element_bytes(stored->precision) * kBits) : 0;
  } catch (const config::ConfigError&) {
    return 0;
  }
}

namespace {

/// Whether the model has experts whose matrices so many ranks can share.
bool can_share(const ModelConfig& model, int ranks) {
  try {
    const LlmConfig llm = model.build();
    return llm.has_moe() && llm.moe.intermediate % ranks == 0;
  } catch (const config::ConfigError&) {
    return false;  // reported where it is built
  }
}

}  // namespace

bool has_experts(const ModelConfig& model) {
  constexpr int kOne = 1;
  return can_share(model, kOne);
}

void take_expert_ranks(const ModelConfig& model, ExpertSharing sharing, ParallelConfig& parallel,
                       config::Node& node) {
  const int ranks =
      sharing == ExpertSharing::kTensor ? parallel.tp : parallel.tp * parallel.cp * parallel.dp;
  config::Node* written = node.find("parallel");
  const config::Node* etp = written == nullptr ? nullptr : written->find("etp");
  const bool open = etp != nullptr && etp->origin().kind == config::Origin::Kind::kDefault;
  if (!open || ranks == 1 || parallel.ep > 1 || !can_share(model, ranks)) return;
  parallel.etp = ranks;
  const config::Origin origin = etp->origin();
  written->set("etp", config::Node::scalar(std::to_string(ranks), origin), origin);
}

}  // namespace orrery
