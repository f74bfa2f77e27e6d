// SPDX-License-Identifier: Apache-2.0
#include "workloads/requests/open_arrivals.h"

#include <utility>
#include <vector>

#include "sim/units/hash.h"

namespace orrery {
namespace {

constexpr std::uint64_t kUrgentSequence = 0x75726765, kPrefixSequence = 0x70726566;
constexpr std::int64_t kPieceTokens = 16;  ///< tokens of a piece of a shared prefix

/// The whole pieces of each shared prefix.
std::vector<std::shared_ptr<const PrefixHashes>> prefixes_of(const SharedPrefixes& shared) {
  std::vector<std::shared_ptr<const PrefixHashes>> all;
  for (std::int64_t group = 0; group < shared.groups; ++group) {
    PrefixHashes prefix{kPieceTokens, {}};
    std::uint64_t state = static_cast<std::uint64_t>(group + 1) << 32;
    for (std::int64_t i = 0; i < shared.tokens / kPieceTokens; ++i)
      prefix.pieces.push_back(next_random(state));
    all.push_back(prefix.pieces.empty() ? nullptr
                                        : std::make_shared<const PrefixHashes>(std::move(prefix)));
  }
  return all;
}

/// Numbers are drawn by inverting distributions or from uniform ones, so that a seed gives the same
/// requests with every standard library. Arrivals and lengths have sequences of their own: another
/// distribution of lengths leaves the arrivals as they are.
class OpenSource final : public RequestSource {
 public:
  explicit OpenSource(const OpenArrivals& config)
      : config_(config),
        lengths_(config.input, config.output, config.seed),
        state_(static_cast<std::uint64_t>(config.seed)),
        urgent_(static_cast<std::uint64_t>(config.seed) ^ kUrgentSequence),
        group_(static_cast<std::uint64_t>(config.seed) ^ kPrefixSequence) {
    if (config.shared_prefixes) prefixes_ = prefixes_of(*config.shared_prefixes);
  }

  std::optional<Request> next() override {
    if (next_ == config_.requests) return std::nullopt;
    now_s_ += config_.gap(state_) / config_.rate.base();
    const std::int64_t prompt = lengths_.prompt();
    Request request{next_++, to_picoseconds(Seconds(now_s_)), prompt, lengths_.output()};
    if (config_.urgent > 0) request.priority = next_uniform(urgent_) < config_.urgent ? 0 : 1;
    if (!prefixes_.empty()) {
      const double drawn = next_uniform(group_) * static_cast<double>(prefixes_.size());
      request.prefix = prefixes_[static_cast<std::size_t>(drawn)];
      request.prompt += config_.shared_prefixes->tokens;
    }
    return request;
  }

 private:
  const OpenArrivals& config_;
  LengthDraws lengths_;
  std::uint64_t state_, urgent_, group_;
  std::vector<std::shared_ptr<const PrefixHashes>>
      prefixes_;  ///< prefixes by group; empty: none are shared
  std::int64_t next_ = 0;
  double now_s_ = 0;
};

}  // namespace

const config::Schema<SharedPrefixes>& SharedPrefixes::schema() {
  static const auto schema =
      config::Schema<SharedPrefixes>("shared_prefixes", "prefixes that many prompts share")
          .required("groups", &SharedPrefixes::groups,
                    "number of prefixes; a prompt begins with any of them, with equal probability",
                    config::between(1, 1e6))
          .required("tokens", &SharedPrefixes::tokens,
                    "tokens of each prefix, in front of the tokens of `input`",
                    config::between(1, 1e7));
  return schema;
}

std::unique_ptr<RequestSource> OpenArrivals::make() const {
  return std::make_unique<OpenSource>(*this);
}

}  // namespace orrery
