// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/router.h"

namespace orrery {
namespace {

/// The cost of NVIDIA Dynamo's router (lib/llm/src/kv_router/scheduler.rs, overlap_score_weight 1,
/// temperature 0): tokens of the prompt that an instance would have to compute, and those of the
/// prompts that it has already. The least takes the request.
class KvAware final : public Router {
 public:
  std::size_t choose(const Request& request, std::span<const InstanceView> instances) override {
    std::size_t best = 0;
    std::int64_t least = INT64_MAX;
    for (std::size_t i = 0; i < instances.size(); ++i) {
      const std::int64_t missing = request.prompt - instances[i].kept(request);
      const std::int64_t cost = missing + instances[i].tokens;
      if (cost >= least) continue;
      least = cost;
      best = i;
    }
    return best;
  }
};

const Routers::Register registered_kv_aware(
    "kv_aware",
    "the instance with the fewest tokens to compute and to hold, what it keeps deducted",
    [] { return std::make_unique<KvAware>(); });

}  // namespace
}  // namespace orrery
