// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "workloads/models/fields/unsupported_model.h"
#include "workloads/models/llm_config.h"

namespace orrery {

/// Builds the model that a Hugging Face `config.json` describes, with its vision tower where that
/// is modelled (vision/), else without, with a warning. A `model_type` that is not
/// known is built as a Llama where all fields of a Llama are given and nothing else that changes
/// the structure is, with a warning.
/// @param name becomes the model's name.
/// @param origin is what errors call the configuration, usually its path.
/// @throws UnsupportedModel, config::ConfigError naming the origin and the field.
LlmConfig from_huggingface(const nlohmann::json& configuration, const std::string& name,
                           const std::string& origin = "config.json");

/// Reads a `config.json`, with the `Infinity` and `NaN` that Python's writer leaves in such files.
/// The model is named after the file, or after its folder where the file is `config.json`.
LlmConfig load_huggingface(const std::filesystem::path& path);

}  // namespace orrery
