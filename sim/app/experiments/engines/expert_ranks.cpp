// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/engines/expert_ranks.h"

#include <string>

#include "sim/config/diagnostics.h"

namespace orrery {
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
