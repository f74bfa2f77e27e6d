// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/router.h"

namespace orrery {
namespace {

class RoundRobin final : public Router {
 public:
  std::size_t choose(const Request& /*request*/, std::span<const InstanceView> instances) override {
    return turn_++ % instances.size();
  }

 private:
  std::size_t turn_ = 0;
};

const Routers::Register registered_round_robin("round_robin",
                                               "each instance in turn, whatever its load",
                                               [] { return std::make_unique<RoundRobin>(); });

}  // namespace
}  // namespace orrery
