// SPDX-License-Identifier: Apache-2.0

#include "sim/serving/request_source.h"
#include "workloads/requests/lengths.h"

namespace orrery {
namespace {

struct ClosedLoop final : RequestSourceConfig {
  ClosedLoop() { arrival = "closed_loop"; }

  std::unique_ptr<RequestSource> make() const override;
  std::int64_t count() const override { return requests; }

  std::int64_t concurrency = 1, requests = 1000, seed = 0;
  Lengths input = Lengths::of(1024), output = Lengths::of(128);

  static const config::Schema<ClosedLoop>& schema() {
    using config::between;
    using C = ClosedLoop;
    static const config::Schema<C> schema =
        source_schema<C>("closed_loop",
                         "clients that each wait for a response before they send the next request")
            .required("concurrency", &C::concurrency,
                      "clients, each with a request in flight; all begin at time 0",
                      between(1, 1e7))
            .optional("requests", &C::requests, "requests in all", between(1, 1e9))
            .optional("input", &C::input, "tokens of a prompt")
            .optional("output", &C::output, "output tokens of a request")
            .optional("seed", &C::seed, "seed of the lengths", between(0, 1e15));
    return schema;
  }
};

class ClosedLoopSource final : public RequestSource {
 public:
  explicit ClosedLoopSource(const ClosedLoop& config)
      : config_(config), lengths_(config.input, config.output, config.seed) {}

  std::optional<Request> next() override {
    return next_ < config_.concurrency ? another(0) : std::nullopt;
  }
  std::optional<Request> after(const Request&, Picoseconds now) override { return another(now); }

 private:
  std::optional<Request> another(Picoseconds now) {
    if (next_ == config_.requests) return std::nullopt;
    const std::int64_t prompt = lengths_.prompt();
    return Request{next_++, now, prompt, lengths_.output()};
  }

  const ClosedLoop& config_;
  LengthDraws lengths_;
  std::int64_t next_ = 0;
};

std::unique_ptr<RequestSource> ClosedLoop::make() const {
  return std::make_unique<ClosedLoopSource>(*this);
}

const config::Registered<RequestSourceConfig>::Add<ClosedLoop> added_closed_loop(
    "closed_loop", "clients that each wait for a response before they send the next request",
    "concurrency");

}  // namespace
}  // namespace orrery
