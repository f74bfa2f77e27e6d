// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/serving/router.h"

namespace orrery {
namespace {

/// Share of a prompt that must be kept for its instance to take it.
constexpr double kEnoughKept = 0.3;
/// Instances out of balance: requests of the busiest beyond those of the idlest, and over them.
constexpr std::int64_t kMostApart = 64;
constexpr double kMostRatio = 1.5;

/// The policy of SGLang's router (sgl-model-gateway, policies/cache_aware.rs, with its defaults):
/// while instances are in balance the one that has most of the prompt, if that is enough; otherwise
/// the one with the fewest tokens of prompts. Out of balance the one with the fewest requests.
/// SGLang's own router guesses what instances keep; this one knows.
class PrefixAware final : public Router {
 public:
  std::size_t choose(const Request& request, std::span<const InstanceView> instances) override {
    const auto requests = [](const InstanceView& i) { return i.waiting + i.running; };
    std::int64_t most = 0, least = INT64_MAX, longest = 0;
    std::size_t best = 0, emptiest = 0;
    for (std::size_t i = 0; i < instances.size(); ++i) {
      most = std::max(most, requests(instances[i]));
      least = std::min(least, requests(instances[i]));
      const std::int64_t kept = instances[i].kept(request);
      if (kept > longest) {
        longest = kept;
        best = i;
      }
      if (instances[i].tokens < instances[emptiest].tokens) emptiest = i;
    }
    const auto apart = static_cast<double>(most);
    if (most - least > kMostApart && apart > kMostRatio * static_cast<double>(least))
      return least_loaded(instances);
    const auto enough = kEnoughKept * static_cast<double>(request.prompt);
    return static_cast<double>(longest) > enough ? best : emptiest;
  }
};

const Routers::Register registered_prefix_aware("prefix_aware",
                                                "the instance that keeps most of the prompt, or "
                                                "else has the fewest tokens, while loads are alike",
                                                [] { return std::make_unique<PrefixAware>(); });

}  // namespace
}  // namespace orrery
