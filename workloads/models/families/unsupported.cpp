// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>

#include "workloads/models/families/family.h"

namespace orrery {
namespace {

/// Why a known family is not modelled. Without this list a few of them would pass for a Llama.
const std::map<std::string, std::string>& reasons() {
  static const std::string kLinear = "linear attention layers are not modelled";
  static const std::map<std::string, std::string> table = {
      {"albert", "layers that share their weights are not modelled"},
      {"bloom", "ALiBi positions are not modelled"},
      {"deberta-v2", "disentangled attention is not modelled"},
      {"gemma3n_text", "per-layer embeddings and layers that share a KV cache are not modelled"},
      {"minimax", kLinear},
      {"mpnet", "biases of relative positions in every layer are not modelled"},
      {"nemotron", "an MLP without gate under Llama's field names is not modelled"},
      {"recurrent_gemma", "recurrent layers are not modelled"},
      {"rwkv", "RWKV-4 is not modelled: its states are of channels, without heads"},
      {"umt5", "biases of positions in every layer are not modelled"},
  };
  return table;
}

}  // namespace

void refuse_unmodelled_family(const FieldReader& reader) {
  const auto found = reasons().find(reader.model_type());
  if (found != reasons().end()) reader.unsupported(found->second);
}

}  // namespace orrery
