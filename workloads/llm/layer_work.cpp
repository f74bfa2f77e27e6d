// SPDX-License-Identifier: Apache-2.0
#include "workloads/llm/layer_work.h"

#include <algorithm>
#include <string>

#include "sim/config/diagnostics.h"

namespace orrery {
namespace {

void require(bool holds, const std::string& message) {
  if (!holds) throw config::ConfigError(message);
}

void require_split(std::int64_t size, int ways, const std::string& what) {
  require(size % ways == 0, "parallel.tp: " + std::to_string(size) + " " + what +
                                " do not divide by tp = " + std::to_string(ways));
}

}  // namespace

const char* to_string(Phase phase) {
  switch (phase) {
    case Phase::kTraining:
      return "training";
    case Phase::kPrefill:
      return "prefill";
    case Phase::kDecode:
      return "decode";
  }
  return "?";
}

const char* to_string(Recompute recompute) {
  switch (recompute) {
    case Recompute::kNone:
      return "none";
    case Recompute::kSelective:
      return "selective";
    case Recompute::kFull:
      return "full";
  }
  return "?";
}

double causal_pairs(std::int64_t query, std::int64_t context, std::int64_t window) {
  const std::int64_t limit = window > 0 ? std::min(window, context) : context;
  // Keys seen by new token i are context - query + i + 1, a ramp that `limit` cuts off.
  const std::int64_t first = context - query + 1;
  const std::int64_t ramp = std::clamp<std::int64_t>(limit - first, 0, query);
  const auto rising =
      static_cast<double>(ramp) * (static_cast<double>(first) + static_cast<double>(ramp - 1) / 2);
  return rising + static_cast<double>(query - ramp) * static_cast<double>(limit);
}

std::int64_t local_kv_heads(const AttentionConfig& attention, int tp) {
  return std::max<std::int64_t>(1, attention.kv_heads / tp);
}

void require_divisible(const LlmConfig& model, int tp, int ep) {
  require_split(model.attention.heads, tp, "attention heads");
  if (model.attention.kind == AttentionKind::kGrouped) {
    const std::int64_t kv_heads = model.attention.kv_heads;
    require(kv_heads % tp == 0 || tp % kv_heads == 0, "parallel.tp: " + std::to_string(kv_heads) +
                                                          " KV heads cannot be split or copied " +
                                                          std::to_string(tp) + " ways");
  }
  const bool dense = std::any_of(model.layers.begin(), model.layers.end(),
                                 [](const LayerConfig& layer) { return !layer.moe; });
  if (dense) require_split(model.mlp.intermediate, tp, "columns of the MLP");
  require(ep == 1 || model.has_moe(), "parallel.ep: model '" + model.name + "' has no experts");
}

}  // namespace orrery
