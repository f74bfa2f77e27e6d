// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/router.h"

namespace orrery {
namespace {

class LeastLoaded final : public Router {
 public:
  std::size_t choose(const Request& /*request*/, std::span<const InstanceView> instances) override {
    return least_loaded(instances);
  }
};

const Routers::Register registered_least_loaded(
    "least_loaded", "the instance with the fewest requests; one that waits counts as four",
    [] { return std::make_unique<LeastLoaded>(); });

}  // namespace
}  // namespace orrery
