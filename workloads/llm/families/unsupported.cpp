// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>

#include "workloads/llm/families/family.h"

namespace orrery {
namespace {

/// Why a known family is not modelled. Without this list a few of them would pass for a Llama.
const std::map<std::string, std::string>& reasons() {
  static const std::string kStateSpace = "state-space layers (Mamba) are not modelled";
  static const std::string kLinear = "linear attention layers are not modelled";
  static const std::map<std::string, std::string> table = {
      {"bert", "an encoder, not a decoder-only language model"},
      {"bloom", "ALiBi positions are not modelled"},
      {"falcon_h1", kStateSpace},
      {"gemma3n_text", "per-layer embeddings and layers that share a KV cache are not modelled"},
      {"granitemoehybrid", kStateSpace},
      {"jamba", kStateSpace},
      {"mamba", kStateSpace},
      {"mamba2", kStateSpace},
      {"minimax", kLinear},
      {"nemotron", "an MLP without gate under Llama's field names is not modelled"},
      {"recurrent_gemma", "recurrent layers are not modelled"},
      {"rwkv", "recurrent layers (RWKV) are not modelled"},
      {"rwkv5", "recurrent layers (RWKV) are not modelled"},
      {"umt5", "biases of positions in every layer are not modelled"},
      {"zamba2", kStateSpace},
  };
  return table;
}

}  // namespace

void refuse_unmodelled_family(const FieldReader& reader) {
  const auto found = reasons().find(reader.model_type());
  if (found != reasons().end()) reader.unsupported(found->second);
}

}  // namespace orrery
