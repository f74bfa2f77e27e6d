// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/serving/request_source.h"
#include "sim/units/hash.h"
#include "sim/units/units.h"

namespace orrery {
namespace {

/// Arrivals at random with a mean rate: gaps are exponential, drawn by inverting their distribution,
/// so that a seed gives the same times with every standard library.
class PoissonSource final : public RequestSource {
 public:
  PoissonSource(Request of, Hertz rate, std::int64_t count, std::int64_t seed)
      : next_(of), gap_s_(1 / rate.base()), count_(count), state_(static_cast<std::uint64_t>(seed)) {}

  std::optional<Request> next() override {
    if (next_.id == count_) return std::nullopt;
    now_s_ -= gap_s_ * std::log(next_uniform(state_));
    Request arrived = next_;
    arrived.arrival = to_picoseconds(Seconds(now_s_));
    ++next_.id;
    return arrived;
  }

 private:
  Request next_;
  double gap_s_, now_s_ = 0;
  std::int64_t count_;
  std::uint64_t state_;
};

struct Poisson final : RequestSourceConfig {
  Poisson() { arrival = "poisson"; }

  std::unique_ptr<RequestSource> make() const override {
    return std::make_unique<PoissonSource>(Request{0, 0, input, output}, rate, requests, seed);
  }

  Hertz rate{1};
  std::int64_t requests = 1000, input = 1024, output = 128, seed = 0;

  static const config::Schema<Poisson>& schema() {
    using config::between;
    static const config::Schema<Poisson> schema =
        config::Schema<Poisson>("poisson", "arrivals at random with a mean rate")
            .optional("arrival", static_cast<std::string Poisson::*>(&RequestSourceConfig::arrival),
                      "which process of arrivals")
            .required("rate", &Poisson::rate, "requests that arrive in a second, on average: 10 Hz",
                      config::positive())
            .optional("requests", &Poisson::requests, "requests in all", between(1, 1e9))
            .optional("input", &Poisson::input, "tokens of a prompt", between(1, 1e8))
            .optional("output", &Poisson::output, "tokens of an answer", between(1, 1e8))
            .optional("seed", &Poisson::seed, "seed of the arrival times", between(0, 1e15));
    return schema;
  }
};

const config::Registered<RequestSourceConfig>::Add<Poisson> added_poisson(
    "poisson", "arrivals at random with a mean rate");

}  // namespace
}  // namespace orrery
