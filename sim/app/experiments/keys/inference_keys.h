// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/declared.h"
#include "sim/config/file_path.h"
#include "sim/serving/speculation.h"
#include "workloads/models/config/model_config.h"
#include "workloads/models/image_rules.h"

namespace orrery {

enum class SpeculativeMethod : std::uint8_t {
  kMtp,         ///< the model's own module of multi-token prediction
  kDraftModel,  ///< a model of its own, a small head on the model's features (EAGLE) among them
  kNgram        ///< a look into the prompt, on the host
};

/// Keys as vLLM's --speculative-config has them, and how often draft tokens are right.
struct SpeculativeConfig {
  SpeculativeMethod method = SpeculativeMethod::kMtp;
  std::int64_t num_speculative_tokens = 1;
  ModelConfig model;  ///< the draft model, of kDraftModel
  std::optional<double> acceptance_length;
  std::vector<double> acceptance_rates;
  FilePath acceptance_table;
  std::string acceptance_of;
  static const config::Schema<SpeculativeConfig>& schema();

  /// @throws config::ConfigError for a table that cannot be read, or that does not say it
  Speculation speculation() const;
  /// The draft model, as one whose steps can be priced. Nothing: none does.
  /// @param target whose tokens are drafted
  /// @throws config::KeyError below "speculative" for a model that has none
  std::optional<LlmConfig> draft(const LlmConfig& target) const;
  /// Whether it uses the embedding and the head of the model.
  bool shares_embeddings() const { return method == SpeculativeMethod::kMtp; }
};

struct ImageConfig {
  std::int64_t height = 1024, width = 1024;
  static const config::Schema<ImageConfig>& schema();
};

/// The size as it is written; nothing in it where none is.
inline ImageSize size_of(const std::optional<ImageConfig>& image) {
  return image ? ImageSize{image->height, image->width} : ImageSize{};
}

/// Help of keys that steps and served groups have.
inline constexpr const char* kKvPrecisionHelp =
    "number format of the KV cache; where none is given, that of the checkpoint, which may bring "
    "scales for fp8";
inline constexpr const char* kExpertRoutingHelp =
    "how often tokens pick each expert and where experts lie; without it every rank gets the mean "
    "number of tokens";
inline constexpr const char* kTwoBatchHelp =
    "whether layers of experts work on two halves of the batch in turn, one half's exchanges "
    "beside the kernels of the other (vLLM: dual batch overlap)";
inline constexpr const char* kImageHelp =
    "size of each image; models that resize all images alike need none";

namespace config {

template <>
struct EnumNames<SpeculativeMethod> {
  static constexpr std::pair<SpeculativeMethod, const char*> values[] = {
      {SpeculativeMethod::kMtp, "mtp"},
      {SpeculativeMethod::kDraftModel, "draft_model"},
      {SpeculativeMethod::kNgram, "ngram"}};
};

}  // namespace config

}  // namespace orrery
