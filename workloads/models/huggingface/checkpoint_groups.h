// SPDX-License-Identifier: Apache-2.0
// The formats that a checkpoint names, each with the modules that are stored in it.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "workloads/models/huggingface/checkpoint_format.h"

namespace orrery {

/// One format and what it is of.
struct FormatGroup {
  Quantization format;
  bool all_matrices = true;            ///< holds every matrix that no other group names
  std::vector<ModulePattern> modules;  ///< else these
  std::vector<std::string> listed;     ///< and modules by their whole names, sorted
  bool names(const std::string& module) const;
};

/// Whether a quantization_config is MLX's, which has bits and a group alone: scales and offsets of
/// 16 bits, in the embedding and the head too (mlx_lm, utils.py: quantize_model).
bool packs_head_too(const nlohmann::json& config);

/// What a quantization_config says, or the `quantization` of ModelOpt's hf_quant_config.json: one
/// group where all modules are stored alike. Empty where a format is not known.
std::vector<FormatGroup> format_groups(const nlohmann::json& config);

}  // namespace orrery
