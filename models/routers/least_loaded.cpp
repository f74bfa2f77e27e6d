// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/serving/router.h"

namespace orrery {
namespace {

/// A request that waits counts four times one that runs, as vLLM balances its data parallel ranks
/// (v1/engine/core_client.py, get_core_engine_for_request). Of equals the first.
class LeastLoaded final : public Router {
 public:
  std::size_t choose(const Request& /*request*/, std::span<const InstanceView> instances) override {
    const auto load = [](const InstanceView& i) { return 4 * i.waiting + i.running; };
    const auto least = std::min_element(
        instances.begin(), instances.end(),
        [&](const InstanceView& a, const InstanceView& b) { return load(a) < load(b); });
    return static_cast<std::size_t>(least - instances.begin());
  }
};

const Routers::Register registered_least_loaded(
    "least_loaded", "the instance with the fewest requests; one that waits counts as four",
    [] { return std::make_unique<LeastLoaded>(); });

}  // namespace
}  // namespace orrery
