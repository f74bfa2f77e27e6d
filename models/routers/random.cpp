// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/router.h"
#include "sim/units/hash.h"

namespace orrery {
namespace {

/// Draws depend only on the number and the arrival of a request, so that runs can be repeated.
class Random final : public Router {
 public:
  std::size_t choose(const Request& request, std::span<const InstanceView> instances) override {
    std::uint64_t state = request.arrival ^ (static_cast<std::uint64_t>(request.id) << 40);
    return static_cast<std::size_t>(next_uniform(state) * static_cast<double>(instances.size()));
  }
};

const Routers::Register registered_random("random", "any instance, each with equal probability",
                                          [] { return std::make_unique<Random>(); });

}  // namespace
}  // namespace orrery
