// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/core/known_replay.h"

#include <algorithm>
#include <boost/range/iterator_range.hpp>
#include <optional>

#include "sim/graph/executions.h"
#include "sim/graph/operator_graph_boost.h"

namespace orrery {
namespace {

/// Events of a replay: seven million take about a second. A count, so that the answer is the same
/// everywhere.
constexpr std::uint64_t kMostEvents = 5'000'000;

bool same_operator(const Operator& a, const Operator& b) {
  return a.kind == b.kind && a.category == b.category && a.stream == b.stream && a.work == b.work;
}

/// Names aside, which no replay depends on.
bool same_block(const OperatorGraph& a, const OperatorGraph& b) {
  if (a.size() != b.size()) return false;
  const auto& x = a.graph();
  const auto& y = b.graph();
  for (const auto vertex : boost::make_iterator_range(vertices(x))) {
    if (!same_operator(x[vertex], y[vertex])) return false;
    if (boost::make_iterator_range(adjacent_vertices(vertex, x)) !=
        boost::make_iterator_range(adjacent_vertices(vertex, y)))
      return false;
  }
  return true;
}

bool same_role(const Role& a, const Role& b) { return a.calls == b.calls && a.ranks == b.ranks; }

bool same_transfer(const Transfer& a, const Transfer& b) {
  return a.kind == b.kind && a.participants == b.participants && a.bytes == b.bytes &&
         a.purpose == b.purpose;
}

bool same_program(const Program& a, const Program& b) {
  return a.ranks == b.ranks && a.streams.size() == b.streams.size() &&
         std::ranges::equal(a.roles, b.roles, same_role) &&
         std::ranges::equal(a.transfers, b.transfers, same_transfer) &&
         std::ranges::equal(a.blocks, b.blocks, same_block);
}

bool same_loads(const LinkLoads& a, const LinkLoads& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](LinkLoad x, LinkLoad y) {
    return x.link == y.link && x.bytes == y.bytes && x.payload == y.payload;
  });
}

bool same_transfer_cost(const TransferCost& a, const TransferCost& b) {
  return a.latency == b.latency && a.rate_limit == b.rate_limit && a.device == b.device &&
         a.image == b.image && same_loads(a.loads, b.loads);
}

bool same_kernel_cost(const KernelCost& a, const KernelCost& b) {
  return a.duration == b.duration && a.launch == b.launch && a.issue == b.issue &&
         a.host_waits == b.host_waits;
}

bool same_event(const LinkEvent& a, const LinkEvent& b) {
  return a.time == b.time && a.link == b.link && a.capacity == b.capacity &&
         std::ranges::equal(a.reroutes, b.reroutes, [](const auto& x, const auto& y) {
           return x.transfer == y.transfer && x.image == y.image && same_loads(x.loads, y.loads);
         });
}

/// Links that transfers put something on at any time.
std::vector<bool> loaded_links(const Costs& costs) {
  std::vector<bool> loaded(costs.links.size());
  const auto add = [&loaded](const LinkLoads& loads) {
    for (const LinkLoad load : loads) loaded.at(load.link) = true;
  };
  for (const TransferCost& transfer : costs.transfers) add(transfer.loads);
  for (const LinkEvent& event : costs.link_events)
    for (const LinkEvent::Reroute& reroute : event.reroutes) add(reroute.loads);
  return loaded;
}

/// The node of each rank, which has a row of its own in a result.
std::vector<std::string> nodes_of(const Topology& topology) {
  std::vector<std::string> nodes;
  for (int rank = 0; rank < topology.ranks(); ++rank) {
    const std::string& name = topology.rank_name(rank);
    nodes.emplace_back(node_of(name));
  }
  return nodes;
}

}  // namespace

/// Asks the slowdowns of the experiment and remembers what they say.
class KnownReplay::Recorder final : public SlowdownModel {
 public:
  Recorder(SlowdownModel& model, std::vector<Slowdown>& told) : model_(model), told_(told) {}
  double slowdown(KernelId kernel, const DeviceLoad& taken) override {
    const double factor = model_.slowdown(kernel, taken);
    told_.push_back({kernel, taken, factor});
    return factor;
  }

 private:
  SlowdownModel& model_;
  std::vector<Slowdown>& told_;
};

ReplayOutcome KnownReplay::replay(const ReplayInputs& inputs, const ReplayFunction& replayer) {
  program_ = inputs.program;
  costs_ = inputs.costs;
  loaded_ = loaded_links(costs_);
  nodes_ = nodes_of(inputs.topology);
  power_ = inputs.power;
  ranks_ = inputs.ranks;
  has_slowdowns_ = inputs.slowdowns != nullptr;
  begun_ = true;
  std::optional<Recorder> recorder;
  if (has_slowdowns_) recorder.emplace(*inputs.slowdowns, slowdowns_);
  outcome_ = replayer(recorder ? &*recorder : nullptr);
  ended_ = true;
  return outcome_;
}

bool KnownReplay::same_classes(const ReplayInputs& inputs) const {
  if (nodes_ != nodes_of(inputs.topology)) return false;
  const auto role = static_cast<std::size_t>(result().last_role);
  if (role >= inputs.program.roles.size()) return false;
  const ExecutionCounts before = count_executions(program_, program_.roles[role]);
  const ExecutionCounts after = count_executions(inputs.program, inputs.program.roles[role]);
  if (before.kernels != after.kernels || before.transfers != after.transfers) return false;
  bool same = true;
  each_run(before.kernels, [&](std::size_t id, std::uint64_t) {
    same = same && same_kernel_cost(costs_.kernels[id], inputs.costs.kernels[id]);
  });
  return same;
}

bool KnownReplay::same(const ReplayInputs& inputs) const {
  const Costs& costs = inputs.costs;
  if (power_ != inputs.power || ranks_ != inputs.ranks ||
      has_slowdowns_ != (inputs.slowdowns != nullptr) || costs_.enqueue != costs.enqueue ||
      costs_.links.size() != costs.links.size() || !same_program(program_, inputs.program) ||
      !std::ranges::equal(costs_.kernels, costs.kernels, same_kernel_cost) ||
      !std::ranges::equal(costs_.transfers, costs.transfers, same_transfer_cost) ||
      !std::ranges::equal(costs_.link_events, costs.link_events, same_event))
    return false;
  for (std::size_t link = 0; link < costs.links.size(); ++link)
    if (loaded_[link] && costs_.links[link] != costs.links[link]) return false;
  return std::ranges::all_of(slowdowns_, [&inputs](const Slowdown& told) {
    return inputs.slowdowns->slowdown(told.kernel, told.taken) == told.factor;
  });
}

ReplayOutcome TriedReplay::replay(const ReplayInputs& inputs, const ReplayFunction& replayer) {
  if (!known_.begun()) throw LeftOut::kOtherPrices;
  if (known_.ended()) {
    if (!known_.same_classes(inputs)) throw LeftOut::kOtherPrices;
    if (known_.same(inputs)) return known_.outcome();
    if (known_.result().events > kMostEvents) throw LeftOut::kTooLong;
  }
  return replayer(inputs.slowdowns);
}

}  // namespace orrery
