// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "sim/serving/router.h"

namespace orrery {
namespace {

/// Share of a prompt that must match for its instance to take it.
constexpr double kEnoughMatched = 0.3;
/// Instances out of balance: requests of the busiest beyond those of the idlest, and over them.
constexpr std::int64_t kMostApart = 64;
constexpr double kMostRatio = 1.5;

/// The policy of SGLang's router (sgl-model-gateway 0.5.18, policies/cache_aware.rs, with the
/// defaults since 0.5.2). It knows only what passes through it: its own open requests, and which
/// prompts it has sent where, whether or not an instance still keeps them.
///
/// - Out of balance: the instance with the least load.
/// - Otherwise the instance that was sent the longest part of the prompt, if that is enough.
/// - Otherwise the instance with the least load.
///
/// SGLang's load is the number of open requests. With it, first tokens come later than by round
/// robin at low loads, because a prefill delays a new request more than a decode. Here a request
/// without a token counts as four, as `least_loaded` has it.
class PrefixAware final : public Router {
 public:
  std::size_t choose(const Request& request, std::span<const InstanceView> instances) override {
    const auto open = [this](const InstanceView& i) { return open_[i.instance].requests; };
    const auto load = [this](const InstanceView& i) { return open_[i.instance].load(); };
    std::int64_t most = 0, least = INT64_MAX;
    for (const InstanceView& i : instances) {
      most = std::max(most, open(i));
      least = std::min(least, open(i));
    }
    if (most - least > kMostApart &&
        static_cast<double>(most) > kMostRatio * static_cast<double>(least))
      return least_.choose(instances, load);
    const auto [longest, tokens] = longest_match(request, instances);
    const auto enough = kEnoughMatched * static_cast<double>(request.prompt);
    return static_cast<double>(tokens) > enough ? longest : least_.choose(instances, load);
  }
  void sent(const Request& request, std::size_t instance) override {
    ++open_[instance].requests;
    ++open_[instance].without_token;
    where_[request.id] = instance;
    if (request.prefix == nullptr) return;
    for (const std::uint64_t piece : request.prefix->pieces) {
      std::vector<std::size_t>& holders = holders_[piece];
      if (std::find(holders.begin(), holders.end(), instance) == holders.end())
        holders.push_back(instance);
    }
  }
  void prefilled(const Request& request) override { --open_[where_.at(request.id)].without_token; }
  void answered(const Request& request) override {
    const auto where = where_.find(request.id);
    --open_[where->second].requests;
    where_.erase(where);
  }

 private:
  /// Requests that an instance was sent and has not answered.
  struct Open {
    std::int64_t requests = 0, without_token = 0;
    std::int64_t load() const { return requests + 3 * without_token; }
  };
  struct Match {
    std::size_t index = 0;
    std::int64_t tokens = 0;
  };

  Match longest_match(const Request& request, std::span<const InstanceView> instances) const {
    if (request.prefix == nullptr) return {};
    std::map<std::size_t, std::size_t> matched;  // leading pieces by number of the instance
    const auto& pieces = request.prefix->pieces;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto known = holders_.find(pieces[i]);
      if (known == holders_.end()) break;
      for (const std::size_t holder : known->second)
        if (std::size_t& leading = matched[holder]; leading == i) ++leading;
    }
    Match best;
    for (std::size_t i = 0; i < instances.size(); ++i) {
      const auto found = matched.find(instances[i].instance);
      if (found == matched.end()) continue;
      const std::int64_t tokens = static_cast<std::int64_t>(found->second) * request.prefix->tokens;
      if (tokens > best.tokens) best = {i, tokens};
    }
    return best;
  }

  LeastCost least_;
  std::map<std::size_t, Open> open_;                     ///< requests by number of the instance
  std::unordered_map<std::int64_t, std::size_t> where_;  ///< instances by number of the request
  /// Instances that were sent a piece of a prompt, by its hash.
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> holders_;
};

const Routers::Register registered_prefix_aware(
    "prefix_aware",
    "the instance that was sent most of the prompt before, or else has the fewest requests, while "
    "loads are alike",
    [] { return std::make_unique<PrefixAware>(); });

}  // namespace
}  // namespace orrery
