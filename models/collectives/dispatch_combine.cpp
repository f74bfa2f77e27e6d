// SPDX-License-Identifier: Apache-2.0
// Mixture of experts: every rank sends its tokens to the ranks of their experts (dispatch), and the
// results come back the same way and are added up (combine: all flows reversed). `bytes` counts one
// copy of a token per expert, own ones included.
//
//   normal       A token goes once to each system that it needs, to the rank there in the sender's
//                place (its rail), which hands it on: once to each rank that needs it. Results are
//                added up at the same places. DeepSeek-V3, arXiv 2412.19437, section 3.2.2;
//                DeepEP's normal kernels. In one system: once to each rank (TensorRT-LLM's
//                one-sided kernels).
//   low_latency  Each copy goes straight to the rank of its expert, as DeepEP's low-latency
//                kernels do: an all-to-all, uneven with `skew`.
//
// With n ranks, w systems of m = n/w ranks, k experts a token, B bytes of one copy of all tokens of
// a rank (bytes / k), and the probabilities p and q that a token needs a given rank or system:
//
//   normal       inside a system, each pair   B p w
//                between systems, each pair of a rail   B q
//   low_latency  each pair   B k / n
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "models/collectives/channels.h"
#include "models/collectives/expert_reach.h"
#include "models/collectives/schedule.h"

namespace orrery {
namespace {

/// What a member receives: the heaviest, the first, and each other.
struct Shares {
  double heaviest = 0;
  double other = 0;
};

Shares shares(double mean, double skew, double limit, double members) {
  const double heaviest = std::min(limit, mean * skew);
  return {heaviest, (mean * members - heaviest) / (members - 1)};
}

/// Flows of a dispatch; of a combine, reversed.
class TokenFlows {
 public:
  TokenFlows(const Collective& collective, FlowSink& sink)
      : routing_(*collective.routing),
        reversed_(collective.kind == TransferKind::kCombine),
        sink_(sink),
        members_(collective.group.begin(), collective.group.end()),
        copy_(collective.bytes / routing_.top_k) {
    std::sort(members_.begin(), members_.end());
    for (const int rank : members_) {
      const bool same = !parts_.empty() && collective.layout.system(parts_.back().front()) ==
                                               collective.layout.system(rank);
      if (!same) parts_.emplace_back();
      parts_.back().push_back(rank);
    }
  }

  int systems() const { return static_cast<int>(parts_.size()); }
  std::size_t largest_system() const {
    std::size_t largest = 0;
    for (const auto& part : parts_) largest = std::max(largest, part.size());
    return largest;
  }

  void low_latency() {
    const double n = count(members_);
    const Shares share = shares(1, routing_.skew, n, n);
    const Bytes even = copy_ * (routing_.top_k / n);
    sink_.exchange(members_, even * share.other);
    to_heaviest(members_, even * (share.heaviest - share.other));
  }

  void normal() {
    const double n = count(members_);
    const Shares share = shares(mean_rank_reach(), routing_.skew, 1, n);
    for (std::size_t to = 0; to < parts_.size(); ++to) hand_on(to, share);
    if (parts_.size() > 1) over_rails(share.heaviest);
  }

 private:
  static double count(const std::vector<int>& ranks) { return static_cast<double>(ranks.size()); }

  void add(int source, int destination, Bytes bytes) {
    if (source == destination || !(bytes.base() > 0)) return;
    if (reversed_) std::swap(source, destination);
    sink_.add(source, destination, bytes);
  }

  void to_heaviest(const std::vector<int>& sources, Bytes bytes) {
    if (routing_.skew <= 1) return;
    for (const int source : sources) add(source, members_.front(), bytes);
  }

  /// Places of experts on all ranks; those without an expert of the model hold replicas.
  double slots() const {
    const int n = static_cast<int>(members_.size());
    const int each = (routing_.experts + n - 1) / n;
    return std::max(n, n * each);
  }

  SlotRange range(std::size_t first, std::size_t members) const {
    const double each = slots() / count(members_);
    const auto start = static_cast<double>(first) * each;
    return {start, start + static_cast<double>(members) * each, slots()};
  }

  /// Equal for all where groups and ranks divide each other; the mean keeps the sum right anyway.
  double mean_rank_reach() const {
    if (!routing_.limited()) return reach(routing_, range(0, 1));
    double sum = 0;
    for (std::size_t i = 0; i < members_.size(); ++i) sum += reach(routing_, range(i, 1));
    return sum / count(members_);
  }

  bool equal_parts() const {
    return std::all_of(parts_.begin(), parts_.end(),
                       [&](const auto& part) { return part.size() == parts_.front().size(); });
  }

  /// The rank of a system that a rank of another sends to.
  static int peer(const std::vector<int>& part, std::size_t place) {
    return part[place % part.size()];
  }

  /// Ranks whose tokens a member of a system sends on, itself included, by its place.
  std::vector<double> senders(std::size_t to) const {
    const std::vector<int>& part = parts_[to];
    if (equal_parts()) return std::vector<double>(part.size(), count_of_parts());
    std::vector<double> result(part.size(), 1);
    for (std::size_t from = 0; from < parts_.size(); ++from) {
      if (from == to) continue;
      for (std::size_t i = 0; i < parts_[from].size(); ++i) result[i % part.size()] += 1;
    }
    return result;
  }

  double count_of_parts() const { return static_cast<double>(parts_.size()); }

  /// Inside a system: from the rank that has a token to each that needs it.
  void hand_on(std::size_t to, const Shares& share) {
    const std::vector<int>& part = parts_[to];
    const std::vector<double> weights = senders(to);
    const double least = *std::min_element(weights.begin(), weights.end());
    sink_.exchange(part, copy_ * (share.other * least));
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (to == 0 && routing_.skew > 1)
        add(part[i], members_.front(), copy_ * ((share.heaviest - share.other) * weights[i]));
      if (weights[i] == least) continue;
      for (const int rank : part) add(part[i], rank, copy_ * (share.other * (weights[i] - least)));
    }
  }

  /// Between systems. The system of the heaviest rank is needed at least as often as that rank.
  void over_rails(double heaviest) {
    std::vector<double> needed(parts_.size());
    std::size_t first = 0;
    for (std::size_t to = 0; to < parts_.size(); ++to) {
      needed[to] = reach(routing_, range(first, parts_[to].size()));
      first += parts_[to].size();
    }
    needed[0] = std::max(needed[0], heaviest);
    const double least = equal_parts() ? *std::min_element(needed.begin(), needed.end()) : 0;
    if (least > 0) exchange_rails(copy_ * least);
    for (std::size_t to = 0; to < parts_.size(); ++to) {
      if (needed[to] > least) send_to(to, copy_ * (needed[to] - least));
    }
  }

  void exchange_rails(Bytes bytes) {
    std::vector<int> rail(parts_.size());
    for (std::size_t place = 0; place < parts_.front().size(); ++place) {
      for (std::size_t i = 0; i < parts_.size(); ++i) rail[i] = parts_[i][place];
      sink_.exchange(rail, bytes);
    }
  }

  void send_to(std::size_t to, Bytes bytes) {
    for (std::size_t from = 0; from < parts_.size(); ++from) {
      if (from == to) continue;
      for (std::size_t i = 0; i < parts_[from].size(); ++i)
        add(parts_[from][i], peer(parts_[to], i), bytes);
    }
  }

  const ExpertRouting& routing_;
  bool reversed_;
  FlowSink& sink_;
  std::vector<int> members_;             // in rank order; the experts lie on them in order
  std::vector<std::vector<int>> parts_;  // members by system
  Bytes copy_;                           // of all tokens of a rank
};

class DispatchCombineAlgorithm final : public CollectiveAlgorithm {
 public:
  bool serves(const Collective& collective) const override {
    return collective.is_any({TransferKind::kDispatch, TransferKind::kCombine}) &&
           collective.routing != nullptr;
  }

  StepCount run(const Collective& collective, FlowSink& sink) const override {
    TokenFlows flows(collective, sink);
    const bool spans = flows.systems() > 1;
    if (straight(collective)) {
      flows.low_latency();
      return spans ? StepCount{.scale_out = 1} : StepCount{.scale_up = 1};
    }
    flows.normal();
    if (!spans) return {.scale_up = 1};
    return {.scale_up = flows.largest_system() > 1 ? 1 : 0, .scale_out = 1};
  }

  /// The schedule of an all-to-all among the same ranks: which part goes where is up to the router.
  Schedule schedule(const Collective& collective) const override {
    const int n = collective.size();
    const Channels systems(collective);
    std::vector<int> system_of(static_cast<std::size_t>(n)), place(system_of);
    for (int s = 0; s < systems.systems(); ++s) {
      for (int i = 0; i < systems.part_size(s); ++i) {
        const auto member = static_cast<std::size_t>(systems.part(s)[static_cast<std::size_t>(i)]);
        system_of[member] = s;
        place[member] = i;
      }
    }
    /// The member of the system of `near` in the place of `far`.
    const auto peer = [&](int near, int far) {
      const std::span<const int> part = systems.part(system_of[static_cast<std::size_t>(near)]);
      return part[static_cast<std::size_t>(place[static_cast<std::size_t>(far)]) % part.size()];
    };
    const bool dispatch = collective.kind == TransferKind::kDispatch;
    Schedule schedule{.chunks = n * n};
    for (int from = 0; from < n; ++from) {
      for (int to = 0; to < n; ++to) {
        if (from == to) continue;
        const bool relayed = !straight(collective) && collective.crosses(from, to);
        const int relay = !relayed ? to : dispatch ? peer(to, from) : peer(from, to);
        const ChunkRange part{from * n + to, 1};
        if (relay != from) schedule.copy(0, from, relay, part);
        if (relay != to) schedule.copy(relay == from ? 0 : 1, relay, to, part);
      }
    }
    return schedule;
  }

 private:
  static bool straight(const Collective& collective) {
    return collective.routing->mode == ExpertRouting::Mode::kLowLatency;
  }
};

const AlgorithmRegistry::Register registered_dispatch_combine(
    "dispatch_combine", "tokens to their experts and back: over rails, or each copy straight",
    std::make_shared<DispatchCombineAlgorithm>());

}  // namespace
}  // namespace orrery
