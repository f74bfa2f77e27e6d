// SPDX-License-Identifier: Apache-2.0
#include "workloads/requests/open_arrivals.h"

#include "sim/units/hash.h"

namespace orrery {
namespace {

constexpr std::uint64_t kUrgentSequence = 0x75726765;

/// Numbers are drawn by inverting distributions or from uniform ones, so that a seed gives the same
/// requests with every standard library. Arrivals and lengths have sequences of their own: another
/// distribution of lengths leaves the arrivals as they are.
class OpenSource final : public RequestSource {
 public:
  explicit OpenSource(const OpenArrivals& config)
      : config_(config),
        lengths_(config.input, config.output, config.seed),
        state_(static_cast<std::uint64_t>(config.seed)),
        urgent_(static_cast<std::uint64_t>(config.seed) ^ kUrgentSequence) {}

  std::optional<Request> next() override {
    if (next_ == config_.requests) return std::nullopt;
    now_s_ += config_.gap(state_) / config_.rate.base();
    const std::int64_t prompt = lengths_.prompt();
    Request request{next_++, to_picoseconds(Seconds(now_s_)), prompt, lengths_.output()};
    if (config_.urgent > 0) request.priority = next_uniform(urgent_) < config_.urgent ? 0 : 1;
    return request;
  }

 private:
  const OpenArrivals& config_;
  LengthDraws lengths_;
  std::uint64_t state_, urgent_;
  std::int64_t next_ = 0;
  double now_s_ = 0;
};

}  // namespace

std::unique_ptr<RequestSource> OpenArrivals::make() const {
  return std::make_unique<OpenSource>(*this);
}

}  // namespace orrery
