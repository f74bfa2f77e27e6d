// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/router.h"

namespace orrery {
namespace {

/// 4 * waiting + running, as vLLM balances its data parallel ranks from 0.10.1 to 0.26
/// (v1/engine/core_client.py, get_core_engine_for_request).
class LeastLoaded final : public Router {
 public:
  std::size_t choose(const Request& /*request*/, std::span<const InstanceView> instances) override {
    return least_.choose(instances,
                         [](const InstanceView& i) { return 4 * i.waiting + i.running; });
  }

 private:
  LeastCost least_;
};

const Routers::Register registered_least_loaded(
    "least_loaded", "the instance with the fewest requests; a waiting one counts as four",
    [] { return std::make_unique<LeastLoaded>(); });

}  // namespace
}  // namespace orrery
