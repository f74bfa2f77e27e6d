// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <unordered_map>

#include "sim/serving/router.h"

namespace orrery {
namespace {

/// The requests that a router has sent to one instance and that are not answered yet.
class Account {
 public:
  /// Prompt tokens that their prefills have yet to compute.
  std::int64_t prefill() const { return prefill_; }
  /// Tokens of their prompts in the KV cache together with one more request's: a prefix that
  /// several share counts once.
  std::int64_t held_with(const Request& request) const {
    std::int64_t more = request.prompt;
    for_pieces(request, [&](std::uint64_t piece) {
      if (pieces_.contains(piece)) more -= request.prefix->tokens;
    });
    return held_ + more;
  }
  void send(const Request& request, std::int64_t to_compute) {
    held_ = held_with(request);
    for_pieces(request, [&](std::uint64_t piece) { ++pieces_[piece]; });
    prefill_ += to_compute;
  }
  void compute(std::int64_t tokens) { prefill_ -= tokens; }
  void answer(const Request& request) {
    held_ -= request.prompt;
    for_pieces(request, [&](std::uint64_t piece) {
      const auto known = pieces_.find(piece);
      if (--known->second > 0) {
        held_ += request.prefix->tokens;
      } else {
        pieces_.erase(known);
      }
    });
  }

 private:
  /// Calls `visit` with each piece that lies in the prompt as a whole.
  template <class Visit>
  static void for_pieces(const Request& request, const Visit& visit) {
    if (request.prefix == nullptr) return;
    const auto whole = static_cast<std::size_t>(request.prompt / request.prefix->tokens);
    for (std::size_t i = 0; i < std::min(whole, request.prefix->pieces.size()); ++i)
      visit(request.prefix->pieces[i]);
  }

  std::int64_t prefill_ = 0, held_ = 0;
  std::unordered_map<std::uint64_t, std::int64_t> pieces_;  ///< requests by the piece they hold
};

/// The cost of NVIDIA Dynamo's router (lib/llm/src/kv_router/scheduler.rs, overlap_score_weight 1,
/// temperature 0), in tokens: prompt tokens that the instance would have to compute, those of the
/// requests before it included, plus prompt tokens that its KV cache would hold for requests under
/// way. The least takes the request. Instances publish what they keep at once; the router itself
/// counts requests, from when it sends them (sequence.rs).
class KvAware final : public Router {
 public:
  std::size_t choose(const Request& request, std::span<const InstanceView> instances) override {
    const auto missing = [&](const InstanceView& i) { return request.prompt - i.kept(request); };
    const std::size_t best = least_.choose(instances, [&](const InstanceView& i) {
      const Account& account = accounts_[i.instance];
      return missing(i) + account.prefill() + account.held_with(request);
    });
    missing_ = missing(instances[best]);
    return best;
  }
  void sent(const Request& request, std::size_t instance) override {
    under_way_[request.id] = {instance, missing_};
    accounts_[instance].send(request, missing_);
  }
  void prefilled(const Request& request) override {
    UnderWay& one = under_way_.at(request.id);
    accounts_[one.instance].compute(one.to_compute);
    one.to_compute = 0;
  }
  void answered(const Request& request) override {
    const auto one = under_way_.find(request.id);
    Account& account = accounts_[one->second.instance];
    account.compute(one->second.to_compute);
    account.answer(request);
    under_way_.erase(one);
  }

 private:
  struct UnderWay {
    std::size_t instance = 0;
    std::int64_t to_compute = 0;  ///< prompt tokens
  };

  std::map<std::size_t, Account> accounts_;  ///< accounts by number of the instance
  std::unordered_map<std::int64_t, UnderWay> under_way_;
  LeastCost least_;
  std::int64_t missing_ = 0;  ///< prompt tokens that the last choice has to compute
};

const Routers::Register registered_kv_aware(
    "kv_aware",
    "the instance with the fewest prompt tokens to compute and to hold, shared prefixes counted "
    "once",
    [] { return std::make_unique<KvAware>(); });

}  // namespace
}  // namespace orrery
