// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "models/collectives/limit.h"
#include "sim/app/experiments/experiment_network.h"
#include "sim/app/experiments/link_use.h"
#include "sim/app/experiments/part_keys.h"
#include "sim/app/experiments/simulate.h"
#include "sim/app/pricing/intervals.h"
#include "sim/app/pricing/transfer_draws.h"
#include "sim/results/table.h"

namespace orrery {
namespace {

/// nccl-tests' bus bandwidth over algorithm bandwidth (its PERFORMANCE.md).
double bus_factor(TransferKind kind, double ranks) {
  switch (kind) {
    case TransferKind::kAllReduce:
      return 2 * (ranks - 1) / ranks;
    case TransferKind::kAllGather:
    case TransferKind::kReduceScatter:
    case TransferKind::kAllToAll:
    case TransferKind::kDispatch:
    case TransferKind::kCombine:
    case TransferKind::kGather:
    case TransferKind::kScatter:
      return (ranks - 1) / ranks;
    case TransferKind::kBroadcast:
    case TransferKind::kReduce:
    case TransferKind::kBarrier:
    case TransferKind::kSendReceive:
      return 1;
  }
  return 1;
}

Program one_transfer(Transfer transfer) {
  Program program;
  program.streams = {"communication"};
  std::vector<int> ranks;
  for (const std::vector<int>& group : transfer.groups)
    ranks.insert(ranks.end(), group.begin(), group.end());
  program.ranks = *std::max_element(ranks.begin(), ranks.end()) + 1;
  OperatorGraph graph;
  graph.add({to_string(transfer.kind), OperatorKind::kCollective, Category::kCommunication, 0, 0});
  program.transfers.push_back(std::move(transfer));
  program.blocks.push_back(std::move(graph));
  program.block_names = {"collective"};
  program.roles.push_back({"all ranks", {0}, std::move(ranks)});
  return program;
}

void add_provenance(const Experiment& experiment, const Transfer& transfer, RunRecord& record) {
  const double time = record.find("time_s")->value;
  const Provenance provenance = transfer_provenance(experiment, transfer);
  ProvenanceTime rests;
  rests.add(provenance, time);
  record.provenance = provenance_json(
      rests, provenance == Provenance::kAnalytic ? std::string() : experiment.network->id);
  const std::vector<double> factors = transfer_draws(experiment, transfer, Seconds(time));
  if (!factors.empty()) add_time_intervals(record, factors);
}

/// What else could be asked for where the algorithm asked for does not do.
[[noreturn]] void refuse_algorithm(const std::string& algorithm, const Collective& collective) {
  std::string known;
  for (const auto& [name, item] : AlgorithmRegistry::items()) {
    if (item.entry->serves(collective)) known += (known.empty() ? "" : ", ") + name;
  }
  throw config::KeyError("collective.algorithm",
                         algorithm + " does not serve " + to_string(collective.kind) + " among " +
                             std::to_string(collective.size()) + " ranks " +
                             (collective.spans_systems() ? "of several systems" : "of one system") +
                             "; these do: " + known);
}

/// What the heaviest port of an all_to_all with parts of different sizes carries.
Bytes heaviest_port(const Collective& group) {
  Bytes most;
  for (int member = 0; member < group.size(); ++member) {
    Bytes sent, received;
    for (int other = 0; other < group.size(); ++other) {
      if (other == member) continue;
      sent += group.between(member, other);
      received += group.between(other, member);
    }
    most = std::max({most, sent, received});
  }
  return most;
}

void add_figures(const Collective& group, const PortRates& ports, double time, RunRecord& record) {
  const double rate = time > 0 ? group.bytes.base() / time : 0;
  const bool parts = !group.pair_bytes.empty() && time > 0;
  add_metric(record, "time_s", time);
  add_metric(record, "algorithm_bytes_per_s", rate);
  add_metric(
      record, "bus_bytes_per_s",
      parts ? heaviest_port(group).base() / time : rate * bus_factor(group.kind, group.size()));
  add_metric(record, "share_of_limit", time > 0 ? least_time(group, ports).base() / time : 0);
}

/// Of copies to or from host boards: what each rank gets, and all links allow.
void add_copy_figures(const Transfer& transfer, Seconds limit, double time, RunRecord& record) {
  add_metric(record, "time_s", time);
  add_metric(record, "algorithm_bytes_per_s", transfer.bytes.base() / time);
  add_metric(record, "bus_bytes_per_s", transfer.bytes.base() / time);
  add_metric(record, "share_of_limit", limit.base() / time);
}

/// Copies of all ranks of a system lie in the memory of its hosts, at either end of their way.
bool fits_hosts(const Transfer& transfer, const SystemConfig& system, RunRecord& record) {
  if (!transfer.host || transfer.host->end != HostEnd::kHost) return true;
  const auto ranks = std::min(transfer.groups.size(), static_cast<std::size_t>(system.ranks()));
  const Bytes copied = transfer.bytes * static_cast<double>(ranks);
  if (copied <= system.host.memory.value) return true;
  record.status = RunStatus::kInfeasible;
  record.reason = "does not fit: the copies of a system have " + format_si(copied.base(), "B") +
                  ", the memory of its hosts " + format_si(system.host.memory.value.base(), "B");
  return false;
}

void check_choice(const CollectiveConfig& collective, const PricedTransfer& priced,
                  const Collective& group, const std::string& system) {
  if (collective.algorithm != "auto" && priced.algorithm != collective.algorithm)
    refuse_algorithm(collective.algorithm, group);
  if (collective.protocol != "auto" && priced.protocol != collective.protocol) {
    throw config::KeyError("collective.protocol", collective.protocol + " carries no " +
                                                      to_string(collective.kind) + " by " +
                                                      priced.algorithm + " on " + system + "; " +
                                                      priced.protocol + " does");
  }
}

}  // namespace

void run_collective(const Experiment& experiment, const SimulateOptions& options,
                    RunRecord& record) {
  const CollectiveConfig& collective = *experiment.collective;
  const Program program =
      one_transfer(collective_transfer(collective, experiment.system.ranks() * experiment.nodes));
  const Transfer& transfer = program.transfers[0];
  const std::size_t members = transfer.groups[0].size();
  if (members < 2 && !transfer.host)
    throw config::KeyError("collective.ranks", "a collective needs at least 2 ranks");
  if (collective.kind == TransferKind::kSendReceive && members != 2 && !transfer.host)
    throw config::KeyError("collective.ranks", "send_receive needs 2 ranks, or from and to");
  if (!fits_hosts(transfer, experiment.system, record)) return;
  Experiment placed = experiment;
  if (transfer.host) placed.system.host.links = true;
  const SystemConfig& system = placed.system;
  const ExperimentNetwork states(placed, collective.algorithm, collective.protocol);
  const FlowModel& network = states.start();
  const Collective group = network.collective(transfer, transfer.groups[0]);
  const std::vector<PricedTransfer> taken(1, network.price(transfer));
  const PricedTransfer& priced = taken.front();
  if (!transfer.host) check_choice(collective, priced, group, system.name);
  Costs costs;
  costs.transfers = {priced.cost};
  network.fill_links(costs);
  states.add_link_events(program, taken, costs);
  const Replayer replayer = [&](SlowdownModel*) {
    return ReplayOutcome{replay(program, costs, {nullptr, nullptr, &network.topology()}), {}, {}};
  };
  const Played played = play({network.topology(), program, costs}, replayer, options.stand_in);
  const ReplayResult& result = played.outcome.replay;
  record.components = played.components;
  add_link_use(link_use(experiment, network.topology(), result), record);

  const double time = to_seconds(result.end).base();
  if (transfer.host) {
    add_copy_figures(transfer, priced.limit, time, record);
  } else {
    add_figures(group, port_rates(system), time, record);
  }
  record.labels.push_back({"algorithm", priced.algorithm});
  record.labels.push_back({"protocol", priced.protocol});
  record.labels.push_back({"bottleneck", priced.bottleneck
                                             ? network.topology().bundle_name(*priced.bottleneck)
                                             : "latency"});
  add_metric(record, "simulated_time_s", time);
  add_metric(record, "events", static_cast<double>(result.events));
  add_provenance(experiment, transfer, record);
}

}  // namespace orrery
