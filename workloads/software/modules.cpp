// SPDX-License-Identifier: Apache-2.0
#include "workloads/software/modules.h"

#include <algorithm>
#include <vector>

namespace orrery {
namespace {

struct Module {
  std::string_view name;
  std::vector<std::string_view> beginnings;
};

}  // namespace

std::string_view module_of(std::string_view kernel) {
  // Beginnings of the names that files of this folder and of training/ give.
  static const std::vector<Module> kModules = {
      {"vision tower", {"vision"}},
      {"attention",
       {"attention", "qkv", "query", "key", "value", "latent", "index", "rotary", "cache",
        "shared block", "cross"}},
      {"Mamba", {"mamba"}},
      {"delta net", {"delta"}},
      {"RWKV", {"time mix", "wkv", "channel mix"}},
      {"residuals", {"residual", "hyper"}},
      {"MLP", {"mlp", "gate-up", "up", "down", "activation", "parallel block"}},
      {"experts",
       {"expert", "shared expert", "router", "permute", "unpermute", "dispatch", "combine"}},
      {"embedding", {"embedding"}},
      {"head and loss",
       {"pooler", "encoder norm", "final norm", "head", "loss", "logits", "sample"}},
      {"optimizer",
       {"adam", "sgd", "muon", "newton schulz", "gradient ", "weight pruning", "weight cast"}},
  };
  const auto begins = [kernel](std::string_view word) { return kernel.starts_with(word); };
  for (const Module& module : kModules)
    if (std::ranges::any_of(module.beginnings, begins)) return module.name;
  return "other";
}

}  // namespace orrery
