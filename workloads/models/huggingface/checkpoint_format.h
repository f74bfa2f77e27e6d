// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <regex>
#include <string>

#include "sim/graph/kernel.h"
#include "workloads/models/llm_config.h"

namespace orrery {

/// How a published checkpoint stores the matrices that it quantises.
struct Quantization {
  std::string name;  ///< "fp8_block", "nvfp4", "4-bit weights in groups of 32"
  Precision precision = Precision::kBf16;  ///< precision of the products of these weights
  std::int64_t weight_bits = 0;            ///< bits of a stored weight, widened; 0: precision's own
  double scale_bits = 0;                   ///< bits of scales and zero points for each weight
  StoredFormat stored = StoredFormat::kPrecision;    ///< what layers that have it say
  std::optional<Precision> kv_cache = std::nullopt;  ///< format that it brings scales for
};

/// What the `quantization_config` of a Hugging Face configuration says: fp8 (by blocks or by
/// tensors), compressed-tensors and ModelOpt groups (fp8, nvfp4, mxfp4, int8, int4) by classes or
/// by modules, ModelOpt's algorithms, AWQ, GPTQ and mxfp4. Marks in `model` how each part of a
/// layer is stored, and the head, which stays in 16 bits unless its module is named or `lm_head`
/// is true. A format that is not known is none, with a warning in `model`.
/// @param configuration the whole file: a wrapper may hold it, or its language model
std::optional<Quantization> read_quantization(const nlohmann::json& configuration,
                                              LlmConfig& model);

/// Whether a configuration, or the language model in it, has a `quantization_config`.
bool has_quantization(const nlohmann::json& configuration);
/// "Qwen3-235B-A22B-NVFP4": whether the name of a checkpoint says that its matrices are quantised.
bool is_named_quantised(const std::string& name);

/// The file in which ModelOpt says how the checkpoint beside it is stored, where the configuration
/// does not say so itself: `hf_quant_config.json`, beside a `config.json` or a file whose name says
/// that it is quantised. Empty: there is none.
std::filesystem::path quantization_file(const std::filesystem::path& configuration);

/// The formats of a `config.json`. @throws as load_huggingface()
std::optional<Quantization> load_quantization(const std::filesystem::path& path);

/// An entry of a list of modules: a regular expression after "re:", a glob with '*', or whole words
/// between dots.
class ModulePattern {
 public:
  /// A regular expression that is none, or longer than 200 characters, names nothing.
  explicit ModulePattern(std::string text);
  /// Whether it names a module, "model.layers.3.mlp.down_proj", or something above it.
  bool names(const std::string& module) const;

 private:
  enum class Kind { kWords, kGlob, kPart, kRegex };  // kPart: a word that may stand anywhere

  std::string text_;
  Kind kind_ = Kind::kWords;
  std::regex regex_;
  bool anywhere_ = false;  ///< the expression may begin after any text
};

}  // namespace orrery
