// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/request_source.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/units/hash.h"

namespace orrery {
namespace {

/// The requests of another source, each with an adapter. Who has one already, as a further turn of
/// a conversation, keeps it.
class AdaptedRequests final : public RequestSource {
 public:
  AdaptedRequests(std::unique_ptr<RequestSource> source, const AdapterDraws& draws)
      : source_(std::move(source)),
        state_(static_cast<std::uint64_t>(draws.seed) ^ stable_hash("adapters")) {
    double sum = 0;
    for (std::int64_t k = 1; k <= draws.count; ++k) {
      const bool zipf = draws.popularity == AdapterPopularity::kZipf;
      sum += zipf ? std::pow(static_cast<double>(k), -draws.exponent) : 1;
      shares_.push_back(sum);
    }
  }

  std::optional<Request> next() override { return adapted(source_->next()); }
  std::optional<Request> after(const Request& answered, Picoseconds now) override {
    return adapted(source_->after(answered, now));
  }

 private:
  std::optional<Request> adapted(std::optional<Request> request) {
    if (!request || request->adapter >= 0) return request;
    const double drawn = next_uniform(state_) * shares_.back();
    const auto place = std::upper_bound(shares_.begin(), shares_.end() - 1, drawn);
    request->adapter = static_cast<std::int32_t>(place - shares_.begin());
    return request;
  }

  std::unique_ptr<RequestSource> source_;
  std::uint64_t state_;
  std::vector<double> shares_;  ///< how often the first so many are asked for, added up
};

}  // namespace

const config::Schema<AdapterDraws>& AdapterDraws::schema() {
  using A = AdapterDraws;
  static const auto schema =
      config::Schema<A>("adapters", "LoRA adapters that requests ask for, at random")
          .shorthand("count")
          .optional("count", &A::count, "different adapters", config::between(1, 1e6))
          .optional("popularity", &A::popularity,
                    "how often each is asked for: uniform (all as often), or zipf (the k-th as "
                    "often as k to the power of -exponent)")
          .optional("exponent", &A::exponent, "exponent of zipf", config::between(0, 10))
          .optional("seed", &A::seed, "seed of the draws", config::between(0, 1e15));
  return schema;
}

std::unique_ptr<RequestSource> make_source(const RequestSourceConfig& config) {
  std::unique_ptr<RequestSource> source = config.make();
  if (!config.adapters) return source;
  return std::make_unique<AdaptedRequests>(std::move(source), *config.adapters);
}

}  // namespace orrery
