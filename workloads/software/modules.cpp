// SPDX-License-Identifier: Apache-2.0
#include "workloads/software/modules.h"

#include <utility>

namespace orrery {
namespace {

constexpr std::string_view kAttention = "attention", kMamba = "Mamba", kDelta = "delta net",
                           kRwkv = "RWKV", kVision = "vision tower", kMlp = "MLP",
                           kExperts = "experts", kEmbedding = "embedding", kHead = "head and loss",
                           kOptimizer = "optimizer";

/// Beginnings of the names that the files of this folder and of training/ give.
constexpr std::pair<std::string_view, std::string_view> kNames[] = {{"vision", kVision},
                                                                    {"attention", kAttention},
                                                                    {"qkv", kAttention},
                                                                    {"query", kAttention},
                                                                    {"key", kAttention},
                                                                    {"value", kAttention},
                                                                    {"latent", kAttention},
                                                                    {"index", kAttention},
                                                                    {"rotary", kAttention},
                                                                    {"cache", kAttention},
                                                                    {"mamba", kMamba},
                                                                    {"delta", kDelta},
                                                                    {"time mix", kRwkv},
                                                                    {"wkv", kRwkv},
                                                                    {"channel mix", kRwkv},
                                                                    {"shared block", kAttention},
                                                                    {"pooler", kHead},
                                                                    {"cross", kAttention},
                                                                    {"encoder norm", kHead},
                                                                    {"residual", "residuals"},
                                                                    {"hyper", "residuals"},
                                                                    {"mlp", kMlp},
                                                                    {"gate-up", kMlp},
                                                                    {"up", kMlp},
                                                                    {"down", kMlp},
                                                                    {"activation", kMlp},
                                                                    {"expert", kExperts},
                                                                    {"shared expert", kExperts},
                                                                    {"router", kExperts},
                                                                    {"permute", kExperts},
                                                                    {"unpermute", kExperts},
                                                                    {"dispatch", kExperts},
                                                                    {"combine", kExperts},
                                                                    {"parallel block", kMlp},
                                                                    {"embedding", kEmbedding},
                                                                    {"final norm", kHead},
                                                                    {"head", kHead},
                                                                    {"loss", kHead},
                                                                    {"logits", kHead},
                                                                    {"sample", kHead},
                                                                    {"adam", kOptimizer},
                                                                    {"sgd", kOptimizer},
                                                                    {"muon", kOptimizer},
                                                                    {"newton schulz", kOptimizer},
                                                                    {"gradient ", kOptimizer},
                                                                    {"weight pruning", kOptimizer},
                                                                    {"weight cast", kOptimizer}};

}  // namespace

std::string_view module_of(std::string_view kernel) {
  for (const auto& [beginning, module] : kNames)
    if (kernel.starts_with(beginning)) return module;
  return "other";
}

}  // namespace orrery
