// SPDX-License-Identifier: Apache-2.0
// How a transfer is carried out: the algorithm, and the protocol where the fabric has them.
#include <algorithm>
#include <cmath>
#include <utility>

#include "models/collectives/plans/user_algorithm.h"
#include "models/transfers/flow_model.h"
#include "models/transfers/load_sink.h"

namespace orrery {

namespace {

bool is_rooted(TransferKind kind) {
  return kind == TransferKind::kBroadcast || kind == TransferKind::kReduce;
}

}  // namespace

bool FlowModel::serves(const CollectiveAlgorithm& algorithm, const Transfer& transfer,
                       const GroupForms& groups) const {
  return std::all_of(groups.forms().begin(), groups.forms().end(), [&](const auto& form) {
    const std::vector<int>& group = transfer.groups[form.first];
    return group.size() == 1 || algorithm.serves(collective(transfer, group));
  });
}

bool FlowModel::has_named(const Transfer& transfer) const {
  const GroupForms groups = forms_of(transfer);
  return std::any_of(named_.begin(), named_.end(), [&](const std::string& name) {
    return serves(*find_algorithm(name), transfer, groups);
  });
}

bool FlowModel::tries_first(const std::string& name, const CollectiveAlgorithm& algorithm,
                            const Transfer& transfer) const {
  if (algorithm.automatic()) return true;
  // Without a known library the best is taken of what goes from or to one rank, trees among it.
  if (!protocols_ && is_rooted(transfer.kind)) return true;
  if (!library_chooses_ || !library_adds(*protocols_, name)) return false;
  // One rank of each system: the library has it for no other group.
  return std::all_of(transfer.groups.begin(), transfer.groups.end(), [&](const auto& group) {
    std::vector<int> systems(group.size());
    std::transform(group.begin(), group.end(), systems.begin(),
                   [&](int rank) { return layout_.system(rank); });
    std::sort(systems.begin(), systems.end());
    return std::adjacent_find(systems.begin(), systems.end()) == systems.end();
  });
}

/// Prices of a large machine have a load for millions of links: what is not taken is priced without
/// most of them.
std::optional<PricedTransfer> FlowModel::best_of_sample(const Transfer& transfer,
                                                        const std::string& algorithm,
                                                        std::optional<Protocol> protocol) const {
  const std::vector<std::size_t> sample = forms_of(transfer).sample(transfer, layout_);
  if (sample.empty() || sample.size() == transfer.groups.size())
    return best(transfer, algorithm, protocol);
  Transfer few = transfer;
  few.groups.clear();
  for (const std::size_t group : sample) few.groups.push_back(transfer.groups[group]);
  const auto taken = best(few, algorithm, protocol);
  if (!taken) return {};
  return best(transfer, taken->algorithm, parse_protocol(taken->protocol));
}

std::optional<PricedTransfer> FlowModel::by_choice(const Transfer& transfer) const {
  std::vector<std::string> algorithms = named_;
  algorithms.emplace_back(kAuto);
  for (const std::string& algorithm : algorithms) {
    for (const auto& protocol : {forced_protocol_, std::optional<Protocol>()}) {
      if (auto priced = best_of_sample(transfer, algorithm, protocol)) return priced;
    }
  }
  return {};
}

/// A library that misjudges its algorithms would choose a faster one when links are gone. It keeps
/// what it chose while they were whole, as for links that go down later; where that stands still,
/// it chooses again.
std::optional<PricedTransfer> FlowModel::as_on_whole_links(const Transfer& transfer) const {
  if (!whole_) return {};
  const auto taken = whole_->by_choice(transfer);
  if (!taken) return {};
  auto priced = best_of_sample(transfer, taken->algorithm, parse_protocol(taken->protocol));
  if (priced && !std::isfinite(priced->isolated_time.base())) priced.reset();
  return priced;
}

/// An all-reduce in which the others add zeros broadcasts the data of the root (JAX,
/// multihost_utils.broadcast_one_to_all); one whose result the others drop is a reduction. Known
/// libraries (protocols) are not taken to do so.
std::optional<PricedTransfer> FlowModel::by_all_reduce(const Transfer& transfer) const {
  if (protocols_ || !named_.empty() || !is_rooted(transfer.kind)) return {};
  auto priced = by_choice(as_all_reduce(transfer));
  if (priced) priced->as_all_reduce = true;
  return priced;
}

std::optional<PricedTransfer> FlowModel::best(const Transfer& transfer,
                                              const std::string& algorithm,
                                              std::optional<Protocol> protocol) const {
  std::optional<Candidate> best;
  const GroupForms groups = forms_of(transfer);
  LoadSink sink(*fabric_, capacities_.size(), layout_.ranks());
  if (algorithm != kAuto) {
    try_algorithm(transfer, groups, algorithm, protocol, sink, best);
  } else {
    for (const bool first : {true, false}) {
      if (best) break;
      for (const auto& [name, item] : AlgorithmRegistry::items()) {
        if (tries_first(name, *item.entry, transfer) == first)
          try_algorithm(transfer, groups, name, protocol, sink, best);
      }
    }
  }
  if (!best) return {};
  return std::move(best->priced);
}

/// What the library knows goes before what it does not; without a library, the fastest.
bool FlowModel::Candidate::beats(const std::optional<Candidate>& best) const {
  const auto rank = [](const Candidate& c) {
    return std::pair(!c.expected, c.expected.value_or(c.priced.isolated_time));
  };
  return !best || rank(*this) < rank(*best);
}

/// Leaves in `best` the better of it and of what this algorithm makes of the transfer. Of a large
/// machine each price has a load for millions of links: no more are kept than that one.
void FlowModel::try_algorithm(const Transfer& transfer, const GroupForms& groups,
                              const std::string& name, std::optional<Protocol> protocol,
                              LoadSink& sink, std::optional<Candidate>& best) const {
  const auto algorithm = find_algorithm(name);
  if (!serves(*algorithm, transfer, groups)) return;
  PricedTransfer raw = price_with(transfer, groups, name, *algorithm, sink);
  const bool alone = std::all_of(transfer.groups.begin(), transfer.groups.end(),
                                 [](const auto& group) { return group.size() == 1; });
  const bool by_kernels = transfer.routing && expert_exchange_;  // which have no protocols
  if (!protocols_ || alone || by_kernels) {
    if (protocol && *protocol != Protocol::kSimple) return;
    Candidate candidate{std::move(raw), {}};
    if (candidate.beats(best)) best = std::move(candidate);
    return;
  }
  const Traffic carried = traffic(transfer, raw);
  for (const Protocol p : protocols_of(*protocols_, carried)) {
    if (protocol && *protocol != p) continue;
    // A library chooses by its own constants only on the fabric that it was tuned for.
    const std::optional<Seconds> expected =
        library_chooses_ ? nominal_time(*protocols_, p, name, carried) : std::nullopt;
    if (expected && !Candidate{{}, expected}.beats(best)) continue;
    Candidate candidate{carried_by(p, carried, raw), expected};
    if (candidate.beats(best)) best = std::move(candidate);
  }
}

}  // namespace orrery
